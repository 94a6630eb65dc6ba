"""The status of each record on a tree, and the marked lines that no record covers.

`apply` leaves a note in the ledger: the outcomes, and a hash of all that they depend on. As long as the note holds,
`status` answers from it and neither parses a record nor imports what plans and rewrites.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from patcher import __version__
from patcher.errors import TreeError
from patcher.plan.outcome import FIELDS, SETTLED, Kind, Plan, RecordOutcome
from patcher.session.pre_images import PreImages
from patcher.session.session import Session
from patcher.session.tree_access import read_consistently
from patcher.tree import Ledger
from patcher.tree.source import sha256_of

if TYPE_CHECKING:
    from patcher.records.model import Record
    from patcher.session.snapshot import TreeSnapshot
    from patcher.worktree.account import Account

_FORM = 4
"""The form of the note besides its outcomes; one of another form is not read."""
_HOLDS: frozenset[Kind] = frozenset({"adopted", "applied", "pending", "resolved"})
"""Outcomes of records that may account for a marker without an id: some of their places were edited by hand."""


class MarkedLine(NamedTuple):
    """A marked line, counted from 1."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class RecordsStatus:
    """The outcome of each record, and the marked lines that no record covers."""

    outcomes: tuple[RecordOutcome, ...]
    unrecorded: tuple[MarkedLine, ...]
    pre_images: PreImages = field(default_factory=PreImages)
    ledger: Ledger = field(default_factory=Ledger)
    from_note: bool = False
    """Whether it is what the last apply has noted; that has said then what is odd about the tree's version."""

    @property
    def clean(self) -> bool:
        return all(outcome.kind in SETTLED for outcome in self.outcomes) and not self.pre_images


def records_status(session: Session) -> RecordsStatus:
    """Read the tree, and plan unless the ledger's note still holds. Writes nothing."""
    return read_consistently(session.tree, lambda reading: _read_status(session, reading.account))


def _read_status(session: Session, account: Account) -> RecordsStatus:
    ledger = account.ledger
    noted = _from_note(session, ledger)
    about = PreImages(account)
    if noted:
        outcomes = noted.outcomes
    else:
        planned, found = _from_plan(session, ledger)
        outcomes, about = planned.outcomes, PreImages(account, found.replaced)
    known = {outcome.id for outcome in outcomes} | set(ledger.records)
    seen = ledger.basis["files"] if noted else ()
    marks = _marks_in_tree(session, known, outcomes, but=seen)
    every = sorted({*marks, *(noted.unrecorded if noted else ())})
    return RecordsStatus(outcomes, tuple(every), about, ledger, noted is not None)


def _from_plan(session: Session, ledger: Ledger) -> tuple[Plan, TreeSnapshot]:
    from patcher.check.planning import plan_on_tree
    from patcher.session.snapshot import read_snapshot, record_file_names

    found = read_snapshot(session, ledger, record_file_names(session))
    return plan_on_tree(session, session.request(), found.situation), found


def not_in_ledger(session: Session, records: Mapping[str, Collection[str]]) -> tuple[str, ...]:
    """Those of `records`, ids with their files, whose marker `# Uky[id]` stands there: for records not in the ledger.

    So it is in a git clone of a patched fork: the edits are in the commits, and `.uky-patch` is not.
    """
    from patcher.rewrite.marker import markers

    word = session.config.marker
    found: set[str] = set()
    for path in dict.fromkeys(path for files in records.values() for path in files):
        with suppress(TreeError):  # What cannot be read is told where a plan needs it.
            source = session.tree.read(path)
            text = source.content.decode("utf-8", "replace") if source is not None else ""
            found |= {marker.record for marker in markers(text, word) if marker.record is not None}
    return tuple(name for name in records if name in found)


