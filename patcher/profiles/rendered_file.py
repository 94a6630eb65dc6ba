"""A file rendered for a host from a template; the hash line by which an edit by hand is noticed; and its writing there.

Jinja2 runs sandboxed, without undefined names, and nothing is printed that a filter has not made safe for its place.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from patcher import __version__
from patcher.errors import RecordError
from patcher.i18n import Phrase, Phrases, phrase
from patcher.profiles.agent.write_files import PREFIX, digest
from patcher.remote.connection import Connection
from patcher.templating import environment

if TYPE_CHECKING:
    from jinja2 import Environment

Text: TypeAlias = Phrase | Phrases | str
NAMES = ("git_ignore.py", "run_standard.sh", "run_debug.sh", "run_fast_load.sh")
"""All files that are rendered, below the tree's root. They belong to each host and are not sent."""
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


class _Safe(str):
    """Text that a filter has made for its place."""

    __slots__ = ()


def fill(template: str, **values: object) -> str:
    """The text of `templates/<template>` with these values. Raises RecordError for a template that is wrong."""
    from jinja2 import TemplateError  # Takes 40 ms to import; it is needed only where something is rendered.

    try:
        return _environment().get_template(template).render(**values)
    except TemplateError as error:
        title = phrase("{file}: cannot be rendered", file=template)
        raise RecordError(title, cause=str(error)) from error


@lru_cache(maxsize=1)
def _environment() -> Environment:
    engine = environment(finalize=_checked)
    engine.filters |= FILTERS
    return engine


def _checked(value: object) -> object:
    if not isinstance(value, _Safe):
        raise TypeError(f"a template prints {value!r} without a filter that makes it safe")
    return value


def _name(text: str) -> _Safe:
    if not (text.isascii() and text.isidentifier()):
        raise ValueError(f"{text!r} is no name")
    return _Safe(text)


FILTERS: dict[str, Callable[[Any], str]] = {
    "literal": lambda value: _Safe(ascii(value) if not str(value).isprintable() else repr(value)),
    "shell": lambda text: _Safe(shlex.quote(text)),
    "comment": lambda text: _Safe("".join(c if c.isprintable() else "?" for c in text)),
    "name": _name,
    "code": _Safe,
}
"""literal: as Python; shell: as one word of bash; comment: on one line; name: checked; code: our own source text."""
