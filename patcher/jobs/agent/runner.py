"""Runs one job and writes down how it ended. A program of its own: it is copied into the job's folder.

The job writes to its log directly, so where this program is killed the job goes on, and only its end is not noted.

A job that fills the disk with its log still gets its end noted: the space for `end.json` is set aside before it starts,
as a file `end.json.reserved` of blanks that is overwritten and renamed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from typing import Callable

SAMPLE = 0.2
"""Seconds between two looks at the job and at the size of its log. A guess."""
SPARSE = 3600.0
SPARSE_STEP = 5.0
"""After `SPARSE` seconds the size of the log is noted every `SPARSE_STEP` seconds only. A guess: phases change within
the first hour; later on only steps matter, and one takes longer than that."""
PULSE = 10.0
"""Seconds between signs of life: the time of change of `times`. `folder.SILENT` allows for twelve of them."""
RESERVE = 4096
"""Bytes that are set aside, one block of most disks: the end has some hundred, and so has what the start adds to
`job.json`."""
PATIENCE = 3600.0
"""Seconds for which writing the end is tried where the disk fails or is full. A guess: somebody may make room."""

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_AT_END = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def start_of(pid: int) -> int | None:
    """When a process began, in ticks since the machine's start; None where it is gone or a zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            fields = stream.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def write_whole(path: str, values: object) -> None:
    """Put a file in its place whole, or leave it as it was."""
    beside = f"{path}.{os.getpid()}-{os.urandom(4).hex()}.new"
    with os.fdopen(os.open(beside, _NEW, 0o600), "w", encoding="utf-8") as stream:
        json.dump(values, stream)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(beside, path)


def set_aside(path: str, size: int) -> None:
    """Take the space for a file before the job can fill the disk with its log. What an earlier start has set aside is
    removed.
    """
    if os.path.lexists(f"{path}.reserved"):
        os.unlink(f"{path}.reserved")
    with os.fdopen(os.open(f"{path}.reserved", _NEW, 0o600), "wb") as stream:
        stream.write(b" " * size)


def write_reserved(path: str, values: object) -> None:
    """Put a file in its place whole, in the space that was set aside for it, or leave it as it was."""
    beside = f"{path}.reserved"
    with os.fdopen(os.open(beside, _AT_END & ~os.O_APPEND, 0o600), "wb") as stream:
        stream.write(json.dumps(values).encode("ascii"))
        stream.truncate()
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(beside, path)


def main(folder: str) -> None:
    """Read the order from standard input: `argv`, `cwd`, `env`, `job` (the values of `job.json`) and `key`; start the
    job, and answer with JSON on standard output: `started`, or `error` and `file`. Then watch the job to its end.

    The process that the agent has started ends at once, so that the job does not depend on the agent or the terminal.
    Signals to this program are ignored: it ends with the job.
    """
    order = json.load(sys.stdin)
    if os.fork():
        os._exit(0)
    os.setsid()
    for name in ("SIGINT", "SIGTERM", "SIGQUIT"):
        signal.signal(getattr(signal, name), lambda *_: None)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    adopt_orphans()
    answer = os.fdopen(os.dup(1), "w")
    nothing = os.open(os.devnull, os.O_RDWR)
    log = os.open(os.path.join(folder, "log"), _AT_END & ~os.O_NONBLOCK, 0o600)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    # Before the job is started: what is there now is not its own, and it may make its first socket within milliseconds.
    trace = tracer(folder, order["env"], bytes.fromhex(order.get("key", "")))
    facts = order["job"]
    job = None
    try:
        set_aside(os.path.join(folder, "end.json"), RESERVE)
        set_aside(os.path.join(folder, "job.json"), len(json.dumps(facts)) + RESERVE)
        job = subprocess.Popen(
            order["argv"],
            cwd=order["cwd"],
            env=order["env"],
            stdin=nothing,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        begun, clock = time.time(), time.monotonic()
        facts["runner"] = {"pid": os.getpid(), "start": start_of(os.getpid())}
        facts["process"] = {"pid": job.pid, "start": start_of(job.pid)}
        facts["started"], facts["clock"] = begun, clock
        write_reserved(os.path.join(folder, "job.json"), facts)
    except OSError as error:
        if job is not None:
            os.killpg(job.pid, signal.SIGKILL)  # A job without `job.json` would run unknown to everybody.
        answer.write(json.dumps({"error": error.strerror or str(error), "file": error.filename}))
        answer.close()
        os._exit(1)
    answer.write(json.dumps({"started": begun}))
    answer.close()
    os.dup2(nothing, 2)
    order = {}  # It holds secrets, and a job may run for weeks.
    code = watch(folder, job.pid, clock, trace)
    seconds = time.monotonic() - clock
    write_end(folder, {"code": code, "ended": begun + seconds, "seconds": seconds})
    os._exit(0)


def adopt_orphans() -> None:
    """Become the parent of processes whose own parent has ended, so that ancestry still shows whose they are."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    except (ImportError, OSError, AttributeError):
        pass


def tracer(folder: str, environment: dict[str, str], key: bytes) -> Callable[[float], None]:
    """A function that notes what the job makes outside of its folder, by `traces` beside this file.

    It is called now and then with the job's age. Whatever fails in it, the job goes on.
    """
    try:
        loader = SourceFileLoader("traces", os.path.join(folder, "traces.py"))
        module = module_from_spec(spec_from_loader("traces", loader))  # type: ignore[arg-type]
        loader.exec_module(module)
        traces = module.Traces(folder, os.getpid(), environment, key)
    except Exception:
        return lambda _: None

    def look(now: float) -> None:
        try:
            traces.look(now)
        except Exception:
            return

    return look


def watch(folder: str, job: int, clock: float, trace: Callable[[float], None]) -> int:
    """Wait for the job to end, and note the size of its log meanwhile. Returns its exit code, negative for a signal.

    `clock` is the monotonic time of its start. Orphans that were adopted are waited for as well.
    """
    log, times = os.path.join(folder, "log"), os.path.join(folder, "times")
    noted, noted_at, pulse = -1, 0.0, 0.0
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG)
        now = time.monotonic() - clock
        ended = pid == job
        try:
            size = os.stat(log).st_size
            if size != noted and (ended or now < SPARSE or now - noted_at > SPARSE_STEP):
                with os.fdopen(os.open(times, _AT_END, 0o600), "ab") as stream:
                    stream.write(f"{now:.1f} {size}\n".encode("ascii"))
                noted, noted_at, pulse = size, now, now
            elif now - pulse > PULSE:
                os.utime(times)
                pulse = now
            trace(now)
        except OSError:
            pass
        if ended:
            return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        if not pid:
            time.sleep(SAMPLE)


def write_end(folder: str, end: dict[str, object]) -> None:
    """Write `end.json` into the space that was set aside for it; where that fails, try again for `PATIENCE` seconds."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            write_reserved(os.path.join(folder, "end.json"), end)
            return
        except OSError:
            if time.monotonic() > deadline or not os.path.isdir(folder):
                return
            time.sleep(1.0)


if __name__ == "__main__":
    main(sys.argv[1])
