"""The verb `job_stop`: end the processes of a job, which `processes.claims` knows by proof and never by their name.

The job's session is told to end first, so that its driver can stop Ray and save; then what is left of its processes is
told, and then killed. Between any two steps new processes may start, so they are gathered again each time.
"""

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
"""Processes that are to end, by number; those that have ended stay in it."""
GRACE = 20.0
"""Seconds for the job's session to end after SIGTERM. A guess: Ray and vLLM tidy up after themselves."""
ALONE = 3.0
"""Seconds for its other processes to end once the session has: Ray's end with their driver. A guess."""
LATER = 5.0
"""Seconds for these to end after SIGTERM. A guess: they had the time of the session before."""
ROUNDS = 20
"""How often what is left is killed. A guess: a process that starts another while it is killed is met in the next
round."""
NAP = 0.1
"""Seconds between two looks at what is left."""


def stop(request: Request) -> dict[str, Any]:
    """Stop the job `id`, or the processes that are left of one that has ended.

    They have `grace` seconds to end by themselves. Answers what `folder.look` does, with `was`: the state before;
    `stopped`: the processes that were stopped, each with `how`, TERM or KILL; `left`: those that could not be.

    Raises Refusal of kind `elsewhere` for a job that runs on another machine, `slurm` where Slurm does not cancel it.
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
    """End the processes that `gather` adds to its argument, and what they start meanwhile; the job's session first.

    `at` is the job's folder. The event `stopping` lists the processes before any is ended. Returns those that were
    ended, each with `how`, TERM or KILL; and those that could not be.
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
    """Add the processes that are there now, and what those found before have started, though they may have ended."""
    gather(targets)
    everything = processes.table()
    known = [process.pid for process in _alive(targets)]
    for pid in processes.descendants(known, everything) - processes.above(os.getpid(), everything):
        if processes.owner_of(pid) == os.getuid():
            targets.setdefault(pid, everything[pid])


def _alive(targets: Targets) -> list[Process]:
    return [process for process in targets.values() if start_of(process.pid) == process.start]


def _wait(gather: Callable[[Targets], None], targets: Targets, seconds: float, session: int | None = None) -> None:
    """Wait until all have ended, or with `session` those of that session; for so many seconds at most."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        _gather(gather, targets)
        if not [process for process in _alive(targets) if session in (None, process.session)]:
            return
        time.sleep(NAP)


def _signal(process: Process, number: int) -> None:
    """Signal this very process.

    Its number may be given to another process between the check of its start and the signal. A descriptor of the
    process rules that out; without pidfd (Python 3.8, kernels before 5.3) that short moment remains.
    """
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
    """Wait up to 5 seconds for the program that watches the job to note its end."""
    for _ in range(50):
        if folder.look(at)["state"] not in folder.NOT_OVER:
            return
        time.sleep(NAP)


def _as_dict(process: Process) -> dict[str, Any]:
    return {"pid": process.pid, "name": process.name}
