"""A job that Slurm starts: handed to sbatch, asked after, and cancelled.

Its folder lies in the tree, on storage that the compute nodes share, and holds what any job's does. `queue.json` keeps
what Slurm said last of a job that is over, as it forgets that.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import time
from typing import TYPE_CHECKING, Any

from patcher.jobs.agent import batch_runner, processes
from patcher.jobs.agent.runner import write_whole
from patcher.messages import Refusal, phrase
from patcher.remote.agent import slurm
from patcher.worktree import files
from patcher.worktree.json_text import parse_json

if TYPE_CHECKING:
    from patcher.remote.agent.serving import Request

KEPT = "queue.json"
POLL = 5.0
"""Seconds for which an answer of Slurm's counts: its controller serves everybody on the cluster."""
FORGOTTEN = 60.0
"""Seconds after which a job counts as lost that Slurm does not know and that has not begun."""
CANCELLING = 120.0
"""Seconds that Slurm may take beyond the grace to end a job that was cancelled: it kills after its `KillWait`."""
NAP = 0.5

BATCH = "batch.sh"
"""In the job's folder: what sbatch is given."""

_asked: dict[str, tuple[float, slurm.Queue]] = {}
"""What Slurm said, and when by the monotonic clock, by the job's folder."""
_searched: dict[str, tuple[float, str | None]] = {}
"""The same of the number of a job that was not noted; None where Slurm did not answer."""


def programs() -> tuple[str, ...]:
    """The modules that are copied into the folder of a job of Slurm's beside those of any job."""
    return ("batch_runner", "accelerators")


def launch(at: str, args: dict[str, Any], environment: dict[str, str], job: dict[str, Any], script: str) -> None:
    """Submit the job whose folder is `at`, and note its number. `environment` holds the secrets: sbatch hands it on.

    Raises Refusal of kind `slurm`; OSError where the number cannot be noted, with the job cancelled.
    """
    order = {"argv": job["argv"], "cwd": job["root"], "script": script, "force": bool(args.get("force"))}
    files.write_whole_file(os.path.join(at, batch_runner.ORDER), json.dumps(order).encode(), mode=0o600)
    batch = os.path.join(at, BATCH)
    files.write_whole_file(batch, batch_script(at, args).encode("utf-8", "surrogateescape"), mode=0o700)
    log = os.path.join(at, "log").replace("%", "%%")
    ours = [f"--output={log}", "--open-mode=append", "--export=ALL", f"--chdir={job['root']}"]
    number = slurm.submit(_name(at), [*args["slurm"], *ours], batch, environment)
    try:
        write_whole(os.path.join(at, batch_runner.NUMBER), {"id": number})
    except OSError:
        slurm.cancel(number)
        raise


def search(at: str) -> str | None:
    """The number of a job that was handed to sbatch and whose number nobody noted: who did that was killed meanwhile.

    It is noted now. Empty where Slurm knows no such job, or the folder is of a job that Slurm does not start; None
    where Slurm does not answer.
    """
    if not os.path.isfile(os.path.join(at, BATCH)) or os.path.lexists(os.path.join(at, "end.json")):
        return ""
    if shutil.which("squeue") is None:
        return ""  # A folder that somebody made up, or a cluster that has no Slurm any more.
    when, number = _searched.get(at, (0.0, None))
    if when and time.monotonic() - when < POLL:
        return number
    try:
        number = slurm.number_of(_name(at))
    except slurm.AwayError:
        number = None
    _searched[at] = (time.monotonic(), number)
    if number:
        try:
            write_whole(os.path.join(at, batch_runner.NUMBER), {"id": number})
        except OSError:
            pass  # It is searched for again the next time.
    return number


def _name(at: str) -> str:
    """What Slurm calls the job whose folder is `at`. By this it is told from any other that a number may name."""
    return f"uky-{os.path.basename(at)}"


def batch_script(at: str, args: dict[str, Any]) -> str:
    """What Slurm runs on the first node: the lines of `setup`, then the program that runs the job.

    What the lines of `setup` set is overruled by the host's own variables and interpreter, as it is for other hosts.
    """
    python = args.get("python") or "python3"
    lines = ["#!/bin/bash"]
    if args.get("setup"):
        lines += [f"{{\n{line}\n}} || exit" for line in args["setup"]]
        lines += [f"export {name}={shlex.quote(value)}" for name, value in sorted(args.get("env", {}).items())]
        if os.path.dirname(python):
            lines.append(f'export PATH={shlex.quote(os.path.dirname(python))}:"$PATH"')
    runner = shlex.join([python, "-I", "-u", os.path.join(at, "batch_runner.py"), at])
    return "\n".join([*lines, f"exec {runner}", ""])


