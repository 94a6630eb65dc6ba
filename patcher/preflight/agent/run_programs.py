"""Run check programs side by side, each until it ends or its budget (timeout) is spent, and make a verdict of whatever
happens.

Where a program crashes or hangs, the stack that faulthandler wrote tells the place. Every process that a program
started is killed with it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import selectors
import signal
import subprocess
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Dict, NamedTuple

from patcher.preflight.agent import processes, verdicts
from patcher.worktree.json_text import parse_json

_HEAD = re.compile(r"(?:(?P<current>Current thread)|Thread|Stack) (?:0x[0-9a-f]+ )?(?:\[(?P<name>[^\]]*)\] )?\(?")
_FRAME = re.compile(r'^\s*File "(?P<path>[^"]*)", line (?P<line>\d+) in (?P<function>.*)$')


class Thread(NamedTuple):
    """A thread's stack: path, line and function of each frame, innermost first."""

    name: str
    current: bool
    """Whether it is the one that crashed, or that was asked."""
    frames: list[tuple[str, str, str]]


def place(text: str, root: str) -> str:
    """`vllm/platforms/cuda.py:33 in init`, of the innermost frame, and the nearest caller outside Python's library.

    Empty where `text` holds no stack.
    """
    frames = _frames(text)
    if not frames:
        return ""
    inner = frames[0]
    stack = _frame_text(inner, root)
    if _standard(inner[0]):
        caller = next((frame for frame in frames if not _standard(frame[0])), None)
        if caller is not None:
            stack += " < " + _frame_text(caller, root)
    return stack


def threads(text: str) -> list[Thread]:
    """The threads of a dump in its order: the main thread comes last."""
    found: list[Thread] = []
    for line in text.splitlines():
        head = _HEAD.match(line)
        if head is not None:
            found.append(Thread(head["name"] or "", bool(head["current"]), []))
        frame = _FRAME.match(line)
        if frame is not None and found:
            found[-1].frames.append((frame["path"], frame["line"], frame["function"]))
    return found


def _frames(text: str) -> list[tuple[str, str, str]]:
    """The frames of the thread that crashed, else of the main thread; innermost first."""
    found = threads(text)
    crashed = next((thread.frames for thread in found if thread.current and thread.frames), None)
    return crashed or (found[-1].frames if found else [])


def _frame_text(frame: tuple[str, str, str], root: str) -> str:
    path, line, function = frame
    _head, found, tail = path.rpartition("-packages/")
    if found:
        path = tail
    elif path.startswith(root + os.sep):
        path = path[len(root) + 1 :]
    elif _standard(path) and not path.startswith("<"):
        path = os.path.basename(path)
    return f"{path}:{line} in {function}"


def _standard(path: str) -> bool:
    return path.startswith("<frozen ") or (
        re.search(r"/lib/python3\.\d+/", path) is not None and "-packages/" not in path
    )


Verdict = Dict[str, Any]
"""name, status, seconds, detail, fix, values."""
TAIL = 200_000
"""Bytes of a program's output that are kept, from its end: several engines' tracebacks."""
ENGINE = "engine"
"""The program whose own processes tell in its output why they failed."""
SAMPLE = 1.0
"""Seconds before the end of the budget from which on is looked whether the program gets on: ten looks."""
STACK = 0.4
"""Seconds before the end of the budget at which the program is asked where it is: writing a stack takes less."""
LOOK = 0.1
"""Seconds between looks at the programs."""
_HELPERS = (
    "patcher.messages",
    "patcher.remote.agent.snapshots",
    "patcher.preflight.agent.check_report",
    "patcher.worktree.files",
)
_PROGRAMS = "patcher.preflight.agent.programs"
MODULES = {
    **dict.fromkeys(("engines", "packages", "linker"), f"{_PROGRAMS}.interpreter"),
    **dict.fromkeys(("tree", "trainer", "rollout", "modules"), f"{_PROGRAMS}.verl_imports"),
    **dict.fromkeys(("places", "rows", "weights", "tokenizer", "engine"), f"{_PROGRAMS}.data_and_model"),
    "workers": f"{_PROGRAMS}.workers",
}
"""Each part of a program, and the module whose function `check_PART` it is."""
_BOOT = "import sys; exec(sys.stdin.buffer.read())"


class Program(NamedTuple):
    """One process: the parts, by `MODULES`, that it runs; the checks that they tell in order; and what it is given."""

    parts: list[str]
    checks: list[str]
    args: dict[str, Any]


class Launch(NamedTuple):
    """What all programs of one preflight share. `env` is whole."""

    python: str
    root: str
    env: dict[str, str]
    scratch: str
    """A folder for what programs need on the disk meanwhile; short, as sockets lie in it."""


def run_programs(
    programs: list[Program],
    launch: Launch,
    budget: float,
    tell: Callable[[Verdict], None],
    gone: Callable[[], bool] = lambda: False,
) -> None:
    """Tell a verdict for every check of every program, as they come; done after `budget` seconds at the latest."""
    running = [_Running(program, launch, budget, tell) for program in programs]
    try:
        with selectors.DefaultSelector() as ready:
            for one in running:
                one.register(ready)
            while any(not one.ended for one in running) and not gone():
                for key, _ in ready.select(LOOK):
                    piece = _read(key.fileobj)
                    if piece == b"":
                        ready.unregister(key.fileobj)
                    key.data(piece or b"")
                for one in running:
                    one.look()
    finally:
        for one in running:
            one.close()


