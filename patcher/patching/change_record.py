"""A fork's own change record, MIGRATION.md: what goes into it, and whether the one that is there still holds.

A line in it tells both, as a comment that Markdown does not show:

    <!-- uky-patch-docs 1.2 of:9f86d0818… sha256:60303ae22… -->

`of` is a hash over all that the document is made from, as far as it is the same on every machine; `sha256` is one over
the rest of the text, by which an edit made by hand is seen.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from patcher import __version__
from patcher.patching.status import MarkedLine, RecordsStatus, records_status
from patcher.session.pre_images import release_of
from patcher.worktree import files

if TYPE_CHECKING:
    from patcher.records.model import Record
    from patcher.session.session import Session

NAMES = ("MIGRATION.md", "MIGRATION.zh-CN.md")
_LINE = re.compile(r"<!-- uky-patch-docs \S+ of:([0-9a-f]{64}) sha256:([0-9a-f]{64}) -->")
State = Literal["absent", "foreign", "edited", "stale", "current"]
WriteOutcome = Literal["written", "unchanged", "foreign", "edited"]
"""`foreign`: there, and not written by uky-patch; `edited`: by hand, since it was written."""


@dataclass(frozen=True, slots=True)
class HostRow:
    """A host as the document names it: without variables, which may be secrets."""

    name: str
    ssh: str
    path: str
    profile: str


@dataclass(frozen=True, slots=True)
class RecordInTree:
    """A record, and whether its edits are in the tree."""

    record: Record
    in_tree: bool


@dataclass(frozen=True, slots=True)
class ForkState:
    """All that the document is made from."""

    verl: str
    own: tuple[RecordInTree, ...]
    """The fork's own records."""
    shipped: tuple[RecordInTree, ...]
    """Those of uky-patch whose edits are in the tree."""
    unrecorded: tuple[MarkedLine, ...]
    pins: Mapping[str, str]
    hosts: tuple[HostRow, ...]
    applied: Mapping[str, tuple[str, ...]]
    """The versions for which the records in the ledger were applied."""

    @property
    def basis(self) -> str:
        """A hash over all of it but `applied`: the ledger need not go with the fork."""
        records = [[one.record.id, one.record.source, one.in_tree] for one in (*self.own, *self.shipped)]
        parts = [self.verl, records, self.unrecorded, dict(self.pins), [astuple(host) for host in self.hosts]]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def fork_state(session: Session, found: RecordsStatus | None = None) -> ForkState:
    """Read the tree, unless its status is at hand."""
    found = found or records_status(session)
    by_hand = {outcome.id for outcome in found.outcomes if outcome.kind == "adopted"}
    there = {*found.ledger.records, *by_hand}
    folders = session.config.patches
    known = [RecordInTree(record, record.id in there) for record in session.records]
    own = [one for one in known if one.record.path is not None and one.record.path.parent in folders]
    shipped = [one for one in known if one.in_tree and one not in own]
    versions: dict[str, set[str]] = {}
    for record in found.ledger.records.values():
        for name, version in record.versions.items():
            if name != "verl":
                versions.setdefault(name, set()).add(version)
    return ForkState(
        release_of(session),
        tuple(own),
        tuple(shipped),
        found.unrecorded,
        session.config.pins,
        tuple(
            HostRow(name, str(table.get("ssh", name)), str(table.get("path", "")), str(table.get("profile", "debug")))
            for name, table in sorted(session.config.hosts.items())
        ),
        {name: tuple(sorted(several)) for name, several in sorted(versions.items())},
    )


def with_line(text: str, line: str, basis: str) -> str:
    """The document with its line in the place of `line`."""
    digest = hashlib.sha256(text.replace(line, "").encode()).hexdigest()
    return text.replace(line, f"<!-- uky-patch-docs {__version__} of:{basis} sha256:{digest} -->")


def state_of(root: Path, name: str, basis: str) -> State:
    """What the document of that name in a tree is."""
    path = root / name
    try:
        text = files.read_text(files.inside(root, path), files.SETTINGS_BYTES)
    except FileNotFoundError:
        return "absent"
    except (OSError, ValueError):
        return "foreign"
    found = _LINE.search(text)
    if found is None:
        return "foreign"
    if hashlib.sha256(text.replace(found[0], "").encode()).hexdigest() != found[2]:
        return "edited"
    return "current" if found[1] == basis else "stale"


def write_document(session: Session, name: str, text: str, basis: str, *, force: bool) -> WriteOutcome:
    """Write a document. One that somebody has made or edited stays, unless `force` is given; then a copy is kept.

    Raises OSError where it cannot be written, TreeError where no copy can be kept.
    """
    root = session.tree.root
    state = state_of(root, name, basis)
    if state in ("foreign", "edited") and not force:
        return "foreign" if state == "foreign" else "edited"
    path = root / name
    content = text.encode()
    if state != "absent":
        there = files.read(files.inside(root, path), files.SETTINGS_BYTES)
        if there == content:
            return "unchanged"
        if state in ("foreign", "edited"):
            session.tree.keep(name, there)
    files.write_whole_file(files.inside(root, path), content)
    return "written"
