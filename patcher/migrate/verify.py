"""Verify a tree on a host: it is the payload, byte for byte; each record is in it; and it works there.

The step `verify` of a migration checks the first two. The command `uky-patch verify --host` checks all three, the last
one up to a level of the preflight.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from patcher.checks import Check, Level, Status
from patcher.i18n import Phrase, Phrases, phrase
from patcher.i18n.codec import decode
from patcher.migrate.agent.verifying import marked_lines
from patcher.migrate.payload import Payload, lay_groundwork, plan_payload
from patcher.migrate.wording import first_few
from patcher.patching.verifying import checks_here
from patcher.plan.outcome import RecordOutcome
from patcher.preflight.preflight import PreflightOptions, check_job, run_preflight
from patcher.remote.connection import Connection, connect
from patcher.remote.host import Host
from patcher.remote.survey import Survey, survey_host
from patcher.remote.tree_folder import open_tree_folder
from patcher.session.session import Session
from patcher.worktree.layout import LEDGER, ORIGINALS
from patcher.worktree.ledger import NOTE
from patcher.worktree.manifest import pack

_ORIGINALS = ORIGINALS + "/"


def verify_host(
    session: Session, level: Level, host: Host, wish: PreflightOptions, on_check: Callable[[Check], None]
) -> tuple[Check, ...]:
    """Run all checks on a host, or on this machine, up to the level. Those of the records come first.

    `on_check` gets each check when it has ended. Raises UsageError, RecordError or HostError: the host or its table
    cannot be used, or a record cannot be read.
    """
    checks: tuple[Check, ...] = ()
    with connect(host) as connection:
        open_tree_folder(connection, session.tree.root.name, None)
        found = survey_host(connection, host)
        checks = checks_here(session) if host.here else _markers_there(session, connection, found)
        for check in checks:
            on_check(check)
        checks += run_preflight(connection, host, found, level, on_check=on_check, wish=wish)
    if level == "job":
        checks += (check_job(session, host, wish, checks),)
        on_check(checks[-1])
    return checks


def _markers_there(session: Session, connection: Connection, survey: Survey) -> tuple[Check, ...]:
    """Check that the host's tree is this one, with the records that its versions need."""
    payload = plan_payload(session, lay_groundwork(session, connection.host.include), survey, connection)
    return verify_payload(connection, payload)


def verify_payload(connection: Connection, payload: Payload, *, stamps: bool = False) -> tuple[Check, ...]:
    """Have the host read its tree again, in one round trip, and check all hashes, the ledger, and each record.

    With `stamps` it does not read files whose size and times are as when it last read them. Raises CutError.
    """
    started = time.monotonic()
    expected = marks_of(payload)
    answer = connection.channel.ask(
        "verify", body=pack(payload.manifest), marked=list(expected), word=payload.marker, stamps=stamps
    ).values
    seconds = time.monotonic() - started
    return tuple(_checks(payload, expected, answer, connection.host.name, seconds))


def marks_of(payload: Payload) -> dict[str, dict[str, int]]:
    """How many lines each record has marked in each file: path, record id, count."""
    plan = payload.result.plan
    return {path: marked_lines(text, payload.marker) for path, text in plan.texts.items() if plan.files[path].records}


def _checks(
    payload: Payload, expected: Mapping[str, Mapping[str, int]], answer: Mapping[str, Any], host: str, seconds: float
) -> Iterator[Check]:
    fix = phrase("uky-patch migrate {host} --from transfer", host=host)
    wrong: dict[str, Phrase] = {path: decode(reason) for path, reason in answer["wrong"].items()}
    total = len(payload.items)
    matching = phrase(
        "{count} of {total} {total:hash|hashes} {count:matches|match}",
        count=f"{total - len(wrong):,}",
        total=f"{total:,}",
    )
    if wrong:
        yield Check("files", "markers", "fail", seconds, Phrases((matching, _reasons(wrong))), fix)
    else:
        yield Check("files", "markers", "ok", seconds, matching)
    yield _ledger_check(payload, answer["ledger"], wrong, fix)
    for outcome in payload.result.plan.outcomes:
        if outcome.kind in ("applied", "adopted", "resolved"):
            yield _record_check(outcome, expected, answer["marks"], wrong, fix)


def _ledger_check(payload: Payload, found: Any, wrong: Mapping[str, Phrase], fix: Phrase) -> Check:
    wanted = None
    if LEDGER in payload.items:
        wanted = sorted({name for file in payload.result.plan.files.values() for name in file.records})
    bad = {path: reason for path, reason in wrong.items() if path.startswith(_ORIGINALS)}
    if isinstance(found, dict):
        detail: Phrase | Phrases = decode(found)
    elif found is None and wanted is not None:
        detail = phrase("is not there")
    elif wanted is None and found is not None:
        detail = phrase("names records that were not sent: {records}", records=", ".join(found))
    elif found != wanted:
        detail = phrase("names other records: {records}", records=", ".join(found))
    elif bad:
        return Check(
            "ledger", "markers", "fail", 0.0, Phrases((phrase("pre-images are not whole"), _reasons(bad))), fix
        )
    elif wanted is None:
        return Check("ledger", "markers", "skip", 0.0, phrase("no record is applied there"))
    else:
        count = sum(path.startswith(_ORIGINALS) and not path.endswith(NOTE) for path in payload.items)
        whole = "{records} {records:record|records}, {count} {count:pre-image|pre-images} whole: revert works there"
        detail = phrase(whole, records=len(wanted), count=count)
        return Check("ledger", "markers", "ok", 0.0, detail)
    return Check("ledger", "markers", "fail", 0.0, detail, fix)


def _record_check(
    outcome: RecordOutcome,
    expected: Mapping[str, Mapping[str, int]],
    found: Mapping[str, Mapping[str, int]],
    wrong: Mapping[str, Phrase],
    fix: Phrase,
) -> Check:
    name = f"record {outcome.id}"

    def check(status: Status, detail: Phrase | Phrases) -> Check:
        return Check(name, "markers", status, 0.0, detail, fix if status == "fail" else "")

    bad = {path: wrong[path] for path in outcome.files if path in wrong}
    if bad:
        return check("fail", _reasons(bad))
    if outcome.kind != "applied":
        return check("ok", outcome.detail)
    marked = {path: lines[outcome.id] for path, lines in expected.items() if outcome.id in lines}
    there = {path: found.get(path, {}).get(outcome.id, 0) for path in marked}
    if there != marked:
        counts = {"count": sum(there.values()), "total": sum(marked.values())}
        return check("fail", phrase("{count} of {total} marked {total:line|lines} {count:is|are} there", **counts))
    lines, files = sum(marked.values()), len(marked) or len(outcome.files)
    return check(
        "ok", phrase("{lines} marked {lines:line|lines} in {files} {files:file|files}", lines=lines, files=files)
    )


def _reasons(wrong: Mapping[str, Phrase]) -> Phrases:
    return first_few([phrase("{path} {why}", path=path, why=reason) for path, reason in wrong.items()])
