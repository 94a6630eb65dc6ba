"""The component test on the host, in the interpreter that will train."""

from __future__ import annotations

import hashlib
import json

from patcher.checks import Check
from patcher.i18n import Phrases, phrase
from patcher.migrate.journal import Proven
from patcher.migrate.walk import Outcome, Walk, found
from patcher.preflight.preflight import run_preflight
from patcher.tree.ledger import now

_BUILT_ON = ("interpreter", "gpus", "driver", "cuda", "libcuda", "shm", "kernel")
"""What of a survey the environment depends on."""


def run(walk: Walk) -> Outcome:
    """The ladder up to its level data; not again where nothing has changed since it was climbed to the end."""
    walk.received()
    key = fingerprint(walk)
    before = walk.before.proven if walk.before is not None else None
    if before is not None and key == before.key and not walk.order.names("environment"):
        walk.proven = before
        again = f"uky-patch verify --level data --host {walk.host.name}"
        told = phrase("nothing has changed since {at}: {found}", at=before.at, found=before.found)
        return Outcome(told, notes=(phrase("to look again all the same: {command}", command=again),))
    checks = run_preflight(walk.connection, walk.host, found(walk.survey), "data", on_check=walk.listeners.check)
    walk.checks += checks
    notes = tuple(
        phrase("{name}: {detail}  ->  {fix}", name=check.name, detail=check.detail, fix=check.fix)
        if check.fix
        else phrase("{name}: {detail}", name=check.name, detail=check.detail)
        for check in checks
        if check.status in ("fail", "warn")
    )
    failed = sum(check.status == "fail" for check in checks)
    warned = sum(check.status == "warn" for check in checks)
    names = Phrases(tuple(check.name for check in checks if check.status == "ok"), ", ")
    if failed:
        fix = f"uky-patch verify --level data --host {walk.host.name}"
        return Outcome(
            phrase("{failed} of {all} {all:check|checks} failed", failed=failed, all=len(checks)), "fail", fix, notes
        )
    if all(came_to_an_end(check) for check in checks):
        walk.proven = Proven(key, now(), str(names))
    return Outcome(names, "warn" if warned else "ok", notes=notes)


def came_to_an_end(check: Check) -> bool:
    """Whether the check has a verdict, and was not cut short by its budget."""
    told = str(check.detail)
    return not told.startswith(("slow: ", "not reached"))


def fingerprint(walk: Walk) -> str:
    """A digest of all that the verdict rests on: the host, its interpreter, the tree there, and its rendered files."""
    survey, cargo = found(walk.survey), walk.cargo
    host = walk.host
    parts = [
        [str(getattr(survey, name)) for name in _BUILT_ON],
        sorted((path, item.sha256) for path, item in cargo.items.items()) if cargo is not None else None,
        [
            (put.path, put.how in ("kept", "foreign") and put.there, put.rendered and put.rendered.text)
            for put in walk.put
        ],
        [host.python, host.data, host.models, host.output, sorted(host.env.items())],
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
