"""Where jobs are kept below the tree, what a job's folder says of it, and how much of that is believed.

A tree is data that may come from somebody else, and with it a forged job folder: one whose `job.json` names other
people's processes, and whose `traces` name another program's shared memory. So each value of `job.json` is checked for
its type (`_noted`), and a line of `traces` counts only with a seal that this user's own key gives (`traces.seal`). The
key lies outside of any tree (`KEY_FILE`).
"""

from __future__ import annotations

import errno
import hmac
import json
import math
import os
import re
import stat
import time
from typing import TYPE_CHECKING, Any, BinaryIO, Dict, Iterator

from patcher.jobs.agent import accelerators, batch_runner, processes, queued, traces
from patcher.messages import Refusal, phrase, why
from patcher.remote.agent import place
from patcher.remote.agent.place import JOBS
from patcher.worktree import disk, files, layout, os_errors
from patcher.worktree.json_text import parse_json

if TYPE_CHECKING:
    from patcher.remote.agent.serving import Request

SOCKET = "tmux"
"""The socket of a job's tmux, in its folder. Programs name it from there: its whole path may be too long for a
socket."""
HOOK, STACKS = "hook", "stacks"
"""Folders in a job's folder: of the hook that its Python processes load at their start (`sitecustomize_hook`), and of
the files into which that writes their stacks."""
KEPT = ("git_ignore.py",)
"""Files of the tree that a job reads, and that are copied into its folder beside the script."""
STARTING = 60.0
"""Seconds after which a job that has not begun counts as lost: twice what its start waits for it (`starting.BEGIN`)."""
SILENT = 120.0
"""Seconds without a sign of life after which a job on another machine counts as lost: twelve of `runner.PULSE`."""

State = Dict[str, Any]
"""The values of `job.json`, and what `look` adds."""
NOT_OVER = ("queued", "starting", "running")
"""The states of a job that has not ended."""
_TEXTS = ("script", "root", "user", "shell", "profile")
_LISTS = ("argv", "env", "secrets", "arguments")
_TABLES = ("machine", "facts", "variables")
_NUMBERS = ("ordered", "started", "clock", "steps", "others")
_PROCESSES = ("process", "runner")
"""Keys of `job.json` by the type of their value."""


def jobs_folder(root: str) -> str:
    return os.path.join(root, JOBS)


def ids(root: str) -> list[str]:
    """The jobs of the tree, oldest first."""
    folder = jobs_folder(root)
    if os.path.realpath(folder) != os.path.join(os.path.realpath(root), JOBS):
        return []  # A symlink on the way leads to jobs of another tree.
    try:
        names = disk.folders(folder)
    except OSError:
        return []
    return [name for name in names if os.path.isfile(os.path.join(folder, name, "job.json"))]


def all_jobs(root: str) -> Iterator[State]:
    """What `look` tells of each job of the tree, oldest first."""
    return (look(os.path.join(jobs_folder(root), name)) for name in ids(root))


def folder_of(root: str, wanted: str | None) -> str:
    """The folder of the job whose id `wanted` is, or begins or ends with; of the newest job where it is None.

    Raises Refusal of kind `no-job` where the tree has no job, `unknown` where none or several fit.
    """
    known = ids(root)
    if not known:
        cause = phrase("only jobs that uky-patch has started are known")
        advice = phrase(
            "Of another run, ps -ef shows the processes, ray stop ends Ray, and uky-patch diagnose LOG reads the log. "
            "To start a job: uky-patch run debug, with --host for another machine."
        )
        raise Refusal("no-job", phrase("{path}: no job has been started there", path=root), cause, advice)
    matching = known[-1:] if wanted is None else [name for name in known if name == wanted]
    if not matching and wanted:
        matching = [name for name in known if name.startswith(wanted) or name.endswith(wanted)]
    if len(matching) != 1:
        title = phrase("there is no job {id}", id=repr(wanted))
        if matching:
            title = phrase("more than one job is called {id}", id=repr(wanted))
        advice = phrase("Jobs there, newest first: {ids}", ids=", ".join((matching or known)[:-9:-1]))
        raise Refusal("unknown", title, None, advice)
    return os.path.join(jobs_folder(root), matching[0])


def look(folder: str) -> State:
    """What is known of a job now: the values of `job.json`, and besides:

    `state`: queued, starting, running, ended, stopped, or lost: it is gone and nobody noted how it ended; `end`: the
    values of `end.json`; `watched`: false where it runs and nobody will note its end; `elsewhere`: the machine, where
    it runs on another one that shares the disk; `queue`: what Slurm says of a job that it starts; `no_gpu`: why one was
    not started on its node; `size`: bytes of the log; `now`: its age in seconds; `free`: bytes free on the disk.
    """
    job = _noted(read(os.path.join(folder, "job.json")))
    end = _end(folder)
    stopped = os.path.exists(os.path.join(folder, "stop.json"))
    state: State = dict(job, id=os.path.basename(folder), folder=folder, watched=True, elsewhere=None, end=end)
    number = _number(folder) or queued.search(folder)
    if number:
        job["slurm"] = state["slurm"] = number
        state.update(_state_in_queue(folder, job, end, stopped))
    else:
        state["state"] = _state(folder, job, end, stopped, state)
        if number is None and state["state"] == "lost":
            state["state"] = "starting"  # Slurm does not say whether it has the job.
    # It may have ended between the first look for end.json and that for its process.
    if state["state"] == "lost" and (again := _end(folder)) is not None:
        state["end"], state["state"] = again, "stopped" if stopped else "ended"
    state["size"] = _size(os.path.join(folder, "log"))
    state["now"] = _now(state)
    state["free"] = _free(folder)
    state["tmux"] = os.path.exists(os.path.join(folder, SOCKET))
    return state


