"""Prove on the host that its tree is the one that was planned."""

from __future__ import annotations

from patcher.i18n import phrase
from patcher.migrate.verifying import verify
from patcher.migrate.walk import Outcome, Walk, found


def run(walk: Walk) -> Outcome:
    """Hashes, markers and ledger there. One failed check fails the step."""
    walk.received()
    checks = verify(walk.connection, found(walk.cargo))
    walk.checks += checks
    failed = [check for check in checks if check.status == "fail"]
    if failed:
        notes = tuple(phrase("{name}: {detail}", name=check.name, detail=check.detail) for check in failed)
        fix = f"uky-patch migrate {walk.host.name} --from transfer"
        return Outcome(phrase("{count} {count:check|checks} failed", count=len(failed)), "fail", fix, notes)
    files = len(found(walk.cargo).items)
    records = sum(check.status == "ok" and not check.name.startswith("file") for check in checks)
    return Outcome(
        phrase(
            "{records} {records:check|checks} {records:holds|hold}, "
            "{files} of {files} {files:hash|hashes} {files:matches|match}",
            records=records,
            files=files,
        )
    )