def look(at: str, number: str, *, fresh: bool = False) -> slurm.Queue:
    """What Slurm says of the job, or said last; `away` is its own sentence where it does not answer."""
    kept = _kept(at, number)
    if kept is not None:
        return kept
    when, queue = _asked.get(at, (0.0, {}))
    if when and time.monotonic() - when < POLL and not fresh:
        return queue
    try:
        queue = slurm.ask(number)
        if queue.get("name") != _name(at):
            queue = {"id": number}  # A folder that somebody made up, or a number that was given anew.
    except slurm.AwayError as error:
        queue = {"id": number, "away": str(error)}
    _asked[at] = (time.monotonic(), queue)
    if slurm.is_over(queue):
        try:
            write_whole(os.path.join(at, KEPT), queue)
        except OSError:
            pass  # It is asked again the next time.
    return queue


def _kept(at: str, number: str) -> slurm.Queue | None:
    try:
        found = parse_json(files.read_text(os.path.join(at, KEPT), files.SETTINGS_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    right = isinstance(found, dict) and found.get("id") == number and isinstance(found.get("state"), str)
    return found if right and slurm.is_over(found) else None


def state_of(at: str, job: dict[str, Any], end: dict[str, Any] | None, *, stopped: bool, alive: bool) -> dict[str, Any]:
    """`state` of the job, `queue`, and `end` of one that ended without noting it.

    An end with exit code 0 counts at once. Any other may be Slurm's doing, which starts a job again that it preempted:
    SIGTERM reaches the job before the program that runs it, and a training that handles it exits with a code of its
    own. `alive`: whether the job has given a sign of life of late.
    """
    number = job["slurm"]
    if end is not None and ("no_gpu" in end or (end["code"] == 0 and not end.get("told"))):
        return {"state": "stopped" if stopped else "ended", "queue": _kept(at, number) or {"id": number}}
    queue = look(at, number)
    found: dict[str, Any] = {"queue": queue}
    state = queue.get("state", "")
    if state in slurm.WAITING:
        found.update(state="queued", end=None)
    elif state in slurm.AT_WORK:
        found.update(state="running", end=None)
    elif state == "CANCELLED":
        found["state"] = "stopped"
    elif state:
        code = queue.get("code")
        found.update(state="ended", end=end or _end(at, job, code if code is not None else 1))
    elif end is not None:
        found["state"] = "stopped" if stopped else "ended"
    elif alive:
        found["state"] = "running"
    else:
        waits = "away" in queue or time.time() - job.get("ordered", 0.0) < FORGOTTEN
        found["state"] = "queued" if waits and not job.get("process") else "lost"
    return found


def _end(at: str, job: dict[str, Any], code: int) -> dict[str, Any]:
    """The end of a job that could not note it: its log grew last then."""
    try:
        ended = os.stat(os.path.join(at, "log")).st_mtime
    except OSError:
        ended = time.time()
    begun = float(job.get("started") or job.get("ordered") or ended)
    return {"code": code, "ended": ended, "seconds": max(0.0, ended - begun)}


def stop(request: Request, at: str, number: str, grace: float) -> None:
    """Cancel the job and wait for its end. Raises Refusal of kind `slurm`."""
    if not look(at, number, fresh=True).get("state"):
        raise Refusal("slurm", phrase("Slurm knows no job {number} of this tree", number=number))
    write_whole(os.path.join(at, "stop.json"), {"asked": time.time(), "by": processes.user_of(os.getpid())})
    request.emit(stopping=[])
    slurm.cancel(number)
    deadline = time.monotonic() + grace + CANCELLING
    while time.monotonic() < deadline:
        queue = look(at, number, fresh=True)
        if not queue.get("state") or slurm.is_over(queue):
            return
        time.sleep(NAP)
    title = phrase("Slurm job {number} was cancelled and has not ended yet", number=number)
    raise Refusal("slurm", title, None, phrase("Look at it with: squeue --jobs={number}", number=number))
