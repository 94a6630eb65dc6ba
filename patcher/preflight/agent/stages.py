"""The verb `preflight`: the levels from the environment to the engine, up to the one named, a verdict for each check.

Each level is a `Stage`: its programs in phases, and a budget in seconds. A program is left out where what it needs has
failed before.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Dict, NamedTuple

from patcher.jobs.agent.processes import gpus_in_use
from patcher.messages import Message, Refusal, phrase
from patcher.preflight.agent.run_programs import Launch, Program, run_programs
from patcher.preflight.agent.verdicts import Verdict
from patcher.remote.agent import gpus
from patcher.remote.agent.facts import UnknownFact
from patcher.remote.agent.setup import set_up

if TYPE_CHECKING:
    from patcher.remote.agent.serving import Request

SHARED_MEMORY = 1 << 30
OPEN_FILES = 8192
PROCESSES = 4096
"""What Ray, data loaders and NCCL need at the least: bytes in /dev/shm, open files, processes and threads. Set by hand:
a container of docker has 64 MB of the first, a login shell 1,024 of the second."""
HOME_CACHE = "~/.triton/cache"


def limits() -> dict[str, Any]:
    """One verdict for /dev/shm and the limits of this user."""
    import resource

    started = time.monotonic()
    try:
        status = os.statvfs("/dev/shm")
        shm: int | None = status.f_blocks * status.f_frsize
    except OSError:
        shm = None
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    processes = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    fields = {
        "shm": "-" if shm is None else f"{shm / (1 << 30):.1f} GiB",
        "files": _shown_limit(files),
        "processes": _shown_limit(processes),
    }
    message = phrase(
        "/dev/shm {shm}, {files} open {files:file|files}, {processes} {processes:process|processes}", **fields
    )
    fix = None
    if shm is None or shm < SHARED_MEMORY:
        fix = phrase("give the container more shared memory: --shm-size=16g; NCCL, Ray and data loaders use it")
    elif 0 <= files < OPEN_FILES:
        fix = phrase("ulimit -n 65536, in the run script or for the user")
    elif 0 <= processes < PROCESSES:
        fix = phrase("ulimit -u 65536; else threads cannot be made: pthread_create failed")
    return _verdict_on_machine("limits", "ok" if fix is None else "warn", message, fix, started)


def triton_cache(env: dict[str, str]) -> dict[str, Any]:
    """Whether Triton can write where it caches what it has built."""
    started = time.monotonic()
    folder = env.get("TRITON_CACHE_DIR") or os.path.expanduser(HOME_CACHE)
    at = os.path.abspath(folder)
    while not os.path.lexists(at):
        at = os.path.dirname(at)
    fix: Message | None = phrase("export TRITON_CACHE_DIR=FOLDER that this user can write to")
    if not os.path.isdir(at):
        message = phrase("{folder} cannot be made: {at} is no folder", folder=folder, at=at)
    elif not os.access(at, os.W_OK | os.X_OK):
        message = phrase("{folder} cannot be written: {at} belongs to somebody else", folder=folder, at=at)
    elif _free(at) < 100 << 20:
        message = phrase("{folder}: the disk is full", folder=folder)
    else:
        message, fix = phrase("{folder} can be written", folder=folder), None
    return _verdict_on_machine("triton cache", "ok" if fix is None else "fail", message, fix, started)


def _free(folder: str) -> int:
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize


def _shown_limit(value: int) -> str:
    return "∞" if value < 0 else f"{value:,}"


def _verdict_on_machine(name: str, status: str, detail: Any, fix: Any, started: float) -> dict[str, Any]:
    seconds = time.monotonic() - started
    return {"name": name, "status": status, "seconds": seconds, "detail": detail, "fix": fix, "values": {}}


Facts = Dict[str, Any]
"""What was given, and what checks have found out: data, model, snapshot; `failed`: the names of checks that failed."""
MEMORY = 0.3
LENGTH = 512
"""What the engine gets: the share of each GPU's memory, and the longest sequence. Set by hand: enough to start with a
model of 7B on 80 GB, and little enough to start beside others."""

_PLACES = ("data", "model", "usual", "host")
"""The arguments that the program `places` gets."""
FEW = 4
"""Up to so many CPUs, imports that share much are better made one after another in one process."""


class Stage(NamedTuple):
    """One level. `budget` is for all of it, in seconds; a phase starts when the one before it has ended."""

    level: str
    budget: float
    phases: list[Callable[[Facts], list[Program]]]


def _env(facts: Facts) -> list[Program]:
    given = facts["given"]
    machine = {"gpus": given["gpus"], "cuda": given["cuda"], "variables": sorted(given["env"])}
    imports = [
        Program(["engines"], ["torch", "gpus", "vllm"], machine),
        Program(["tree"], ["verl"], machine),
    ]
    return [
        *_together(imports, facts),
        Program(["workers"], ["ray", "ray workers"], {"env": given["env"]}),
        Program(["places"], ["git_ignore.py", "data"], {name: given[name] for name in _PLACES}),
        Program(["packages"], ["packages"], {}),
        Program(["linker"], ["triton"], machine),
    ]


def _together(programs: list[Program], facts: Facts) -> list[Program]:
    """One after another in one process where CPUs are few: what they import is much the same."""
    if facts["given"]["cpus"] > FEW:
        return programs
    parts, checks = [one.parts[0] for one in programs], [name for one in programs for name in one.checks]
    return [Program(parts, checks, programs[0].args)]


def _data(facts: Facts) -> list[Program]:
    return [Program(["rows"], ["rows", "columns"], {"data": facts.get("data")})]


def _weights(facts: Facts) -> list[Program]:
    return [Program(["weights"], ["config", "weights"], {"model": facts.get("model")})]


def _model(facts: Facts) -> list[Program]:
    """The tokenizer, and the modules of the plain job: their imports take longer than all of the level env may."""
    machine = {"gpus": facts["given"]["gpus"]}
    imports = [
        Program(["trainer"], ["verl trainer", "attention"], machine),
        Program(["rollout"], ["verl rollout"], machine),
    ]
    return [Program(["tokenizer"], ["tokenizer", "processor"], _snapshot(facts)), *_together(imports, facts)]


def _engine(facts: Facts) -> list[Program]:
    return [Program(["engine"], ["engine"], dict(_snapshot(facts), memory=MEMORY, length=LENGTH))]


def _snapshot(facts: Facts) -> dict[str, Any]:
    """The model's folder, and whether code of its own may run."""
    return {"snapshot": facts.get("snapshot"), "trust": facts["given"]["trust"]}