def _number(folder: str) -> str | None:
    """The job's number in Slurm; None where none is noted. Only digits are believed: it goes into command lines."""
    found = read(os.path.join(folder, batch_runner.NUMBER))
    number = found.get("id") if isinstance(found, dict) else None
    return number if isinstance(number, str) and re.fullmatch("[0-9]{1,12}", number) else None


def _state_in_queue(folder: str, job: State, end: State | None, stopped: bool) -> State:
    """`state`, `queue`, `elsewhere`, and maybe `end` and `no_gpu`, of a job that Slurm starts."""
    alive = "process" in job and time.time() - _changed(os.path.join(folder, "times"), job) < SILENT
    found = queued.state_of(folder, job, end, stopped=stopped, alive=alive)
    no_gpu = (end or {}).get("no_gpu")
    if isinstance(no_gpu, list) and len(no_gpu) == 2:
        found["no_gpu"] = accelerators.in_words((str(no_gpu[0]), str(no_gpu[1])))
    return {**found, "elsewhere": found["queue"].get("nodes") or job["machine"].get("host") or "Slurm"}


def _state(folder: str, job: State, end: State | None, stopped: bool, state: State) -> str:
    """The state of any other job; notes `elsewhere` and `watched` in `state`."""
    if end is not None:
        return "stopped" if stopped else "ended"
    if job.get("process") is None:
        return "starting" if time.time() - job.get("ordered", 0) < STARTING else "lost"
    there = job["machine"]
    now = processes.here()
    # On another machine, or in another container of this one, whose processes are not visible here.
    if there.get("host") != now["host"] or (there.get("boot") == now["boot"] and there.get("space") != now["space"]):
        state["elsewhere"] = there.get("host")
        quiet = time.time() - _changed(os.path.join(folder, "times"), job)
        return "running" if quiet < SILENT else "lost"
    if there.get("boot") == now["boot"]:
        state["watched"] = processes.watched(state) or _is_anothers(job.get("runner"))
        if state["watched"] or processes.leads(state):
            return "running"
    return "stopped" if stopped else "lost"


def _now(state: State) -> float:
    """Seconds from the job's start to now, or to its end."""
    if state["end"] is not None:
        return float(state["end"]["seconds"])
    if "clock" in state and "slurm" not in state and state["machine"] == processes.here():
        return time.monotonic() - float(state["clock"])
    return max(0.0, time.time() - float(state.get("started") or state.get("ordered") or time.time()))


def _changed(path: str, job: State) -> float:
    """When the file last changed; the job's start where there is none."""
    try:
        return os.stat(path).st_mtime
    except OSError:
        return float(job.get("started", 0))


def read(path: str) -> Any:
    """The JSON in a file; None where the file cannot be read or holds none."""
    try:
        return parse_json(files.read_text(path, files.SETTINGS_BYTES))
    except (OSError, ValueError, RecursionError):
        return None


def log(folder: str) -> BinaryIO:
    """The job's log, to be read. Raises Refusal of kind `unreadable`, also for a symlink or a pipe in its place."""
    path = os.path.join(folder, "log")
    try:
        return files.open_binary(path, follow=False)
    except OSError as error:
        title = phrase("the log of job {id} cannot be read", id=os.path.basename(folder))
        cause = phrase("{file}: {reason}", file=path, reason=why(error))
        raise Refusal("unreadable", title, cause) from error


def _noted(record: Any) -> State:
    """The values of `job.json` whose type is right; empty values for the others, and for what is missing."""
    found: State = dict.fromkeys(_TEXTS, "")
    found.update({name: [] for name in _LISTS})
    found.update({name: {} for name in _TABLES})
    found.update(profile=None, ordered=0.0, others=0, steps=None)
    for name, value in record.items() if isinstance(record, dict) else ():
        if _is_right(name, value):
            found[name] = value
    return found


def _is_right(name: str, value: Any) -> bool:
    if name in _TEXTS:
        return isinstance(value, str)
    if name in _LISTS:
        return isinstance(value, list) and all(isinstance(one, str) for one in value)
    if name == "facts":
        return isinstance(value, dict)
    if name in _TABLES:
        return isinstance(value, dict) and all(isinstance(one, str) for one in value.values())
    if name in _NUMBERS:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if name in _PROCESSES:
        known = isinstance(value, dict) and _is_number(value.get("pid")) and 1 < value["pid"] < 1 << 31
        return known and (value.get("start") is None or _is_number(value["start"]))
    return False


