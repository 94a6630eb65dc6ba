"""Where the records stand on a tree; from the ledger's own note where nothing has changed since it was written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from patcher import __version__
from patcher.language import Phrase, Phrases
from patcher.planning.outcome import SETTLED, Plan, RecordOutcome, Spot
from patcher.session import Session
from patcher.tree import Ledger
from patcher.unrecorded import Mark, marks_without_record

if TYPE_CHECKING:
    from patcher.survey import Survey


@dataclass(frozen=True, slots=True)
class Standing:
    """The outcome of each record, and the marked lines that no record covers."""

    outcomes: tuple[RecordOutcome, ...]
    unrecorded: tuple[Mark, ...]

    @property
    def clean(self) -> bool:
        return all(outcome.kind in SETTLED for outcome in self.outcomes)


def standing(session: Session) -> Standing:
    """Read the tree, and plan unless the ledger's note still holds. Writes nothing."""
    with session.tree.reading() as reading:
        outcomes = _noted(session, reading.ledger)
        if outcomes is None:
            outcomes = _planned(session, reading.ledger)[0].outcomes
        return Standing(outcomes, marks_without_record(session.tree, session.config.marker, reading.ledger, outcomes))


def _planned(session: Session, ledger: Ledger) -> tuple[Plan, Survey]:
    from patcher.planning.plan import plan
    from patcher.survey import record_file_names, survey

    found = survey(session, ledger, record_file_names(session))
    return plan(session.records, session.request(), found.situation), found


def note(session: Session, plan: Plan, shas: Mapping[str, str]) -> dict[str, Any]:
    """What `status` may answer as long as the same things are asked of the same files (`shas`, by path)."""
    return {
        "key": _key(session),
        "files": dict(shas),
        "outcomes": [_pack(outcome) for outcome in plan.outcomes],
    }


def _noted(session: Session, ledger: Ledger) -> tuple[RecordOutcome, ...] | None:
    basis = ledger.basis
    if not basis or basis.get("key") != _key(session):
        return None
    for path, sha in basis["files"].items():
        source = session.tree.read(path)
        if (source.sha256 if source is not None else "") != sha:
            return None
    return tuple(_unpack(item) for item in basis["outcomes"])


def _key(session: Session) -> str:
    """A hash over all that outcomes depend on besides the files."""
    from patcher.records.load import digest

    config = session.config
    packages = {name: [item.version, str(item.location)] for name, item in session.environment.packages.items()}
    asked = [config.marker, config.style, config.enable, config.disable]
    parts = [__version__, digest(session.record_files), packages, asked]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _pack(outcome: RecordOutcome) -> list[Any]:
    spots = [[spot.file, spot.line] for spot in outcome.spots]
    return [outcome.id, outcome.kind, _pack_text(outcome.detail), list(outcome.files), spots]


def _unpack(item: list[Any]) -> RecordOutcome:
    name, kind, detail, files, spots = item
    text = _unpack_text(detail)
    assert isinstance(text, Phrase | Phrases)
    return RecordOutcome(name, kind, text, tuple(files), tuple(Spot(file, line) for file, line in spots))


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


def _unpack_text(item: Any) -> Any:
    if not isinstance(item, dict):
        return item
    if "parts" in item:
        return Phrases(tuple(_unpack_text(part) for part in item["parts"]), item["separator"])
    return Phrase(item["template"], {name: _unpack_text(value) for name, value in item["fields"].items()})