STAGES = (
    Stage("env", 10.0, [_env]),
    Stage("data", 10.0, [_data]),
    Stage("model", 30.0, [_weights, _model]),
    Stage("engine", 120.0, [_engine]),
)


def reason_to_skip(program: Program, facts: Facts) -> Message | None:
    """Why a program need not be started; None where nothing stands in its way."""
    failed = facts["failed"]
    if program.parts[0] == "rows" and ("data" in failed or not facts.get("data")):
        return phrase("no data file")
    if program.parts[0] == "weights" and not facts.get("model"):
        return phrase("no model named: neither on the command line, nor for the host, nor in git_ignore.py")
    if program.parts[0] in ("tokenizer", "engine") and not facts.get("snapshot"):
        return phrase("no model folder")
    needed: list[str] = [name for name in ("torch", "gpus", "vllm", "weights", "tokenizer") if name in failed]
    if program.parts[0] == "engine" and needed:
        return phrase("not started: {names} failed", names=", ".join(needed))
    return None


QUIET = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
}
"""For checks alone: nothing is fetched, and no usage statistics are sent."""
_NOTHING = 0.1
"""Seconds below which a phase counts as the first one, which has the whole budget."""


def preflight(request: Request) -> dict[str, Any]:
    """Each verdict is an event when it is there; the answer holds them all.

    Arguments: `level`, `python`, `env` (variables of the run script), `data`, `model`, `usual` (paths by constant,
    where the tree has no git_ignore.py), `host` (its name, None for the user's own machine), `gpus` (how many the
    driver tells of; None: found out here, with `cuda`), `cuda` (the driver's newest), `trust` (in code of the model's
    own), `budgets` by level in seconds, `setup` and `login` (see `set_up`).
    """
    set_up(request)
    given = {name: request.args.get(name) for name in (*_PLACES, "cuda", "trust", "env")}
    given.update(env=given["env"] or {}, usual=given["usual"] or {}, gpus=request.args.get("gpus"), cpus=_cpus())
    if given["gpus"] is None:
        given.update(gpus=len(gpus_in_use()), cuda=_newest_cuda())
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
        return {"checks": _run_stages(request, facts, launch)}
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _run_stages(request: Request, facts: Facts, launch: Launch) -> list[Verdict]:
    budgets = request.args.get("budgets") or {}
    verdicts: list[Verdict] = []
    for stage in STAGES:

        def tell(verdict: Verdict, level: str = stage.level) -> None:
            facts.update(verdict.pop("values", None) or {})
            if verdict["status"] == "fail":
                facts["failed"].add(verdict["name"])
            verdict["level"] = level
            verdicts.append(verdict)
            request.emit(**verdict)

        if stage.level == "env":
            tell(limits())
            tell(triton_cache(launch.env))
        _run_stage(stage, facts, launch, float(budgets.get(stage.level) or stage.budget), tell, request)
        if stage.level == request.args["level"] or request.gone():
            break
    return verdicts


def _run_stage(stage: Stage, facts: Facts, launch: Launch, budget: float, tell: Any, request: Request) -> None:
    started = time.monotonic()
    for phase in stage.phases:
        wanted = []
        for program in phase(facts):
            why = reason_to_skip(program, facts)
            if why is None:
                wanted.append(program)
                continue
            for name in program.checks:
                tell({"name": name, "status": "skip", "seconds": 0.0, "detail": why, "fix": None})
        spent = time.monotonic() - started
        run_programs(wanted, launch, budget if spent < _NOTHING else max(budget - spent, 1.0), tell, request.gone)


def _newest_cuda() -> str | None:
    """The newest CUDA that the driver supports; None where that is unknown."""
    try:
        return gpus.driver()["cuda"]
    except UnknownFact:
        return None


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
