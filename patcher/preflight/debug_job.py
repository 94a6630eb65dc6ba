"""The last level of the ladder: the run script of the host's profile as a job, for as long as it may take."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from patcher import jobs
from patcher.checks import Check
from patcher.i18n import Phrases, phrase
from patcher.jobs.link import linked
from patcher.jobs.training import Wanted, launch, watch

if TYPE_CHECKING:
    from patcher.preflight import Wish
    from patcher.remote.host import Host
    from patcher.session.session import Session

BUDGET = 300.0
"""Seconds, unless the wish gives others."""


class _SpentError(Exception):
    """The job runs, and the time for it is over."""


def job_check(session: Session, host: Host, wish: Wish, before: Sequence[Check]) -> Check:
    """Render, start and follow the job, unless a check before it has failed: it would run into the same.

    A job that is not through within its budget is left running, and told so. Raises RefusedError where one runs
    already or the GPUs are in use, HostError where the host is lost.
    """
    failed = [check.name for check in before if check.status == "fail"]
    if failed:
        return Check("job", "job", "skip", 0.0, phrase("not started: {names} failed", names=", ".join(failed)))
    started, budget = time.monotonic(), wish.budget or BUDGET

    def spend(_: float) -> None:
        if time.monotonic() - started > budget:
            raise _SpentError

    named = {"TRAIN_FILES": wish.data, "VAL_FILES": wish.data, "MODEL_PATH": wish.model}
    host = replace(host, env={**host.env, **{name: value for name, value in named.items() if value}})
    with linked(host, session.tree.root) as link:
        job = launch(session, link, Wanted(host, host.profile))
        try:
            verdict = watch(link, job, lambda _: None, spend)
        except _SpentError:
            verdict = jobs.verdict_now(link.again(), job)
    seconds = time.monotonic() - started
    match verdict.kind:
        case "ok":
            return Check("job", "job", "ok", seconds, verdict.detail)
        case "running":
            return Check("job", "job", "warn", seconds, verdict.detail, f"uky-patch job attach {host.words}")
        case _:
            detail = Phrases((verdict.detail, *verdict.lines))
            return Check("job", "job", "fail", seconds, detail, f"uky-patch job logs {host.words}")
