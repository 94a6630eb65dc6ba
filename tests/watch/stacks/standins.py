"""Processes as the agent tells them, for tests that need none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from patcher.watch.stacks.processes import MachineStacks
from patcher.watch.stacks.read_stacks import read_stacks

Stack = Sequence[tuple[str, str, int]]
SITE = "/venv/lib/python3.12/site-packages"
PYTHON = "/usr/lib/python3.12"
ALL_REDUCE: Stack = (
    (f"{SITE}/torch/distributed/distributed_c10d.py", "all_reduce", 3252),
    (f"{SITE}/torch/distributed/c10d_logger.py", "wrapper", 83),
    ("/home/me/fork/verl/workers/fsdp_workers.py", "ActorRolloutRefWorker.update_actor", 700),
)
COMPILES: Stack = (
    (f"{PYTHON}/selectors.py", "PollSelector.select", 415),
    (f"{PYTHON}/subprocess.py", "Popen.communicate", 1209),
    (f"{SITE}/torch/utils/cpp_extension.py", "_run_ninja_build", 2100),
    ("/home/me/fork/verl/workers/fsdp_workers.py", "ActorRolloutRefWorker.update_actor", 690),
)
QUEUE: Stack = (
    (f"{PYTHON}/threading.py", "Condition.wait", 355),
    (f"{PYTHON}/queue.py", "Queue.get", 171),
    ("/home/me/fork/verl/trainer/ppo/ray_trainer.py", "RayPPOTrainer.fit", 900),
)


def told(pid: int, stack: Stack | None = None, **given: Any) -> dict[str, Any]:
    """A process of the agent's answer. `stack` is its main thread's, innermost first."""
    threads = [{"name": "MainThread", "main": True, "frames": [list(f) for f in stack or ()]}]
    found = {
        "pid": pid,
        "parent": 1,
        "start": 1,
        "name": "python",
        "title": "python -m verl.trainer.main_ppo",
        "state": "S",
        "python": True,
        "system": False,
        "env": {},
        "waits": {"wchan": "", "call": None, "file": None},
        "kernel": [],
        "closed": "",
        "how": "py-spy" if stack else "proc",
        "stack": threads if stack else None,
        "failed": [],
    }
    return {**found, **given}


def rank(number: int, size: int, stack: Stack | None = None, **given: Any) -> dict[str, Any]:
    variables = {"RANK": str(number), "WORLD_SIZE": str(size)}
    return told(100 + number, stack, env=variables, title="ray::WorkerDict.actor_rollout_update_actor", **given)


def heard(*processes: dict[str, Any], locks: Sequence[dict[str, Any]] = ()) -> MachineStacks:
    answer = {"processes": list(processes), "locks": list(locks), "spy": "/venv/bin/py-spy", "host": "node"}
    return read_stacks(answer, "here", "/home/me/fork")
