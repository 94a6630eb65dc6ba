"""Where the records stand on a tree; from the ledger's own note where nothing has changed since it was written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from patcher import __version__
from patcher.i18n import NOTHING, Phrase, Phrases
from patcher.i18n.decoding import heard
from patcher.patching.unrecorded import Mark, marks_in_texts, marks_in_tree
from patcher.plan.outcome import SETTLED, Plan, RecordOutcome, Spot
from patcher.session.pre_images import PreImages
from patcher.session.session import Session
from patcher.session.tree_access import read_consistently
from patcher.tree import Ledger

if TYPE_CHECKING:
    from patcher.session.snapshot import TreeSnapshot
    from patcher.tree.account import Account

_FORM = 2
"""The form of the note; one of another form is not read."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The outcome of each record, and the marked lines that no record covers."""

    outcomes: tuple[RecordOutcome, ...]
    unrecorded: tuple[Mark, ...]
    pre_images: PreImages = field(default_factory=PreImages)
    ledger: Ledger = field(default_factory=Ledger)

    @property
    def clean(self) -> bool:
        return all(outcome.kind in SETTLED for outcome in self.outcomes) and not self.pre_images


def standing(session: Session) -> Standing:
    """Read the tree, and plan unless the ledger's note still holds. Writes nothing."""
    return read_consistently(session.tree, lambda reading: _standing(session, reading.account))


def _standing(session: Session, account: Account) -> Standing:
    ledger = account.ledger
    noted = _noted(session, ledger)
    about = PreImages(account)
    if noted:
        outcomes = noted.outcomes
    else:
        planned, found = _planned(session, ledger)
        outcomes, about = planned.outcomes, PreImages(account, found.replaced)
    known = {outcome.id for outcome in outcomes} | set(ledger.records)
    seen = ledger.basis["files"] if noted else ()
    marks = marks_in_tree(session, known, outcomes, but=seen)
    every = sorted({*marks, *(noted.unrecorded if noted else ())}, key=_place)
    return Standing(outcomes, tuple(every), about, ledger)


def _place(mark: Mark) -> tuple[str, int]:
    return mark.file, mark.line


def _planned(session: Session, ledger: Ledger) -> tuple[Plan, TreeSnapshot]:
    from patcher.plan.plan import plan
    from patcher.session.snapshot import read_snapshot, record_file_names

    found = read_snapshot(session, ledger, record_file_names(session))
    return plan(session.records, session.request(), found.situation), found


def note(session: Session, plan: Plan, shas: Mapping[str, str], texts: Mapping[str, str]) -> dict[str, Any]:
    """What `status` may answer as long as the same things are asked of the same files (`shas`, by path).

    `texts` is what the files will hold once the plan is written.
    """
    known = {outcome.id for outcome in plan.outcomes}
    marks = marks_in_texts(session, texts, known, plan.outcomes)
    return {
        "key": _key(session),
        "files": dict(shas),
        "outcomes": [_pack(outcome) for outcome in plan.outcomes],
        "marks": [[mark.file, mark.line] for mark in marks],
    }


def _noted(session: Session, ledger: Ledger) -> Standing | None:
    basis = ledger.basis
    if not basis or _may_change_unseen(session) or basis.get("key") != _key(session):
        return None
    for path, sha in basis["files"].items():
        source = session.tree.read(path)
        if (source.sha256 if source is not None else "") != sha:
            return None
    try:
        outcomes = tuple(_unpack(item) for item in basis["outcomes"])
        return Standing(outcomes, tuple(Mark(file, line) for file, line in basis["marks"]))
    except (KeyError, TypeError, ValueError):  # The note lies in the tree, and may be anybody's.
        return None


def _may_change_unseen(session: Session) -> bool:
    """Whether a package's symbols can change while its version stays: an editable install, or one without metadata."""
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
    parts = [__version__, _FORM, digest(session.record_files), packages, asked]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _pack(outcome: RecordOutcome) -> list[Any]:
    spots = [[spot.file, spot.line] for spot in outcome.spots]
    texts = [_pack_text(outcome.detail), _pack_text(outcome.note), outcome.title, outcome.title_zh]
    return [outcome.id, outcome.kind, texts, list(outcome.files), spots, outcome.skipped]


def _unpack(item: list[Any]) -> RecordOutcome:
    name, kind, (detail, note, title, title_zh), files, spots, skipped = item
    where = tuple(Spot(file, line) for file, line in spots)
    told = (title, title_zh, heard(note) or NOTHING)
    return RecordOutcome(name, kind, heard(detail), tuple(files), where, *told, skipped=bool(skipped))


def _pack_text(text: object) -> Any:
    match text:
        case Phrase(template, fields):
            return {"template": template, "fields": {name: _pack_text(value) for name, value in fields.items()}}
        case Phrases(parts, separator):
            return {"parts": [_pack_text(part) for part in parts], "separator": separator}
        case int():
            return text
        case _:
            return str(text)
