"""Faults at chosen system calls: `Faults` stands in for `os` where the worktree engine changes the disk.

The same faults strike the tree here and, as `tests.agent.direct` runs the agent in this process, the tree on a host.
"""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

from patcher.worktree import disk, files, locks

CHANGING = frozenset(
    "write pwrite fsync ftruncate setxattr utime chmod fchmod chown fchown "  # noqa: SIM905
    "replace link symlink unlink mkdir rmdir".split()
)


class KilledError(BaseException):
    """The process has died; after it, no call has an effect."""


class Faults:
    """Counts the calls that change the disk; at number `at`, counted from 0, `strike` is called.

    A write is struck after half of its bytes, unless `torn` says that the strike lets it go on. A strike that raises
    `KilledError` makes every later call raise it.
    """

    def __init__(self, at: int | None = None, strike: Callable[[], None] = lambda: None, *, torn: bool = True) -> None:
        self.at, self.strike, self.calls, self.dead, self.torn = at, strike, [], False, torn

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        if name != "open" and name not in CHANGING:
            return real

        def call(*arguments: Any, **options: Any) -> Any:
            if name == "open" and not arguments[1] & os.O_CREAT:
                return real(*arguments, **options)
            if self.dead:
                raise KilledError
            self.calls.append(name)
            if len(self.calls) - 1 == self.at:
                if self.torn and name in ("write", "pwrite"):
                    real(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2], *arguments[2:])
                try:
                    self.strike()
                except KilledError:
                    self.dead = True
                    raise
            return real(*arguments, **options)

        return call


@contextmanager
def faults(at: int | None = None, strike: Callable[[], None] = lambda: None, *, torn: bool = True):
    """Have the faults strike within."""
    stand_in = Faults(at, strike, torn=torn)
    modules = (disk, files, locks)
    before = [module.os for module in modules]
    for module in modules:
        module.os = stand_in
    try:
        yield stand_in
    finally:
        for module, real in zip(modules, before, strict=True):
            module.os = real


def count(act: Callable[[], object]) -> int:
    """How many calls `act` makes that change the disk."""
    with faults() as stand_in:
        act()
    return len(stand_in.calls)


def die() -> None:
    raise KilledError


def killed_at(at: int, act: Callable[[], object]) -> bool:
    """Run `act` in this process, dead from call `at` on. False: it ended before."""
    try:
        with faults(at, die):
            act()
    except KilledError:
        return True
    return False


def fork(act: Callable[[], object]) -> int:
    """Run `act` in a child and return the child's process id at once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        return child
    code = 1
    try:
        act()
        code = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)


def wait_for(child: int) -> int:
    """The child's exit code; negative for the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def sigkilled_at(at: int, act: Callable[[], object]) -> bool:
    """Run `act` in a child that gets SIGKILL at call `at`. False: it ended before."""

    def child() -> None:
        with faults(at, lambda: os.kill(os.getpid(), signal.SIGKILL)):
            act()

    code = wait_for(fork(child))
    assert code in (0, -signal.SIGKILL)
    return code != 0
