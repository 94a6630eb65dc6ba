"""The agent's answer to `stacks` as processes, each with its threads, role (rank, engine, loader, …) and rank."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from patcher.preflight.agent.run_programs import threads as dumped
from patcher.watch.stacks.frame_meaning import frame, own_part
from patcher.watch.stacks.processes import Lock, MachineStacks, Process, Rank, Role, Thread

# The titles that processes give themselves: `VLLM::EngineCore_DP0`, `VLLM::Worker_TP1`, `sglang::scheduler_TP0`; and
# those of Ray's actors, `ray::WorkerDict.actor_rollout_update_actor`.
_ENGINE = re.compile(r"VLLM::(?P<what>EngineCore|Worker)(?P<rest>\S*)|sglang::(?P<other>\S+)", re.IGNORECASE)
_PARALLEL = re.compile(r"_(?P<group>TP|PP|DP|EP)(?P<number>\d+)", re.IGNORECASE)
_RAY = re.compile(r"ray::(?P<actor>[\w.:<>]+)")
_TRAINS = ("WorkerDict", "FusedWorker", "ActorRolloutRefWorker", "CriticWorker", "RefWorker", "RewardModelWorker")
_LOADS = ("torch/utils/data/_utils/worker.py", "torch/utils/data/_utils/pin_memory.py")
_HELPS = (
    "resource_tracker",
    "semaphore_tracker",
    "compile_worker",
    "multiprocessing.forkserver",
    "tensorboard",
    "wandb",
)


def assign_ranks(found: Sequence[Process], answers: Sequence[Mapping[str, Any]]) -> tuple[Process, ...]:
    """The processes with role and rank. `answers`: what the agent answered about each, in the same order."""
    variables = {one["pid"]: one["env"] for one in answers}
    names = {one["pid"]: one["name"] for one in answers}
    by_pid = {process.pid: process for process in found}
    inherited = {pid for pid in by_pid if _inherits(by_pid[pid], by_pid, variables)}
    done = {}
    for pid, process in by_pid.items():
        role, rank = _role(process, variables[pid], names[pid], pid in inherited, by_pid)
        done[pid] = replace(process, role=role, rank=rank)
    return tuple(_of_parent(done[process.pid], done) for process in found)


def _inherits(process: Process, by_pid: Mapping[int, Process], variables: Mapping[int, Mapping[str, str]]) -> bool:
    """Whether it only has the rank that its parent has."""
    parent = by_pid.get(process.parent)
    if parent is None or parent.role in ("system", "helper"):
        return False
    own, above = variables[process.pid], variables[parent.pid]
    return "RANK" in own and own.get("RANK") == above.get("RANK")


def _role(
    process: Process, variables: Mapping[str, str], name: str, inherits: bool, by_pid: Mapping[int, Process]
) -> tuple[Role, Rank]:
    """What a process is of the job, and its rank: by its title, its frames, and the variables that the training set."""
    if process.role in ("system", "helper"):
        return process.role, process.rank
    if found := _ENGINE.search(process.title):
        parallel = _PARALLEL.findall(found["rest"] or found["other"] or "")
        group, number = parallel[-1] if parallel else ("", "")
        return "engine", Rank(int(number) if number else None, None, group.upper())
    if _is_loader(process, name, by_pid):
        return "loader", Rank()
    if any(text in process.title for text in _HELPS):
        return "helper", Rank()
    # What a rank starts, such as a compiler, has its RANK in its environment too; it is no second rank of that number.
    number, size = _number(variables.get("RANK")), _number(variables.get("WORLD_SIZE"))
    if number is not None and not inherits:
        return "rank", Rank(number, size, variables.get("WG_PREFIX", ""))
    if actor := _RAY.match(process.title):
        return "rank" if actor["actor"].partition(".")[0] in _TRAINS else "worker", Rank()
    if process.parent not in by_pid or by_pid[process.parent].role in ("system", "helper"):
        return "driver", Rank()
    return "worker", Rank()


def _is_loader(process: Process, name: str, by_pid: Mapping[int, Process]) -> bool:
    main = process.main
    if name.startswith("pt_data_worker") or any(
        frame.path.startswith(_LOADS) for frame in (main.frames if main is not None else ())
    ):
        return True
    parent = by_pid.get(process.parent)
    waits = parent.main.frames if parent is not None and parent.main is not None else ()
    # Without a stack of its own, a worker is known by its parent: a process that forked it and is in its DataLoader.
    forked = parent is not None and parent.title == process.title
    return forked and any(frame.path.startswith("torch/utils/data/dataloader.py") for frame in waits)


def _of_parent(process: Process, done: Mapping[int, Process]) -> Process:
    """A data loader's rank is that of the process that it reads for."""
    parent = done.get(process.parent)
    if process.role == "loader" and parent is not None and parent.rank.number is not None:
        return replace(process, rank=parent.rank)
    return process


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None


def read_stacks(answer: Mapping[str, Any], host: str, root: str = "") -> MachineStacks:
    """The answer of `stacks`; `host` is what the machine is called here, `root` where the tree is on it."""
    found = assign_ranks([process(one, host, root) for one in answer["processes"]], answer["processes"])
    locks = [
        Lock(one["path"], {int(pid): name for pid, name in one["holders"].items()}, tuple(one["waiters"]))
        for one in answer["locks"]
    ]
    return MachineStacks(host, found, locks, answer["spy"])


def process(facts: Mapping[str, Any], host: str, root: str = "") -> Process:
    """One process; role and rank are found by comparing all of them later."""
    return Process(
        pid=facts["pid"],
        host=host,
        title=facts["title"] or facts["name"],
        role="system" if facts["system"] else "worker" if facts["python"] else "helper",
        parent=facts["parent"],
        state=facts["state"],
        how=facts.get("how", "proc"),
        threads=_threads(facts, root),
        waits=facts["waits"],
        kernel=tuple(facts["kernel"]),
        closed=facts["closed"],
        failed=tuple((name, why) for name, why in facts.get("failed") or ()),
    )


def _threads(facts: Mapping[str, Any], root: str) -> tuple[Thread, ...]:
    match facts.get("stack"):
        case str() as text:
            return of_faulthandler(text, root)
        case list() as found:
            return of_spy(found, root)
        case _:
            return ()


def of_spy(threads: Sequence[Mapping[str, Any]], root: str = "") -> tuple[Thread, ...]:
    """Threads as py-spy gives them, the agent having left out what is not needed."""
    return tuple(
        Thread(
            own_part([frame(path, name, line, root) for path, name, line in one["frames"]]), one["name"], one["main"]
        )
        for one in threads
    )


def of_faulthandler(text: str, root: str = "") -> tuple[Thread, ...]:
    """Threads of a dump that faulthandler has written; the main one is the last."""
    found = dumped(text)
    return tuple(
        Thread(
            own_part([frame(path, function, int(line), root) for path, line, function in one.frames]),
            one.name or ("MainThread" if number == len(found) else ""),
            number == len(found),
        )
        for number, one in enumerate(found, 1)
    )
