"""Stop a job: its own processes, known by their start, session, ancestry and mark, never by a name."""

from __future__ import annotations

import errno
import os
import signal
import time
from typing import TYPE_CHECKING, Any, Callable, Dict

from patcher.jobs.agent import folder, processes, queued
from patcher.jobs.agent.processes import Process
from patcher.jobs.agent.runner import start_of, write_whole
from patcher.messages import Refusal, phrase
from patcher.remote.agent import place

if TYPE_CHECKING:
    from patcher.remote.agent.serving import Request

Targets = Dict[int, Process]
GRACE = 20.0
"""Seconds for which the job may end by itself after it was told to. A guess: Ray and vLLM tidy up after themselves."""
ALONE = 3.0
"""Seconds that its other processes have once those of its session are gone: Ray's end with their driver. A guess."""
LATER = 5.0
"""Seconds that they have once they were told to. Set by hand: the job had its own time before."""
ROUNDS = 20
"""How often what is left is killed: a process that starts another while it is killed is met in the next round."""
NAP = 0.1
"""Seconds between two looks at what is left."""


def stop(request: Request) -> dict[str, Any]:
    """Stop the job `id`, or what an ended one has left behind.

    Answers what `look` does, with `was`: the state before; `stopped`: the processes that were stopped, each with how
    (TERM, KILL); `left`: those that could not be.
    """
    at = folder.folder_of(place.root(request), request.args.get("id"))
    job = folder.look(at)
    if "slurm" in job:
        if job["state"] in folder.NOT_OVER:
            queued.stop(request, at, job["slurm"], float(request.args.get("grace", GRACE)))
        return dict(folder.look(at), was=job["state"], stopped=[], left=[])
    if job["elsewhere"] is not None and job["state"] == "running":
        title = phrase("job {id} runs on {machine}", id=job["id"], machine=job["elsewhere"])
        raise Refusal("elsewhere", title, None, phrase("Stop it from there."))
    grace = float(request.args.get("grace", GRACE))

    def gather(targets: Targets) -> None:
        everything = processes.table()
        for process in processes.of_job(job, everything):
            targets[process.pid] = process

    ended, left = end(request, at, job, gather, grace)
    return dict(folder.look(at), was=job["state"], stopped=ended, left=left)


def end(
    request: Request, at: str, job: dict[str, Any], gather: Callable[[Targets], None], grace: float
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """End the processes that `gather` adds to its argument, and what they start meanwhile; the job first, if it runs.

    Those that were ended, each with `how` (TERM, KILL), and those that could not be.
    """
    targets: Targets = {}
    _gather(gather, targets)
    request.emit(stopping=[_as_dict(process) for process in targets.values()])
    leader = job.get("process")
    own = leader is not None and processes.alive(leader) and leader["pid"] in targets
    if own and job["state"] in ("running", "starting"):
        write_whole(os.path.join(at, "stop.json"), {"asked": time.time(), "by": processes.user_of(os.getpid())})
    how: dict[int, str] = {}
    if own and leader is not None:
        how.update({process.pid: "TERM" for process in targets.values() if process.session == leader["pid"]})
        _signal_group(leader["pid"], signal.SIGTERM)
        _wait(gather, targets, grace, leader["pid"])
        _wait(gather, targets, min(ALONE, grace))
    if rest := _alive(targets):
        for process in rest:
            how[process.pid] = "TERM"
            _signal(process, signal.SIGTERM)
        _wait(gather, targets, min(LATER, grace))
    for _ in range(ROUNDS):
        _gather(gather, targets)
        rest = _alive(targets)
        if not rest:
            break
        for process in rest:
            how[process.pid] = "KILL"
            _signal(process, signal.SIGKILL)
        time.sleep(NAP)
    left = _alive(targets)
    _await_end(at)
    ended = [
        dict(_as_dict(process), how=how.get(process.pid, "TERM")) for process in targets.values() if process not in left
    ]
    return ended, [_as_dict(process) for process in left]


def _gather(gather: Callable[[Targets], None], targets: Targets) -> None:
    """Add the processes that are alive now; what was found before stays, though its ancestors are gone."""
    gather(targets)
    everything = processes.table()
    known = [process.pid for process in _alive(targets)]
    for pid in processes.descendants(known, everything) - processes.above(os.getpid(), everything):
        if processes.owner_of(pid) == os.getuid():
            targets.setdefault(pid, everything[pid])


def _alive(targets: Targets) -> list[Process]:
    return [process for process in targets.values() if start_of(process.pid) == process.start]


def _wait(gather: Callable[[Targets], None], targets: Targets, seconds: float, session: int | None = None) -> None:
    """Until all are gone, or those of the session that is named, or the time is over."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        _gather(gather, targets)
        if not [process for process in _alive(targets) if session in (None, process.session)]:
            return
        time.sleep(NAP)


def _signal(process: Process, number: int) -> None:
    """Signal this very process, also where its number is given to another one just now."""
    try:
        held = os.pidfd_open(process.pid)
    except OSError as error:
        if error.errno != errno.ENOSYS:
            return
        held = -1
    except AttributeError:  # Before Python 3.9.
        held = -1
    try:
        if start_of(process.pid) != process.start:
            return
        if held < 0 or not hasattr(signal, "pidfd_send_signal"):
            os.kill(process.pid, number)
        else:
            signal.pidfd_send_signal(held, number)
    except OSError:
        pass
    finally:
        if held >= 0:
            os.close(held)


def _signal_group(leader: int, number: int) -> None:
    try:
        os.killpg(leader, number)
    except OSError:
        pass


def _await_end(at: str) -> None:
    """Give the program that watches the job the time to note how it ended."""
    for _ in range(50):
        if folder.look(at)["state"] not in folder.NOT_OVER:
            return
        time.sleep(NAP)


def _as_dict(process: Process) -> dict[str, Any]:
    return {"pid": process.pid, "name": process.name}
