"""What `verify` checks first, the level `markers`: a check for each record, for each patched file, and for what is odd.

It needs the tree alone: no edit is left to make, the files' hashes are those of the ledger, each record has its marker.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace

from patcher.check.untried import untried
from patcher.checks import Check, Status
from patcher.i18n import Phrase, Phrases, phrase
from patcher.patching.change_record import NAMES, fork_state, state_of
from patcher.patching.marked_lines import changed_lines
from patcher.patching.status import RecordsStatus, records_status
from patcher.plan.outcome import RecordOutcome, Spot
from patcher.session.pre_images import BEGIN_ANEW, MERGE
from patcher.session.session import NAME_IT, Session
from patcher.worktree.ledger import PatchedFile

APPLY = "uky-patch apply"


def checks_here(session: Session) -> tuple[Check, ...]:
    """The marker checks of this machine's tree, and whether they speak of the environment and the releases at hand."""
    started = time.monotonic()
    if (why := session.unknown_environment) is not None:
        first = Check("environment", "markers", "fail", 0.0, why, NAME_IT)
        # What is to be applied is not known either, so that `apply` is no way out.
        rest = [replace(check, fix=NAME_IT) if check.fix == APPLY else check for check in marker_checks(session)]
        return (first, *rest)
    checks, beyond = marker_checks(session), untried(session)
    if beyond is None:
        return checks
    status: Status = "ok" if beyond.clean else "fail"
    fix = "" if beyond.clean else beyond.next
    return (*checks, Check("releases", "markers", status, time.monotonic() - started, beyond.message, fix))


def marker_checks(session: Session) -> tuple[Check, ...]:
    """One check a record, one for each patched file, and one for marked lines without a record."""
    started = time.monotonic()
    found = records_status(session)
    planning = time.monotonic() - started
    share = planning / max(1, len(found.outcomes))
    by_hand = _fix_of_hand_edits(session, found.outcomes)
    # What the ledger knows is compared by hash.
    unknown = {outcome.id for outcome in found.outcomes if outcome.kind == "adopted"} - found.ledger.records.keys()
    changed = changed_lines(session, unknown) if unknown else {}
    checks = [_record_check(outcome, share, by_hand, changed.get(outcome.id)) for outcome in found.outcomes]
    other = found.pre_images.replaced
    since = {file for outcome in found.outcomes for file in outcome.since}
    for path, entry in found.ledger.files.items():
        fix = BEGIN_ANEW if path in other.anew else MERGE if path in (*other.mixed, *since) else by_hand
        checks.append(_file_check(session, path, entry, fix, since=path in since))
    checks += [Check("ledger", "markers", "fail", 0.0, text, fix) for text, fix in found.pre_images.findings]
    if found.unrecorded:
        places = ", ".join(f"{mark.file}:{mark.line}" for mark in found.unrecorded)
        text = phrase("marked lines that no record covers: {places}", places=places)
        checks.append(
            Check("unrecorded", "markers", "warn", 0.0, text, phrase("write a record for them, or take them out"))
        )
    if not found.from_note and (merged := session.merged_verl) is not None:
        fix = shlex.join(["uky-patch", "status", *merged.assumed])
        checks.append(Check("verl", "markers", "warn", 0.0, merged.text, fix))
    checks += _document_checks(session, found)
    return tuple(checks)


def _document_checks(session: Session, found: RecordsStatus) -> Iterator[Check]:
    """One for each MIGRATION.md that `docs` has written and that no longer says what the fork is."""
    started = time.monotonic()
    written = [name for name in NAMES if state_of(session.tree.root, name, "") == "stale"]
    basis = fork_state(session, found).basis if written else ""  # Parsing the records is left to trees that have one.
    for name in written:
        if state_of(session.tree.root, name, basis) == "stale":
            text = phrase("is of other records, marked lines, pins or hosts than the tree")
            yield Check(f"file {name}", "markers", "warn", time.monotonic() - started, text, "uky-patch docs --write")


def _fix_of_hand_edits(session: Session, outcomes: Iterable[RecordOutcome]) -> Phrase | Phrases | str:
    """The command for patched files that were changed since; "" where there is none."""
    changed = [outcome for outcome in outcomes if outcome.kind == "tampered"]
    if not changed:
        return ""
    from patcher.patching.next_step import after_hand_edits

    step = after_hand_edits(session, changed)
    if step is None or not step.words:
        return step.instead if step is not None else ""
    return shlex.join(["uky-patch", *step.words])


def _record_check(
    outcome: RecordOutcome, seconds: float, by_hand: Phrase | Phrases | str, changed: Spot | None
) -> Check:
    name = f"record {outcome.id}"
    if changed is not None:
        text = phrase("{file}:{line} carries its mark, and is not what it makes", file=changed.file, line=changed.line)
        fix = phrase("write the line as uky-patch explain {id} shows it, or take its mark out", id=outcome.id)
        return Check(name, "markers", "fail", seconds, text, fix)
    match outcome.kind:
        case "applied" | "adopted" | "resolved":
            return Check(name, "markers", "ok", seconds, outcome.detail)
        case "not-needed":
            return Check(name, "markers", "skip", seconds, outcome.detail)
        case "pending":
            return Check(name, "markers", "fail", seconds, outcome.detail, APPLY)
        case "tampered":
            return Check(name, "markers", "fail", seconds, outcome.detail, by_hand)
        case _:
            return Check(name, "markers", "fail", seconds, outcome.detail, f"uky-patch explain {outcome.id}")


def _file_check(session: Session, path: str, entry: PatchedFile, fix: Phrase | Phrases | str, *, since: bool) -> Check:
    """A patched file: is it there, as it was written, and with a marker of each record? `since`: it was changed, and
    still holds what the records made."""
    started = time.monotonic()
    status, text = _state_of(session, path, entry, since=since)
    fix = fix if status == "fail" else ""
    return Check(f"file {path}", "markers", status, time.monotonic() - started, text, fix)


def _state_of(session: Session, path: str, entry: PatchedFile, *, since: bool) -> tuple[Status, Phrase]:
    source = session.tree.read(path)
    if source is None:
        return "fail", phrase("is not in this tree")
    if since:
        return "fail", phrase("changed or laid out anew since; it still holds what its records made")
    if source.sha256 != entry.patched:
        return "fail", phrase("changed since its records were applied")
    from patcher.rewrite import markers

    there = {marker.record for marker in markers(source.content.decode("utf-8", "replace"), session.config.marker)}
    if lost := [record for record in entry.records if record not in there]:
        return "warn", phrase("no line is marked for {records}", records=", ".join(lost))
    return "ok", phrase("hash and markers of {count} {count:record|records}", count=len(entry.records))
