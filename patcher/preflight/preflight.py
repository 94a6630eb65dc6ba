"""The entry of the checks above the markers: environment, data, model, engine, job; here and on a host alike.

The way of the data:

1. `arguments` gathers what the checks need: interpreter, variables of the run script, paths, GPUs, budgets.
2. The agent's verb `preflight` (`agent.stages`) runs check programs on the machine, level after level, with the
   interpreter that trains (`agent.run_programs`, `agent.programs`).
3. Each verdict comes back as an event and becomes a `Check`, without secrets.
4. The last level, `check_job`, runs the host's profile as a job for as long as it may take.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patcher import jobs
from patcher.checks import LEVELS, Check, Level
from patcher.i18n import Phrase, Phrases, phrase
from patcher.i18n.codec import decode
from patcher.jobs.run import RunRequest, follow_and_keep, launch
from patcher.profiles import version_settings
from patcher.profiles.layout import layout_on
from patcher.remote.compute_node import ask_where_it_trains
from patcher.remote.connection import Connection
from patcher.remote.host import Host
from patcher.remote.link import linked
from patcher.remote.survey import Survey
from patcher.secrets.redacting import Redactor
from patcher.terminal.printing import say

if TYPE_CHECKING:
    from patcher.session.session import Session

_TRUST = "actor_rollout_ref.model.trust_remote_code=true"


@dataclass(frozen=True, slots=True)
class PreflightOptions:
    """What the command line says about a preflight. Paths are the machine's own."""

    data: str | None = None
    """A data file, or the folder of one."""
    model: str | None = None
    """A model's folder, or one that holds models."""
    budget: float | None = None
    """Seconds for each level, in place of its own."""


_ENGINE_MINUTES = 5
"""What the level engine may take beyond the others, for the limit that Slurm is given."""


def run_preflight(
    connection: Connection,
    host: Host,
    survey: Survey,
    level: Level,
    *,
    on_check: Callable[[Check], None],
    wish: PreflightOptions | None = None,
) -> tuple[Check, ...]:
    """The checks from `env` up to `level`, each given to `on_check` when it is there. `begin` has opened the tree.

    The markers and the job are no part of it. Where Slurm starts the host's jobs, a compute node is checked; that it is
    waited for is told on standard error. Raises CutError, and RefusedError where the tree is not there, or no node is
    given.
    """
    checks: list[Check] = []

    def take(check: Check) -> None:
        checks.append(check)
        on_check(check)

    if level == "markers":
        return ()
    take(_python(survey))
    if survey.interpreter is None:
        return tuple(checks)
    redactor = Redactor(host.secrets.values())

    def on_event(event: Mapping[str, Any], _: bytes) -> None:
        take(_check(event, redactor))

    args = arguments(host, survey, level, wish or PreflightOptions())
    minutes = 5 + sum(map(int, args["budgets"].values())) // 60 + (_ENGINE_MINUTES if args["level"] == "engine" else 0)
    ask_where_it_trains(
        connection,
        host,
        survey,
        "preflight",
        args,
        minutes=minutes,
        on_event=on_event,
        on_queue=lambda why: say(why, err=True),
    )
    return tuple(checks)


def arguments(host: Host, survey: Survey, level: Level, wish: PreflightOptions) -> dict[str, Any]:
    """What the agent is asked; its own side of it is in `patcher.preflight.agent.stages`."""
    assert survey.interpreter is not None
    where = layout_on(host, survey, Path(survey.folder.path))
    env = variables(host, survey)
    budgets = {} if wish.budget is None else dict.fromkeys(LEVELS, wish.budget)
    return {
        "level": "engine" if level == "job" else level,
        "python": survey.interpreter.python,
        "env": env,
        "data": wish.data or env.get("TRAIN_FILES"),
        "model": wish.model or env.get("MODEL_PATH"),
        "usual": {name: where.paths[name] for name in ("DATA_OUTPUT_DIR", "QWEN_VL_3B_BASE", "MODEL_BASE")},
        "host": None if host.here else host.name,
        "gpus": len(survey.gpus) if host.slurm is None else None,
        "cuda": survey.cuda if host.slurm is None else None,
        "trust": any(text.lstrip("+").lower() == _TRUST for text in host.overrides),
        "budgets": budgets,
        **host.setup_args,
    }


def variables(host: Host, survey: Survey) -> dict[str, str]:
    """The variables that the host's run script sets; secrets are none of them."""
    assert survey.interpreter is not None
    versions = {name: package.version for name, package in survey.interpreter.packages.items()}
    return {**version_settings.variables(host.profile, versions, []), **host.env}


def _python(survey: Survey) -> Check:
    started = time.monotonic()
    found = survey.interpreter
    if found is None:
        passed = survey.passed[0] if survey.passed else ""
        message = phrase("no Python with vllm and torch was found; {passed}", passed=passed)
        name_it = phrase("name the one to train with: --python, or python = in the host's table")
        return Check("python", "env", "fail", time.monotonic() - started, message, name_it)
    message = phrase("{version} at {path}", version=found.version, path=found.python)
    old = tuple(int(part) for part in found.version.split(".")[:2] if part.isdigit()) < (3, 10)
    fix = phrase("verl needs Python 3.10 or later") if old else ""
    return Check("python", "env", "fail" if old else "ok", time.monotonic() - started, message, fix)


def _check(event: Mapping[str, Any], redactor: Redactor) -> Check:
    name, level, status = (redactor.text(str(event[key])) for key in ("name", "level", "status"))
    detail, fix = (_without_secrets(decode(event[key]), redactor) for key in ("detail", "fix"))
    return Check(name, level, status, event["seconds"], detail, fix)  # type: ignore[arg-type]


def _without_secrets(message: Phrase | Phrases | str, redactor: Redactor) -> Phrase | Phrases | str:
    """The message, or its text where secrets had to be taken out.

    It is looked at as people read it: in the template `{count} {count:token|tokens}` the end looks like `token: VALUE`.
    """
    text = str(message)
    shown = redactor.text(text)
    return message if shown == text else shown


BUDGET = 300.0
"""Seconds, unless the wish gives others: what the documents give for a whole debug run."""


class _SpentError(Exception):
    """The job runs, and the time for it is over."""


def check_job(session: Session, host: Host, wish: PreflightOptions, before: Sequence[Check]) -> Check:
    """Render, start and follow the job, unless a check before it has failed: it would run into the same.

    A job that is not through within its budget is left running, and the report says so. Raises RefusedError where one
    runs already or the GPUs are in use, HostError where the host is lost.
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
        job = launch(session, link, RunRequest(host, host.profile))
        try:
            verdict = follow_and_keep(link, job, jobs.JobListener(time=spend))
        except _SpentError:
            verdict = jobs.verdict_now(link.reconnect(), job)
    seconds = time.monotonic() - started
    match verdict.kind:
        case "ok":
            return Check("job", "job", "ok", seconds, verdict.detail)
        case "running":
            return Check("job", "job", "warn", seconds, verdict.detail, f"uky-patch job attach {host.words}")
        case _:
            detail = Phrases((verdict.detail, *verdict.lines))
            return Check("job", "job", "fail", seconds, detail, f"uky-patch job logs {host.words}")
