"""Copies of files that were sent to a host and are in no commit, kept in the user's state folder.

To merge an edit made on the host, `uky-patch pull` needs the text that was sent; the host keeps only its digest. The
text of a file in a commit can be asked of git. That of a file that a record has changed, or with uncommitted changes,
would be lost with the next change here, so it is kept until the next migration.

    ~/.local/state/uky-patch/migrations/1a2b3c4d5e6f7a8b.sent/<sha256 of the content>
    ~/.local/state/uky-patch/migrations/1a2b3c4d5e6f7a8b.sent/pulled.json   edits made there that are taken over here
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from patcher.migrate.journal import Journal
from patcher.migrate.payload import Payload
from patcher.worktree import files
from patcher.worktree.hashing import digest_of
from patcher.worktree.json_text import parse_json
from patcher.worktree.layout import FOLDER

LARGEST = 4 << 20
"""The largest file that is kept, in bytes. A guess: people edit text, and no text is as large."""
_PULLED = "pulled.json"


@dataclass(frozen=True, slots=True)
class SentTexts:
    """The folder for one tree and one host. Failures to write are ignored: without it `pull` only merges less."""

    folder: Path

    def read(self, sha256: str) -> bytes | None:
        """The bytes of a file that was sent, by its digest; None if it is not kept, or damaged."""
        try:
            content = files.read(self.folder / sha256, LARGEST)
        except OSError:
            return None
        return content if digest_of(content) == sha256 else None

    def add(self, payload: Payload) -> None:
        """Keep what will be sent. What was sent before stays: until the end either may be on the host."""
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            for sha256, content in _uncommitted(payload):
                if not (self.folder / sha256).exists():
                    files.write_whole_file(self.folder / sha256, content, mode=0o600, durable=False)

    def pulled(self) -> dict[str, str]:
        """The digests, by path, of edits made on the host that were taken over here since the last migration."""
        try:
            found = parse_json(files.read(self.folder / _PULLED, files.SETTINGS_BYTES))
        except (OSError, ValueError):
            return {}
        return {str(path): str(sha256) for path, sha256 in found.items()} if isinstance(found, dict) else {}

    def note_pulled(self, digests: Mapping[str, str]) -> None:
        """Note such edits: the next migration replaces files with these digests without asking."""
        content = json.dumps({**self.pulled(), **digests}).encode("ascii")
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            files.write_whole_file(self.folder / _PULLED, content, mode=0o600)

    def keep_only(self, payload: Payload) -> None:
        """Remove what belongs to earlier migrations, now that the payload is on the host."""
        digests = {item.sha256 for item in payload.items.values()}
        with contextlib.suppress(OSError):
            for place in self.folder.iterdir():
                if place.name not in digests:
                    place.unlink()


def sent_texts(journal: Journal) -> SentTexts:
    """The folder for the tree and the host of this journal."""
    return SentTexts(journal.file.with_suffix(".sent"))


def _uncommitted(payload: Payload) -> Iterator[tuple[str, bytes]]:
    """Digest and bytes of the files of the payload that are in no commit. Raises OSError."""
    in_no_commit = payload.listing.uncommitted | payload.listing.included
    for path, item in payload.items.items():
        if item.link is not None or item.size > LARGEST or path.startswith(FOLDER + "/"):
            continue
        if item.content is not None:
            yield item.sha256, item.content
        elif path in in_no_commit and item.source is not None:
            content = files.read(item.source, LARGEST)
            if digest_of(content) == item.sha256:
                yield item.sha256, content
