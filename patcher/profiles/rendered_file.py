"""A file rendered for a host: the line that tells an untouched one from an edited one, and writing it there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from patcher import __version__
from patcher.i18n import Phrase, Phrases
from patcher.profiles.agent.rendered import PREFIX, digest
from patcher.remote.connection import Connection

Text: TypeAlias = Phrase | Phrases | str
_PLACEHOLDER = f"{PREFIX}@\n"
"""Where a template wants the line with the hash."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """A file made from a template for one host. `notes` say what was left out and why."""

    path: str
    """Below the tree's root."""
    text: str
    mode: int = 0o644
    notes: tuple[Text, ...] = ()


WriteOutcome: TypeAlias = Literal["written", "unchanged", "updated", "kept", "foreign"]
"""`kept`: edited by hand on the host since it was rendered; `foreign`: there, and never rendered by us. Both stay."""


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """What became of a rendered file on the host, or would become of it."""

    path: str
    outcome: WriteOutcome
    there: str | None = None
    """The text that is on the host, if it is another."""
    rendered: Rendered | None = field(default=None, repr=False)


def with_hash_line(text: str) -> str:
    """`text` with its line put in: the version that rendered it, and the hash of everything else.

    By this line `is_untouched` knows a file that nobody has edited since: `# rendered by uky-patch 1.2 sha256:9f…`.
    """
    before, placeholder, after = text.partition(_PLACEHOLDER)
    assert placeholder, "the template has no place for the line"
    return f"{before}{PREFIX}{__version__} sha256:{digest(before + after)}\n{after}"


def write_files(connection: Connection, files: Sequence[Rendered], *, dry: bool = False) -> tuple[WrittenFile, ...]:
    """Write rendered files on the host in one round trip. A file that somebody edited or made there stays.

    `dry`: only look. The tree's folder must have been opened (`open_tree_folder`). Raises RefusedError if the host
    cannot write.
    """
    contents = [file.text.encode("utf-8", "surrogateescape") for file in files]
    heads = [
        {"path": file.path, "size": len(content), "mode": file.mode}
        for file, content in zip(files, contents, strict=True)
    ]
    answer = connection.channel.ask("write_files", body=b"".join(contents), files=heads, dry=dry)
    return tuple(
        WrittenFile(entry["path"], entry["outcome"], entry["there"], file)
        for entry, file in zip(answer["files"], files, strict=True)
    )
