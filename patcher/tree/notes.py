"""What each pre-image is, in a note beside it: `.uky-patch/originals/<sha256>.json`.

A note is the part of the ledger that is about its pre-image: the paths, the mode, the release, what the file was made
into, and the records that did so. So the ledger can be made again from the pre-images alone. A note holds that part
as it is after a change and as it was before, for it is there before the change is made, and stays if it is taken back.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from patcher import __version__
from patcher.tree.ledger import FORMAT, Ledger, is_digest, pack, unpack
from patcher.worktree import disk
from patcher.worktree.json_text import parse_json

if TYPE_CHECKING:
    from patcher.tree.storage import Storage

SUFFIX = ".json"


@dataclass(frozen=True, slots=True)
class Note:
    """A pre-image's digest, and what is known of its files: as it is, then as it was before the last change."""

    sha256: str
    states: tuple[Ledger, ...]

    @property
    def paths(self) -> frozenset[str]:
        return frozenset(path for state in self.states for path in state.files)


def dump(sha256: str, after: Ledger, before: Ledger) -> bytes:
    """The note of the pre-image `sha256` once `before` has become `after`."""
    states = [pack(ledger.of(_paths(ledger, sha256))) for ledger in (after, before)]
    told = [state for number, state in enumerate(states) if state["files"] and state not in states[:number]]
    data = {"format": FORMAT, "tool": __version__, "sha256": sha256, "states": told}
    return json.dumps(data, indent=1, ensure_ascii=False).encode() + b"\n"


def content(storage: Storage, sha256: str) -> bytes | None:
    """The bytes of a note; None where there is none that can be read."""
    try:
        return disk.read(storage.originals / f"{sha256}{SUFFIX}")[0]
    except OSError:
        return None


def every(storage: Storage) -> list[Note]:
    """The notes that can be understood; whatever else lies in the folder is passed over."""
    names = [name.removesuffix(SUFFIX) for name in disk.names(storage.originals) if name.endswith(SUFFIX)]
    notes = (_parsed(sha256, content(storage, sha256)) for sha256 in names if is_digest(sha256))
    return [note for note in notes if note is not None]


def _parsed(sha256: str, found: bytes | None) -> Note | None:
    try:
        data = parse_json(found or b"")
        if data["format"] != FORMAT or data["sha256"] != sha256:
            return None
        states = tuple(unpack(state) for state in data["states"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return Note(sha256, tuple(state.of(_paths(state, sha256)) for state in states))


def _paths(ledger: Ledger, sha256: str) -> frozenset[str]:
    return frozenset(path for path, file in ledger.files.items() if file.original == sha256)
