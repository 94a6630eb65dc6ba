"""Checks with a verdict each. The lowest level needs the tree alone: markers, hashes, and no edit left to make."""

from __future__ import annotations

import time

from patcher.checks import Check, Status
from patcher.language import Phrase, phrase
from patcher.operations.pre_images import ANEW, MERGE
from patcher.operations.standing import standing
from patcher.planning.outcome import RecordOutcome
from patcher.session import Session
from patcher.tree.ledger import PatchedFile


def marker_checks(session: Session) -> tuple[Check, ...]:
    """One check a record, one for each patched file, and one for marked lines without a record."""
    started = time.monotonic()
    found = standing(session)
    planning = time.monotonic() - started
    share = planning / max(1, len(found.outcomes))
    checks = [_record_check(outcome, share) for outcome in found.outcomes]
    other = found.pre_images.replaced
    for path, entry in found.ledger.files.items():
        fix = ANEW if path in other.anew else MERGE if path in other.mixed else "uky-patch revert --force"
        checks.append(_file_check(session, path, entry, fix))
    checks += [Check("ledger", "markers", "fail", 0.0, text, fix) for text, fix in found.pre_images.findings]
    if found.unrecorded:
        places = ", ".join(f"{mark.file}:{mark.line}" for mark in found.unrecorded)
        text = phrase("marked lines that no record covers: {places}", places=places)
        checks.append(
            Check("unrecorded", "markers", "warn", 0.0, text, phrase("write a record for them, or take them out"))
        )
    return tuple(checks)


def _record_check(outcome: RecordOutcome, seconds: float) -> Check:
    name = f"record {outcome.id}"
    match outcome.kind:
        case "applied" | "adopted" | "resolved":
            return Check(name, "markers", "ok", seconds, outcome.detail)
        case "not-needed":
            return Check(name, "markers", "skip", seconds, outcome.detail)
        case "pending":
            return Check(name, "markers", "fail", seconds, outcome.detail, "uky-patch apply")
        case _:
            return Check(name, "markers", "fail", seconds, outcome.detail, f"uky-patch explain {outcome.id}")


def _file_check(session: Session, path: str, entry: PatchedFile, fix: str) -> Check:
    started = time.monotonic()
    source = session.tree.read(path)
    name = f"file {path}"
    if source is None:
        return _timed(name, "fail", phrase("is not in this tree"), fix, started)
    if source.sha256 != entry.patched:
        text = phrase("changed since its records were applied")
        return _timed(name, "fail", text, fix, started)
    from patcher.rewriting import markers

    there = {marker.record for marker in markers(source.content.decode("utf-8", "replace"), session.config.marker)}
    lost = [record for record in entry.records if record not in there]
    if lost:
        return _timed(name, "warn", phrase("no line is marked for {records}", records=", ".join(lost)), "", started)
    return _timed(
        name, "ok", phrase("hash and markers of {count} {count:record|records}", count=len(entry.records)), "", started
    )


def _timed(name: str, status: Status, detail: Phrase, fix: str, started: float) -> Check:
    return Check(name, "markers", status, time.monotonic() - started, detail, fix)
