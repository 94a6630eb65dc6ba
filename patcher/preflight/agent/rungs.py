"""The levels above the markers: the programs of each, in phases, and what stands in a program's way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Dict, NamedTuple

from patcher.messages import Message, phrase
from patcher.preflight.agent.running import Program

Facts = Dict[str, Any]
"""What was given, and what checks have found out: data, model, snapshot; `failed`: the names of checks that failed."""
MEMORY = 0.3
LENGTH = 512
"""What the engine gets: the share of each GPU's memory, and the longest sequence."""

FEW = 4
"""Up to so many CPUs, imports that share much are better made one after another in one process."""


class Rung(NamedTuple):
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
        Program(["places"], ["git_ignore.py", "data"], {name: given[name] for name in ("data", "model", "usual")}),
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


def _tokenizer(facts: Facts) -> list[Program]:
    options = {"snapshot": facts.get("snapshot"), "trust": facts["given"]["trust"]}
    return [Program(["tokenizer"], ["tokenizer", "processor"], options)]


def _plain_path(facts: Facts) -> list[Program]:
    """The modules of the plain job: their imports take longer than all of the level env may."""
    machine = {"gpus": facts["given"]["gpus"]}
    programs = [
        Program(["trainer"], ["verl trainer", "attention"], machine),
        Program(["rollout"], ["verl rollout"], machine),
    ]
    return _together(programs, facts)


def _engine(facts: Facts) -> list[Program]:
    options = {"snapshot": facts.get("snapshot"), "trust": facts["given"]["trust"]}
    return [Program(["engine"], ["engine"], dict(options, memory=MEMORY, length=LENGTH))]


RUNGS = (
    Rung("env", 10.0, [_env]),
    Rung("data", 10.0, [_data]),
    Rung("model", 30.0, [_weights, lambda facts: [*_tokenizer(facts), *_plain_path(facts)]]),
    Rung("engine", 120.0, [_engine]),
)


def hindrance(program: Program, facts: Facts) -> Message | None:
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
