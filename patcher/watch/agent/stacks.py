"""The verb `stacks`: take the stacks of all processes of a job, each in the best way that is possible.

The ways, best first: py-spy reads the memory of the process, which goes on meanwhile; the hook in the Python processes
of a job writes their stacks on a signal; /proc says at least what the process waits for in the kernel.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Iterable

from patcher.jobs.agent import processes
from patcher.jobs.agent.processes import Process
from patcher.jobs.agent.runner import start_of
from patcher.jobs.agent.sitecustomize_hook import RANK_VARIABLES, SIGNAL, VARIABLE
from patcher.watch.agent.members import Members, Order, ordered
from patcher.watch.agent.process_facts import file_locks, pipe_ends, process_facts, socket_peers
from patcher.worktree import files
from patcher.worktree.json_text import parse_json

if TYPE_CHECKING:
    from patcher.remote.agent.serving import Request

HOOK_SECONDS = 2.0
"""Seconds that a process has to write its stacks: its interpreter has to handle the signal first. A guess."""
_SETTLED = 0.1
"""Seconds without a new byte after which a dump counts as complete. A guess: faulthandler writes it at once."""
_LARGEST = 1 << 18
"""Bytes of one dump that are read: hundreds of threads with hundreds of frames."""


def dump_by_hook(process: Process, folder: str | None) -> tuple[str, str]:
    """The dump that faulthandler wrote of a process, and the reason if there is none.

    The signal is sent only to a process that handles it and whose own file says that the hook is there for it.
    """
    path = _hook_file(process, folder)
    try:
        before = os.stat(path).st_size
    except OSError:
        return "", "no hook"
    # A process that does not handle the signal would be killed by it. Its start time shows that no other process has
    # got its pid meanwhile.
    bit = 1 << (SIGNAL - 1)
    caught, blocked = processes.signals(process.pid)
    if not caught & bit or blocked & bit or start_of(process.pid) != process.start:
        return "", "no hook"
    try:
        os.kill(process.pid, SIGNAL)
    except OSError as error:
        return "", error.strerror or str(error)
    return _read_dump(path, before)


def rank_variables(process: Process, folder: str | None) -> dict[str, str]:
    """The rank variables of a process, from the file of its hook; empty where it has none."""
    try:
        with files.open_binary(_hook_file(process, folder), follow=False) as stream:
            line = stream.read(_LARGEST).partition(b"\n")[0].decode("utf-8", "replace")
            pairs = (item.partition("=") for item in line.split())
            return {name: value for name, found, value in pairs if found and name in RANK_VARIABLES}
    except OSError:
        return {}


def _hook_file(process: Process, folder: str | None) -> str:
    folder = processes.variables(process.pid, (VARIABLE,)).get(VARIABLE) or folder or os.devnull
    return os.path.join(folder, f"{os.uname()[1]}.{process.pid}.{process.start}")


def _read_dump(path: str, before: int) -> tuple[str, str]:
    """Wait for a dump behind the first `before` bytes of a file; the dump, and the reason if there is none."""
    deadline = time.monotonic() + HOOK_SECONDS
    size, changed = before, time.monotonic()
    while time.monotonic() < deadline and (size == before or time.monotonic() - changed < _SETTLED):
        time.sleep(0.02)
        try:
            now = os.stat(path).st_size
        except OSError:
            break
        if now != size:
            size, changed = now, time.monotonic()
    if size == before:
        return "", "it did not answer"
    try:
        with files.open_binary(path, follow=False) as stream:
            stream.seek(before)
            return stream.read(_LARGEST).decode("utf-8", "replace"), ""
    except OSError as error:
        return "", error.strerror or str(error)


SPY_SECONDS = 5.0
"""Seconds for one process. A guess: py-spy is slower where training uses all cores."""
NATIVE_SPY_SECONDS = 20.0
"""The same with frames of compiled code: py-spy first reads the symbols of the libraries of torch and CUDA."""
FRAMES = 100
"""Frames of a thread that are kept, innermost first. Set by hand: outer frames are of frameworks."""
THREADS = 60
"""Threads of a process that are kept, the main one first: thread pools have as many threads as the machine has cores.
"""


def find_py_spy(pids: Iterable[int], folders: Iterable[str] = ()) -> str | None:
    """The py-spy of the job's interpreter, in one of `folders`, or on PATH; None if there is none."""
    theirs = [os.path.join(folder, "py-spy") for pid in pids for folder in _folders(pid)]
    ours = [os.path.join(folder, "py-spy") for folder in folders]
    for path in dict.fromkeys([*filter(_is_ours, theirs), *ours]):
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    return shutil.which("py-spy")


def dump_with_py_spy(program: str, pid: int, native: bool) -> tuple[list[dict[str, Any]], str]:
    """The threads of a process, and the reason if there are none.

    With `native` the process is stopped meanwhile; without, only if its memory changes too fast to be read.
    """
    for how in ["--native"] if native else ["--nonblocking", ""]:
        command = [program, "dump", "--pid", str(pid), "--json", *([how] if how else [])]
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=NATIVE_SPY_SECONDS if native else SPY_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return [], "py-spy took too long"
        except OSError as error:
            return [], error.strerror or str(error)
        try:
            if done.returncode == 0 and (threads := _reduced(parse_json(done.stdout), pid)):
                return threads, ""
        except (ValueError, KeyError, TypeError):
            pass
    message = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return [], next((line for line in message if line.strip()), "py-spy found no stack")[:200]


