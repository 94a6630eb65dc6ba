"""The verb `climb`: the levels from the environment to the engine, up to the one named, a verdict for each check."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from typing import TYPE_CHECKING, Any

from patcher.messages import Refusal, phrase
from patcher.preflight.agent import machine
from patcher.preflight.agent.ending import Verdict
from patcher.preflight.agent.rungs import RUNGS, Facts, Rung, hindrance
from patcher.preflight.agent.running import Launch, run

if TYPE_CHECKING:
    from patcher.remote.agent.serving import Request

QUIET = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
}
"""For checks alone: nothing is fetched, and nobody is told."""
_NOTHING = 0.1


def climb(request: Request) -> dict[str, Any]:
    """Each verdict is an event when it is there; the answer holds them all.

    Arguments: `level`, `python`, `env` (variables of the run script), `data`, `model`, `usual` (paths by constant,
    where the tree has no git_ignore.py), `gpus` (how many the driver tells of), `cuda` (the driver's newest), `trust`
    (in code of the model's own), `budgets` by level in seconds.
    """
    given = {name: request.args.get(name) for name in ("data", "model", "cuda", "trust", "env", "usual")}
    given.update(env=given["env"] or {}, usual=given["usual"] or {}, gpus=request.args.get("gpus") or 0, cpus=_cpus())
    root = str(request.kept["root"])
    if not os.path.isdir(root):
        raise Refusal("no-tree", phrase("{path}: no such folder", path=root))
    facts: Facts = {"given": given, "failed": set()}
    scratch = tempfile.mkdtemp(prefix="uky-check-", dir="/tmp")
    try:
        python = request.args["python"]
        launch = Launch(python, root, environment(python, root, dict(given["env"] or {})), scratch)
        # torch makes this folder when it is imported, and would leave it in /tmp.
        launch.env.setdefault("TORCHINDUCTOR_CACHE_DIR", os.path.join(scratch, "inductor"))
        return {"checks": _climb(request, facts, launch)}
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _climb(request: Request, facts: Facts, launch: Launch) -> list[Verdict]:
    budgets = request.args.get("budgets") or {}
    verdicts: list[Verdict] = []
    for rung in RUNGS:

        def tell(verdict: Verdict, level: str = rung.level) -> None:
            facts.update(verdict.pop("values", None) or {})
            if verdict["status"] == "fail":
                facts["failed"].add(verdict["name"])
            verdict["level"] = level
            verdicts.append(verdict)
            request.emit(**verdict)

        if rung.level == "env":
            tell(machine.limits())
            tell(machine.triton_cache(launch.env))
        _level(rung, facts, launch, float(budgets.get(rung.level) or rung.budget), tell, request)
        if rung.level == request.args["level"] or request.gone():
            break
    return verdicts


def _level(rung: Rung, facts: Facts, launch: Launch, budget: float, tell: Any, request: Request) -> None:
    started = time.monotonic()
    for phase in rung.phases:
        wanted = []
        for program in phase(facts):
            why = hindrance(program, facts)
            if why is None:
                wanted.append(program)
                continue
            for name in program.checks:
                tell({"name": name, "status": "skip", "seconds": 0.0, "detail": why, "fix": None})
        spent = time.monotonic() - started
        run(wanted, launch, budget if spent < _NOTHING else max(budget - spent, 1.0), tell, request.gone)


def environment(python: str, root: str, env: dict[str, str]) -> dict[str, str]:
    """What a check's process sees: this process's variables, the run script's, the tree and the interpreter first."""
    found = dict(os.environ, **env)
    found.update(QUIET)
    found["PYTHONPATH"] = os.pathsep.join([root] + [part for part in [found.get("PYTHONPATH")] if part])
    found["PATH"] = os.pathsep.join([os.path.dirname(python), found.get("PATH") or os.defpath])
    found.pop("PYTHONHOME", None)
    return found


def _cpus() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1
