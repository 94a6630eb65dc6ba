"""Climb the ladder on a machine: one request to its agent, checks as they come. The job is no part of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patcher.checks import LEVELS, Check, Level
from patcher.i18n import phrase
from patcher.i18n.decoding import heard
from patcher.remote.connection import Connection
from patcher.remote.host import Host
from patcher.remote.survey import Survey
from patcher.secrets.redacting import Redactor

_TRUST = "actor_rollout_ref.model.trust_remote_code=true"


@dataclass(frozen=True, slots=True)
class Wish:
    """What the command line says about a climb. Paths are the machine's own."""

    data: str | None = None
    """A data file, or the folder of one."""
    model: str | None = None
    """A model's folder, or one that holds models."""
    budget: float | None = None
    """Seconds for each level, in place of its own."""


def climb(
    connection: Connection,
    host: Host,
    survey: Survey,
    level: Level,
    *,
    on_check: Callable[[Check], None],
    wish: Wish | None = None,
) -> tuple[Check, ...]:
    """The checks from `env` up to `level`, each told to `on_check` when it is there. `begin` has opened the tree.

    The markers and the job are no part of it. Raises CutError, and RefusedError where the tree is not there.
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

    def hear(event: Mapping[str, Any], _: bytes) -> None:
        take(_check(redactor.value(event)))

    args = arguments(host, survey, level, wish or Wish())
    connection.channel.ask("climb", on_event=hear, **args)
    return tuple(checks)


def arguments(host: Host, survey: Survey, level: Level, wish: Wish) -> dict[str, Any]:
    """What the agent is asked; its own side of it is in `patcher.preflight.agent.climbing`."""
    from patcher.profiles.layout import layout_on

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
        "gpus": len(survey.gpus),
        "cuda": survey.cuda,
        "trust": any(text.lstrip("+").lower() == _TRUST for text in host.overrides),
        "budgets": budgets,
    }


def variables(host: Host, survey: Survey) -> dict[str, str]:
    """The variables that the host's run script sets; secrets are none of them."""
    from patcher.profiles import version_settings

    assert survey.interpreter is not None
    versions = {name: package.version for name, package in survey.interpreter.packages.items()}
    return {**version_settings.variables(host.profile, versions, []), **host.env}


def _python(survey: Survey) -> Check:
    started = time.monotonic()
    found = survey.interpreter
    if found is None:
        passed = survey.passed[0] if survey.passed else ""
        told = phrase("no Python with vllm and torch was found; {passed}", passed=passed)
        name_it = phrase("name the one to train with: --python, or python = in the host's table")
        return Check("python", "env", "fail", time.monotonic() - started, told, name_it)
    told = phrase("{version} at {path}", version=found.version, path=found.python)
    old = tuple(int(part) for part in found.version.split(".")[:2] if part.isdigit()) < (3, 10)
    fix = phrase("verl needs Python 3.10 or later") if old else ""
    return Check("python", "env", "fail" if old else "ok", time.monotonic() - started, told, fix)


def _check(told: Mapping[str, Any]) -> Check:
    return Check(
        told["name"], told["level"], told["status"], told["seconds"], heard(told["detail"]), heard(told["fix"])
    )
