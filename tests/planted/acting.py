"""Run a command in a child: what it opens is noted, and its time and memory are limited."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from patcher.cli.app import run
from patcher.remote import agent_program

MEMORY = 4 << 30
"""Bytes of address space that a command and each process of it may have."""
SECONDS = 60.0
HOOK = """
import os, sys
def _noting(fd):
    events = ("open", "os.listdir", "os.scandir", "os.mkdir")
    def hook(event, args):
        if event in events and isinstance(args[0], (str, bytes)):
            os.write(fd, os.fsencode(os.path.join(os.getcwd(), os.fsdecode(args[0]))) + b"\\0")
    def noted(real):
        def call(path, *args, **options):
            hook("open", (path,))
            return real(path, *args, **options)
        return call
    sys.addaudithook(hook)
    os.lstat, os.stat = noted(os.lstat), noted(os.stat)  # What is missing is not opened.
_noting(os.open({file!r}, os.O_WRONLY | os.O_APPEND))
"""


@dataclass(frozen=True)
class Done:
    """How a command ended; `code` is None where it was still at work when its time was over."""

    code: int | None
    out: str
    err: str


def act(base: Path, words: Sequence[str], notes: Path | None = None) -> Done:
    """Run `uky-patch` with `words` in the tree of the site `base`; the paths that it opens go into `notes`."""
    told = base.with_name("told")
    told.mkdir(exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        _child(base, words, told, notes)
    deadline = time.monotonic() + SECONDS
    code: int | None = None
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            code = os.waitstatus_to_exitcode(status)
            break
        if time.monotonic() > deadline:
            break
        time.sleep(0.005)
    with contextlib.suppress(ProcessLookupError):  # The agent and its like, where the command did not end them.
        os.killpg(child, signal.SIGKILL)
    if code is None:
        os.waitpid(child, 0)
    return Done(code, *((told / name).read_text(errors="replace") for name in ("out", "err")))


def _child(base: Path, words: Sequence[str], told: Path, notes: Path | None) -> None:
    code = 99
    try:
        os.setsid()
        for number, name in ((0, None), (1, "out"), (2, "err")):
            flags = os.O_RDONLY if name is None else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            os.dup2(os.open(os.devnull if name is None else told / name, flags), number)
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
        for name in [
            name for name in os.environ if name.startswith(("PIP_", "XDG_", "UKY_")) or name.endswith("_proxy")
        ]:
            del os.environ[name]
        os.environ.update(HOME=str(base / "home"), LC_ALL="C.UTF-8", PYTHONDONTWRITEBYTECODE="1")
        os.chdir(base / "tree")
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        if notes is not None:
            hook = HOOK.format(file=str(notes))
            agent_program.BOOTSTRAP = hook + agent_program.BOOTSTRAP
            exec(hook, {})
        code = run(list(words))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
