"""Turn the agent's answer to `stacks` into processes, each with its threads, role (rank, engine, loader, …) and
rank."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from patcher.preflight.agent.run_programs import threads as dumped_threads
from patcher.watch.stacks.frame_meaning import own_part, shown_frame
from patcher.watch.stacks.processes import Lock, MachineStacks, Process, Rank, Role, Thread

# Titles that processes give themselves: `VLLM::EngineCore_DP0`, `VLLM::Worker_TP1`, `sglang::scheduler_TP0`; Ray's
# actors have `ray::WorkerDict.actor_rollout_update_actor`.
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
    """Add role and rank to processes. `answers`: the agent's facts about each, in the same order."""
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
    """Whether it has its rank only because it inherited the environment of its parent."""
    parent = by_pid.get(process.parent)
    if parent is None or parent.role in ("system", "helper"):
        return False
    own, above = variables[process.pid], variables[parent.pid]
    return "RANK" in own and own.get("RANK") == above.get("RANK")


def _role(
    process: Process, variables: Mapping[str, str], name: str, inherits: bool, by_pid: Mapping[int, Process]
) -> tuple[Role, Rank]:
    """The role and rank of a process, by its title, its frames, and the environment variables of the training."""
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
    # A program that a rank starts, such as a compiler, inherits its RANK; it is no second rank of that number.
    number, size = _number(variables.get("RANK")), _number(variables.get("WORLD_SIZE"))
    if number is not None and not inherits:
        return "rank", Rank(number, size, variables.get("WG_PREFIX", ""))
    if actor := _RAY.match(process.title):
        return "rank" if actor["actor"].partition(".")[0] in _TRAINS else "worker", Rank()
    if process.parent not in by_pid or by_pid[process.parent].role in ("system", "helper"):
        return "driver", Rank()
    return "worker", Rank()


def _is_loader(process: Process, name: str, by_pid: Mapping[int, Process]) -> bool:
    """Whether it is a worker of torch's DataLoader, by its name, its frames, or those of its parent."""
    main = process.main
    if name.startswith("pt_data_worker") or any(
        frame.path.startswith(_LOADS) for frame in (main.frames if main is not None else ())
    ):
        return True
    parent = by_pid.get(process.parent)
    waits = parent.main.frames if parent is not None and parent.main is not None else ()
    # A loader without a stack of its own is recognised by its parent: the process that forked it, which is in a
    # DataLoader.
    forked = parent is not None and parent.title == process.title
    return forked and any(frame.path.startswith("torch/utils/data/dataloader.py") for frame in waits)


def _of_parent(process: Process, done: Mapping[int, Process]) -> Process:
    """Give a data loader the rank of the process that it reads for."""
    parent = done.get(process.parent)
    if process.role == "loader" and parent is not None and parent.rank.number is not None:
        return replace(process, rank=parent.rank)
    return process


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None


def read_stacks(answer: Mapping[str, Any], host: str, root: str = "") -> MachineStacks:
    """Read the answer of `stacks`. `host`: the name of the machine; `root`: the folder of the tree there."""
    found = assign_ranks([_process(one, host, root) for one in answer["processes"]], answer["processes"])
    locks = [
        Lock(one["path"], {int(pid): name for pid, name in one["holders"].items()}, tuple(one["waiters"]))
        for one in answer["locks"]
    ]
    return MachineStacks(host, found, locks, answer["spy"])


def _process(facts: Mapping[str, Any], host: str, root: str = "") -> Process:
    """One process. Role and rank are added later, as they depend on the other processes."""
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
    """Threads from the output of py-spy, which the agent has reduced."""
    return tuple(
        Thread(
            own_part([shown_frame(path, name, line, root) for path, name, line in one["frames"]]),
            one["name"],
            one["main"],
        )
        for one in threads
    )


def of_faulthandler(text: str, root: str = "") -> tuple[Thread, ...]:
    """Threads from a dump of faulthandler, in which the main thread is the last."""
    found = dumped_threads(text)
    return tuple(
        Thread(
            own_part([shown_frame(path, function, int(line), root) for path, line, function in one.frames]),
            one.name or ("MainThread" if number == len(found) else ""),
            number == len(found),
        )
        for number, one in enumerate(found, 1)
    )