def _end(folder: str) -> State | None:
    """The values of `end.json`; None where there is none, or one whose types are wrong."""
    end = read(os.path.join(folder, "end.json"))
    if not isinstance(end, dict) or not _is_number(end.get("code")):
        return None
    return end if all(_is_right("started", end.get(name)) for name in ("ended", "seconds")) else None


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_anothers(process: State | None) -> bool:
    """Whether a process that was noted runs as another user, so that only its start can be checked."""
    return process is not None and processes.alive(process) and processes.owner_of(process["pid"]) != os.getuid()


def _free(path: str) -> int | None:
    """Bytes that are free for this user on the disk that holds `path`."""
    try:
        found = os.statvfs(path)
    except OSError:
        return None
    return found.f_bavail * found.f_frsize


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def make(root: str, name: str) -> str:
    """Make the folder for a job, which only this user may read. A symlink below the tree's root is an OSError."""
    at = root
    for part in (*JOBS.split(os.sep), name):
        at = os.path.join(at, part)
        try:
            os.mkdir(at, 0o777 if part == layout.FOLDER else 0o700)
        except FileExistsError:
            if at.endswith(name) or not stat.S_ISDIR(os.lstat(at).st_mode):
                raise
    disk.hide_from_git(os.path.join(root, layout.FOLDER))
    return at


KEY_FILE = "~/.local/state/uky-patch/jobs.key"
_LENGTH = 32
"""Bytes of the key, as many as a SHA-256 has."""


def notes_key(*, make: bool = False) -> bytes:
    """The key by which this user seals notes on this machine; with `make` a new one where there is none.

    Empty where there is none: then no note counts. A file that others may read or write is not believed.
    """
    path = os.path.expanduser(KEY_FILE)
    try:
        content, found = files.read_and_status(path, _LENGTH)
        private = found.st_uid == os.geteuid() and not stat.S_IMODE(found.st_mode) & 0o077
        if len(content) == _LENGTH and private:
            return content
    except OSError:
        pass
    if not make:
        return b""
    try:
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        files.write_whole_file(path, os.urandom(_LENGTH), mode=0o600)
    except OSError:
        return b""
    return notes_key()


def noted(folder: str, *kinds: str) -> list[dict[str, Any]]:
    """Notes of these kinds that `traces` has written of the job in `folder` since the machine was started.

    A line without the right seal is skipped: it is of another job, another start of the machine, or forged.
    """
    found: list[dict[str, Any]] = []
    secret = notes_key()
    for line in traces.lines_of(os.path.join(folder, traces.NOTE)) if secret else ():
        try:
            note = parse_json(line)
            sealed = hmac.compare_digest(str(note["seal"]), traces.seal(folder, note, secret))
        except (ValueError, LookupError, TypeError):
            continue
        if sealed and note["kind"] in kinds:
            found.append(note)
    return found


WORKING = os.path.join(place.OURS, "working")
"""Below the tree's root: a folder for each configuration that worked, and the symlink `latest` to the newest."""


def keep_working_configuration(request: Request) -> dict[str, Any]:
    """The verb `job_keep`: copy what the job `id` ran into a folder of its name below `WORKING`, and `facts` with it.

    Answers the folder's `path`. Raises Refusal of kind `unwritable`.
    """
    root = place.root(request)
    at = folder_of(root, request.args["id"])
    job = look(at)
    above = os.path.join(root, WORKING)
    to = os.path.join(above, job["id"])
    try:
        os.makedirs(to, 0o700, exist_ok=True)
        if os.path.realpath(to) != os.path.join(os.path.realpath(root), WORKING, job["id"]):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), to)
        for name in (os.path.basename(job["script"]), *KEPT):
            if os.path.isfile(os.path.join(at, name)):
                content, found = files.read_and_status(os.path.join(at, name), files.SOURCE_BYTES)
                files.write_whole_file(os.path.join(to, name), content, mode=stat.S_IMODE(found.st_mode))
        facts = dict(job["facts"], **request.args["facts"])
        working = dict(facts, job=job["id"], script=job["script"], arguments=job["arguments"])
        files.write_whole_file(os.path.join(to, "working.json"), json.dumps(working, indent=1).encode())
        link = os.path.join(above, "latest.new")
        disk.symlink(os.path.basename(to), link)
        disk.replace(link, os.path.join(above, "latest"))
    except OSError as error:
        title = phrase("the configuration that worked cannot be kept")
        raise Refusal("unwritable", title, *os_errors.cause_and_advice(error)) from error
    return {"path": to}


def working_configuration(root: str) -> dict[str, Any] | None:
    """The facts of the configuration that worked last, with its folder as `path`; None where there is none."""
    found = read(os.path.join(root, WORKING, "latest", "working.json"))
    if not isinstance(found, dict) or not found:
        return None
    return dict(found, path=os.path.realpath(os.path.join(root, WORKING, "latest")))