class _Running:
    """A program under way."""

    def __init__(self, program: Program, launch: Launch, budget: float, tell: Callable[[Verdict], None]) -> None:
        self._program = program
        self._launch = launch
        self._tell = tell
        self._budget = budget
        self._started = time.monotonic()
        self._began = self._started
        self._left = list(program.checks)
        self._line = b""
        self._stack = ""
        self._tail = bytearray()
        self._progress: processes.Progress | None = None
        self._done = False
        self._asked = False
        self._tag = secrets.token_hex(8)
        self._process: subprocess.Popen[bytes] | None = None
        self.ended = False
        try:
            self._process = subprocess.Popen(
                [launch.python, "-u", "-c", _BOOT, "uky-patch-check", *program.parts],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=launch.root,
                env=dict(launch.env, **{processes.TAG: self._tag}),
                start_new_session=True,
            )
        except OSError as error:
            self._finish(verdicts.not_started(launch.python, error))
            return
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.write(_source(program, launch, budget))
        with contextlib.suppress(OSError):
            self._process.stdin.close()

    def register(self, ready: selectors.BaseSelector) -> None:
        if self._process is None:
            return
        for stream, take in ((self._process.stdout, self._take), (self._process.stderr, self._keep)):
            assert stream is not None
            os.set_blocking(stream.fileno(), False)
            ready.register(stream, selectors.EVENT_READ, take)

    def look(self) -> None:
        """Notice the program's end, or bring it about."""
        if self.ended or self._process is None:
            return
        spent = time.monotonic() - self._started
        if self._progress is not None:
            self._progress.look()
        code = self._process.poll()
        if self._done:
            self._finish(None)
        elif code is not None:
            self._drain()
            self._finish(None if self._done else self._left_early(code))
        elif self._progress is None and spent > self._budget - SAMPLE:
            self._progress = processes.Progress(self._process.pid)
        elif not self._asked and spent > self._budget - STACK:
            self._asked = True
            with contextlib.suppress(OSError):
                os.kill(self._process.pid, signal.SIGUSR1)
        elif spent > self._budget:
            self._finish(self._overdue())

    def _left_early(self, code: int) -> Verdict:
        # SIGUSR1 kills a program that has not installed its handler yet: it was still starting when its time was up.
        if code < 0 and self._asked:
            return self._overdue()
        output = self._tail.decode("utf-8", "replace")
        return verdicts.verdict_of_exit(code, place(self._stack, self._launch.root), output)

    def _overdue(self) -> Verdict:
        assert self._process is not None
        at_work = self._progress is None or self._progress.at_work()
        self._drain()
        output = self._tail.decode("utf-8", "replace") if self._program.parts[0] == ENGINE else ""
        return verdicts.verdict_of_overtime(self._budget, at_work, place(self._stack, self._launch.root), output)

    def close(self) -> None:
        if self._process is None:
            return
        if not self.ended:
            processes.end(self._process.pid, self._tag)
        self._process.wait()
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()

    def _keep(self, piece: bytes) -> None:
        self._tail += piece
        del self._tail[:-TAIL]

    def _drain(self) -> None:
        assert self._process is not None
        while piece := _read(self._process.stdout):
            self._take(piece)
        self._drain_output()

    def _drain_output(self) -> None:
        assert self._process is not None
        while piece := _read(self._process.stderr):
            self._keep(piece)

    def _take(self, piece: bytes) -> None:
        *lines, self._line = (self._line + piece).split(b"\n")
        for line in lines:
            try:
                message = parse_json(line)
            except ValueError:
                message = None
            if not isinstance(message, dict):
                self._stack = (self._stack + line.decode("utf-8", "replace") + "\n")[-20_000:]
            elif "begin" in message:
                self._began = time.monotonic()
            elif "done" in message:
                self._done = True
            elif message.get("check") in self._left:
                self._left.remove(message["check"])
                self._drain_output()
                self._tell(verdicts.verdict_of_message(message, self._tail.decode("utf-8", "replace")))

    def _finish(self, verdict: Verdict | None) -> None:
        """The check that was under way ends as `verdict` says; those after it were not reached."""
        self.ended = True
        if self._process is not None:
            processes.end(self._process.pid, self._tag)
        if not self._left:
            return
        first, *others = self._left
        self._left = []
        if verdict is not None:
            self._tell(dict(verdict, name=first, seconds=time.monotonic() - self._began))
        for name in others if verdict is not None else [first, *others]:
            self._tell(verdicts.not_reached(name, verdict))


def _read(stream: Any) -> bytes | None:
    """What is there; None where there is nothing yet, empty at the end."""
    try:
        return os.read(stream.fileno(), 65536)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def _source(program: Program, launch: Launch, budget: float) -> bytes:
    modules = [*_HELPERS, *(MODULES[part] for part in program.parts)]
    sources = {package: "" for name in modules for package in _packages(name)}
    sources.update((name, _text(name)) for name in modules)
    job = {
        "parts": program.parts,
        "modules": MODULES,
        "args": dict(program.args, root=launch.root, scratch=launch.scratch),
        "budget": budget,
        "sources": sources,
    }
    body = _text("patcher.preflight.agent.program_start")
    given = f"import json\nJOB = json.loads({json.dumps(json.dumps(job))})\n"
    return f"{given}exec(compile({body!r}, '<start>', 'exec'))".encode()


def _packages(module: str) -> list[str]:
    """The packages that a module is in, the outermost first."""
    parts = module.split(".")
    return [".".join(parts[:length]) for length in range(1, len(parts))]


def _text(module: str) -> str:
    spec = find_spec(module)
    assert spec is not None
    assert spec.loader is not None
    return str(spec.loader.get_source(module))  # type: ignore[attr-defined]
