"""Prove on the host that its tree is the cargo, to the byte, and that each record is in it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from patcher.checks import Check, Status
from patcher.i18n import Phrase, Phrases, phrase
from patcher.i18n.codec import decode
from patcher.migrate.agent.marks import marked_lines
from patcher.migrate.manifest import manifest_of
from patcher.tree.notes import SUFFIX
from patcher.worktree.manifest import pack

if TYPE_CHECKING:
    from patcher.migrate.model import Cargo
    from patcher.plan.outcome import RecordOutcome
    from patcher.remote.connection import Connection

_NAMED = 5
_LEDGER = ".uky-patch/ledger.json"
_ORIGINALS = ".uky-patch/originals/"


def verify(connection: Connection, cargo: Cargo) -> tuple[Check, ...]:
    """Have the host read its tree again, in one round trip: all hashes, the ledger, and each record that holds there.

    Raises CutError.
    """
    started = time.monotonic()
    expected = marks_of(cargo)
    answer = connection.channel.ask(
        "verify", body=pack(manifest_of(cargo)), marked=list(expected), word=cargo.marker
    ).values
    seconds = time.monotonic() - started
    return tuple(_checks(cargo, expected, answer, connection.host.name, seconds))


def marks_of(cargo: Cargo) -> dict[str, dict[str, int]]:
    """How many lines carry each record's mark, in each file that records changed."""
    files = cargo.round.plan.files
    return {path: marked_lines(file.text, cargo.marker) for path, file in files.items() if file.records}


def _checks(
    cargo: Cargo, expected: Mapping[str, Mapping[str, int]], answer: Mapping[str, Any], host: str, seconds: float
) -> Iterator[Check]:
    fix = phrase("uky-patch migrate {host} --from transfer", host=host)
    wrong: dict[str, Phrase] = {path: decode(reason) for path, reason in answer["wrong"].items()}
    total = len(cargo.items)
    told = phrase(
        "{count} of {total} {total:hash|hashes} {count:matches|match}",
        count=f"{total - len(wrong):,}",
        total=f"{total:,}",
    )
    if wrong:
        yield Check("files", "markers", "fail", seconds, Phrases((told, _named(wrong))), fix)
    else:
        yield Check("files", "markers", "ok", seconds, told)
    yield _ledger(cargo, answer["ledger"], wrong, fix)
    for outcome in cargo.round.plan.outcomes:
        if outcome.kind in ("applied", "adopted", "resolved"):
            yield _record(outcome, expected, answer["marks"], wrong, fix)


def _ledger(cargo: Cargo, told: Any, wrong: Mapping[str, Phrase], fix: Phrase) -> Check:
    wanted = None
    if _LEDGER in cargo.items:
        wanted = sorted({name for file in cargo.round.plan.files.values() for name in file.records})
    bad = {path: reason for path, reason in wrong.items() if path.startswith(_ORIGINALS)}
    if isinstance(told, dict):
        detail: Phrase = decode(told)
    elif told is None and wanted is not None:
        detail = phrase("is not there")
    elif wanted is None and told is not None:
        detail = phrase("names records that were not sent: {records}", records=", ".join(told))
    elif told != wanted:
        detail = phrase("names other records: {records}", records=", ".join(told))
    elif bad:
        return Check("ledger", "markers", "fail", 0.0, Phrases((phrase("pre-images are not whole"), _named(bad))), fix)
    elif wanted is None:
        return Check("ledger", "markers", "skip", 0.0, phrase("no record is applied there"))
    else:
        count = sum(path.startswith(_ORIGINALS) and not path.endswith(SUFFIX) for path in cargo.items)
        whole = "{records} {records:record|records}, {count} {count:pre-image|pre-images} whole: revert works there"
        told = phrase(whole, records=len(wanted), count=count)
        return Check("ledger", "markers", "ok", 0.0, told)
    return Check("ledger", "markers", "fail", 0.0, detail, fix)


def _record(
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
        return check("fail", _named(bad))
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


def _named(wrong: Mapping[str, Phrase]) -> Phrases:
    shown = [phrase("{path} {why}", path=path, why=reason) for path, reason in list(wrong.items())[:_NAMED]]
    more = [phrase("and {count} more", count=len(wrong) - _NAMED)] if len(wrong) > _NAMED else []
    return Phrases((*shown, *more), ", ")