def note(session: Session, plan: Plan, shas: Mapping[str, str], texts: Mapping[str, str]) -> dict[str, Any]:
    """The ledger's note: what `status` may answer while the same is asked of the same files (`shas`, by path).

    `texts` is what the files will hold once the plan is written.
    """
    known = {outcome.id for outcome in plan.outcomes}
    marks = [m for path, text in texts.items() for m in _marks_in_text(session, path, text, known, plan.outcomes)]
    return {
        "key": _key(session),
        "files": dict(shas),
        "outcomes": [outcome.packed() for outcome in plan.outcomes],
        "marks": [list(mark) for mark in marks],
    }


def _from_note(session: Session, ledger: Ledger) -> RecordsStatus | None:
    basis = ledger.basis
    if not basis or _may_change_unseen(session) or basis.get("key") != _key(session):
        return None
    for path, sha in basis["files"].items():
        if sha256_of(session.tree.read(path)) != sha:
            return None
    try:
        outcomes = tuple(RecordOutcome.unpacked(item) for item in basis["outcomes"])
        return RecordsStatus(outcomes, tuple(MarkedLine(file, line) for file, line in basis["marks"]))
    except (KeyError, TypeError, ValueError):  # The note lies in the tree, and may be anybody's.
        return None


def _may_change_unseen(session: Session) -> bool:
    """Whether a package's symbols can change while its version stays: an editable install, or one without metadata.

    Then the note is stale without a trace, and the record's `has` and `lacks` are looked up again.
    """
    packages = session.environment.packages
    return any(item.origin in ("editable", "folder") for name, item in packages.items() if name != "verl")


def _key(session: Session) -> str:
    """A hash over all that outcomes depend on besides the files."""
    from patcher.records.load import digest

    config = session.config
    packages = {
        name: [item.version, str(item.location), item.renamed] for name, item in session.environment.packages.items()
    }
    asked = [config.marker, config.style, config.enable, config.disable]
    parts = [__version__, _FORM, FIELDS, digest(session.record_files), packages, asked]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _marks_in_tree(
    session: Session, known: Collection[str], outcomes: Sequence[RecordOutcome], *, but: Collection[str] = ()
) -> tuple[MarkedLine, ...]:
    """Markers that no record accounts for, in all files but some."""
    word = session.config.marker
    # Few files have a marker; the bytes are looked for before a file is decoded and its comments are read.
    needles = {word.encode(), word.lower().encode(), word.upper().encode()}
    found: list[MarkedLine] = []
    for file in session.tree.text_files():
        if file.path in but:
            continue
        content = file.read()
        if any(needle in content for needle in needles):
            found += _marks_in_text(session, file.path, content.decode("utf-8", "replace"), known, outcomes)
    return tuple(found)


def _marks_in_text(
    session: Session, path: str, text: str, known: Collection[str], outcomes: Iterable[RecordOutcome]
) -> list[MarkedLine]:
    """Markers that carry no id of `known` and stand at no place that has a record's effect, read from this text."""
    from patcher.rewrite import markers

    word = session.config.marker
    found = [marker.line for marker in markers(text, word) if marker.record not in known]
    if not found:
        return []
    holding = {outcome.id for outcome in outcomes if outcome.kind in _HOLDS}
    accounted: set[int] = set()
    for record in session.records if holding else ():
        if record.id in holding and path in record.files:
            accounted |= _accounted_for(record, path, text, word, session.environment.version("verl") or "")
    return [MarkedLine(path, line) for line in found if line not in accounted]


def _accounted_for(record: Record, path: str, text: str, word: str, verl: str) -> set[int]:
    """The marked lines of a text that the places with a record's effect account for."""
    from patcher.plan.inputs import belongs
    from patcher.rewrite import markers_of_edit, markers_of_pattern

    decide = belongs(verl)
    lines: set[int] = set()
    for edit in record.edits:
        if edit.file == path and decide(edit) is not False:
            lines |= markers_of_edit(text, edit, word)
    for pattern in record.resolved:
        lines |= markers_of_pattern(text, pattern, word)
    return lines
