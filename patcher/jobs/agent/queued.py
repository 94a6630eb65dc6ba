"""A job that Slurm starts: handed to sbatch, asked after, and cancelled.

Its folder lies in the tree, on storage that the compute nodes share, and holds what any job's does. Slurm forgets a job
some minutes after its end, so `queue.json` keeps what it said last.

Slurm calls the job by a name with its id (`_name`). By that it is found again where its number was not noted, and is
told from somebody else's job whose number a forged folder names.
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
"""Seconds for which an answer of Slurm's is used again. A guess: its controller serves everybody on the cluster."""
FORGOTTEN = 60.0
"""Seconds after which a job that Slurm does not know, and that has not begun, counts as lost. A guess."""
CANCELLING = 120.0
"""Seconds beyond the grace that Slurm may take to end a cancelled job. A guess: it kills after `KillWait`, by default
30 s."""
NAP = 0.5
"""Seconds between two questions while a cancelled job ends."""

BATCH = "batch.sh"
"""In the job's folder: what sbatch is given."""

_asked: dict[str, tuple[float, slurm.Queue]] = {}
"""By the job's folder: when Slurm was asked, by the monotonic clock, and its answer."""
_searched: dict[str, tuple[float, str | None]] = {}
"""The same of a search for the number of a job; None where Slurm did not answer."""


PROGRAMS = ("batch_runner", "accelerators")
"""Modules that are copied into the job's folder besides those of any job."""


def launch(at: str, args: dict[str, Any], environment: dict[str, str], job: dict[str, Any], script: str) -> None:
    """Submit the job whose folder is `at`, and note its number.

    `environment` are the job's variables, secrets included, which sbatch passes on; `args` are those of the verb
    `job_start`, `job` the values of `job.json`, and `script` is the absolute path of what it runs.

    Raises Refusal of kind `slurm`; OSError where the number cannot be noted, with the job cancelled.
    """
    order = {"argv": job["argv"], "cwd": job["root"], "script": script, "force": bool(args.get("force"))}
    files.write_whole_file(os.path.join(at, batch_runner.ORDER), json.dumps(order).encode(), mode=0o600)
    batch = os.path.join(at, BATCH)
    files.write_whole_file(batch, batch_script(at, args).encode("utf-8", "surrogateescape"), mode=0o700)
    log = os.path.join(at, "log").replace("%", "%%")  # sbatch puts the job's number in place of `%j`.
    ours = [f"--output={log}", "--open-mode=append", "--export=ALL", f"--chdir={job['root']}"]
    number = slurm.submit(_name(at), [*args["slurm"], *ours], batch, environment)
    try:
        write_whole(os.path.join(at, batch_runner.NUMBER), {"id": number})
    except OSError:
        slurm.cancel(number)
        raise


def search(at: str) -> str | None:
    """The number of a job that was submitted by a process which was killed before it could note the number.

    It is noted now. Empty where Slurm knows no such job, or the folder is of a job that Slurm does not start; None
    where Slurm does not answer.
    """
    if not os.path.isfile(os.path.join(at, BATCH)) or os.path.lexists(os.path.join(at, "end.json")):
        return ""
    if shutil.which("squeue") is None:
        return ""  # A forged folder, or a cluster that has no Slurm any more.
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
    """What Slurm calls the job whose folder is `at`."""
    return f"uky-{os.path.basename(at)}"


def batch_script(at: str, args: dict[str, Any]) -> str:
    """The script for sbatch, which runs on the first node: the lines of `setup`, then the program that runs the job.

    The variables of `env` and the interpreter in `python` overrule what `setup` sets, as for jobs without Slurm.
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
    """What Slurm says of the job, or said last. Where it does not answer, `away` is the reason.

    An answer may be `POLL` seconds old, unless `fresh`.
    """
    kept = _kept(at, number)
    if kept is not None:
        return kept
    when, queue = _asked.get(at, (0.0, {}))
    if when and time.monotonic() - when < POLL and not fresh:
        return queue
    try:
        queue = slurm.ask(number)
        if queue.get("name") != _name(at):
            queue = {"id": number}  # A forged folder, or a number that Slurm has given to another job.
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
    """What `queue.json` keeps of a job that is over."""
    try:
        found = parse_json(files.read_text(os.path.join(at, KEPT), files.SETTINGS_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    right = isinstance(found, dict) and found.get("id") == number and isinstance(found.get("state"), str)
    return found if right and slurm.is_over(found) else None


def state_of(at: str, job: dict[str, Any], end: dict[str, Any] | None, *, stopped: bool, alive: bool) -> dict[str, Any]:
    """`state` of the job and `queue`; also `end`, where that of `end.json` does not count, or where there is none.

    `end` is that of `end.json`. With exit code 0 it counts at once. Any other may be Slurm's doing, which starts a job
    again that it has preempted: its SIGTERM reaches the training, which may handle it and exit with a code of its own.
    So Slurm decides then. `alive`: whether the job has given a sign of life of late.
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
    """The end of a job that could not note it, taken for the time when its log last grew."""
    try:
        ended = os.stat(os.path.join(at, "log")).st_mtime
    except OSError:
        ended = time.time()
    begun = float(job.get("started") or job.get("ordered") or ended)
    return {"code": code, "ended": ended, "seconds": max(0.0, ended - begun)}


def stop(request: Request, at: str, number: str, grace: float) -> None:
    """Cancel the job and wait for its end. Raises Refusal of kind `slurm` where it does not end."""
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