def _reduced(raw: list[dict[str, Any]], pid: int) -> list[dict[str, Any]]:
    """Each thread's name, whether it is the main one, and its frames, innermost first."""
    threads = [
        {
            "name": thread.get("thread_name") or "",
            "main": thread.get("os_thread_id") == pid or thread.get("thread_name") == "MainThread",
            "frames": [[frame["filename"], frame["name"], frame["line"]] for frame in thread["frames"][:FRAMES]],
        }
        for thread in raw
        if thread.get("pid", pid) == pid and thread.get("frames")
    ]
    return sorted(threads, key=lambda thread: not thread["main"])[:THREADS]


def _is_ours(path: str) -> bool:
    """Whether this user or root owns it. The environment of another user's process may contain any program."""
    try:
        return os.stat(path).st_uid in (0, os.geteuid())
    except OSError:
        return False


def _folders(pid: int) -> list[str]:
    """The folders in which a process's interpreter may have its programs."""
    found = []
    environment = processes.variables(pid, ("VIRTUAL_ENV", "CONDA_PREFIX"))
    found += [os.path.join(folder, "bin") for folder in environment.values()]
    try:
        first = os.fsdecode(next(iter(processes.command_line(pid)), b""))
        if first.startswith("/"):
            found.append(os.path.dirname(first))
        found.append(os.path.dirname(os.readlink(f"/proc/{pid}/exe")))
    except OSError:
        pass
    return [folder for folder in found if folder.startswith("/")]


BUDGET = 8.0
"""Seconds after which no further process is asked for its stack; /proc is read of all. Set by hand: a person waits for
it."""
MOST = 400
"""Processes that are described. Set by hand: ranks, engines and loaders of eight GPUs are fewer."""
AT_ONCE = 4
"""Processes that are asked in parallel, so that the training keeps the other cores."""


def stacks(request: Request) -> dict[str, Any]:
    """Answer the verb: the processes of `order`, each with its facts, its `stack`, and how that was taken.

    `native`: also frames of compiled code, for which py-spy stops each process for a moment. `bare`: ways to leave out,
    `py-spy` or `hook`. The answer has `processes`, `locks`, and `spy`, the py-spy that was used.
    """
    args = request.args
    order = ordered(request)
    return take_stacks(Members(order), order, bool(args.get("native")), tuple(args.get("bare") or ()))


def take_stacks(members: Members, order: Order, native: bool = False, bare: tuple[str, ...] = ()) -> dict[str, Any]:
    """Take the stacks of `members`; arguments and result as in `stacks`."""
    found = members.all()[:MOST]
    facts = [process_facts(process) for process in found]
    for process, one in zip(found, facts):
        one["env"] = one["env"] or rank_variables(process, order.get("stacks"))
    wanted = [(process, one) for process, one in zip(found, facts) if one["python"] and not one["system"]]
    folders = order.get("folders") or ()
    program = None if "py-spy" in bare else find_py_spy([process.pid for process, _ in wanted[:8]], folders)
    deadline = time.monotonic() + BUDGET * (3 if native else 1)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda pair: _stack(pair[0], pair[1], program, native, order, bare, deadline), wanted))
    left = [one for process, one in zip(found, facts) if start_of(process.pid) == process.start]
    _tie_together(left)
    pids = [one["pid"] for one in left]
    return {"processes": left, "locks": file_locks(pids), "spy": program}


def _stack(
    process: Process,
    facts: dict[str, Any],
    program: str | None,
    native: bool,
    order: Order,
    bare: tuple[str, ...],
    deadline: float,
) -> None:
    """Put `how`, `stack` and `failed` into the facts of a process."""
    facts.update(how="proc", stack=None, failed=[])
    if time.monotonic() > deadline:
        facts["failed"].append(["py-spy", "no time was left"])
        return
    if program is not None and start_of(process.pid) == process.start:
        threads, why = dump_with_py_spy(program, process.pid, native)
        if threads:
            facts.update(how="py-spy", stack=threads)
            return
        facts["failed"].append(["py-spy", why])
    if "hook" in bare or facts["state"] in "TtDZ":
        return
    text, why = dump_by_hook(process, order.get("stacks"))
    if text:
        facts.update(how="faulthandler", stack=text)
    elif why != "no hook":
        facts["failed"].append(["faulthandler", why])


def _tie_together(processes: list[dict[str, Any]]) -> None:
    """Add to what a process waits for the process at the other end."""
    pids = [one["pid"] for one in processes]
    files = {one["waits"]["file"] for one in processes} - {None}
    ends = pipe_ends(pids, {file for file in files if file.startswith("pipe:")})
    for one in processes:
        file = one["waits"]["file"] or ""
        if file.startswith("pipe:"):
            one["waits"]["ends"] = [end for end in ends.get(file, []) if end[0] != one["pid"]]
        elif file.startswith("socket:"):
            one["waits"]["peer"] = socket_peers(one["pid"], {file}).get(file)
