"""The types of a look at the stacks: frames, threads, ranks, processes, locks of one machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

How: TypeAlias = Literal["py-spy", "faulthandler", "proc"]
"""Whose account of a process it is. `proc`: only what the kernel tells."""
Role: TypeAlias = Literal["driver", "rank", "engine", "loader", "worker", "helper", "system"]
"""`driver` leads; `rank` trains; `engine` generates; `loader` reads data for one; `worker`: another of Ray's;
`helper`: a shell, a tee, a compiler, a tracker of resources; `system`: Ray's own."""


@dataclass(frozen=True, slots=True)
class Frame:
    """`path` as it is shown: from the package or the tree on, of Python's library the file alone."""

    path: str
    function: str
    """With its class where that is known: `Worker.get`."""
    line: int = 0
    library: bool = False
    """Whether it is of Python's own library."""

    @property
    def place(self) -> str:
        """`verl/trainer/main_ppo.py:main`."""
        return f"{self.path}:{self.function}"

    @property
    def texts(self) -> tuple[str, ...]:
        """What patterns are searched in: with the function's class, and without."""
        bare = self.function.rpartition(".")[2]
        return (self.place,) if bare == self.function else (self.place, f"{self.path}:{bare}")


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread's Python stack; frames come innermost first."""

    frames: tuple[Frame, ...]
    name: str = ""
    main: bool = False


@dataclass(frozen=True, slots=True)
class Rank:
    """A process's place among those that work together; what is not known is None."""

    number: int | None = None
    size: int | None = None
    group: str = ""
    """Which of several such groups: Ray's name of the worker group, or TP, DP of an engine."""


@dataclass(frozen=True, slots=True)
class Process:
    """One process of the job."""

    pid: int
    host: str
    title: str
    role: Role
    rank: Rank = Rank()
    parent: int = 0
    state: str = "S"
    """As the kernel has it: T is stopped, D waits for a device, R runs."""
    how: How = "proc"
    threads: tuple[Thread, ...] = ()
    waits: Mapping[str, Any] = field(default_factory=dict)
    """Where its main thread is in the kernel: `wchan`, `call`, `file`, `ends`, `peer`."""
    kernel: tuple[str, ...] = ()
    closed: str = ""
    """Why it cannot be looked into: user, capabilities, yama, closed."""
    failed: tuple[tuple[str, str], ...] = ()
    """What was tried in vain, and its message."""

    @property
    def main(self) -> Thread | None:
        """The main thread; None where no stack was taken."""
        return next((thread for thread in self.threads if thread.main), None)

    @property
    def stopped(self) -> bool:
        """Whether a signal has stopped it (SIGSTOP, a debugger)."""
        return self.state in ("T", "t")


@dataclass(frozen=True, slots=True)
class Lock:
    """A file lock that a process of the job holds or waits for: who holds it, by number and name."""

    path: str | None
    holders: Mapping[int, str]
    waiters: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class MachineStacks:
    """The processes of one machine."""

    host: str
    processes: Sequence[Process]
    locks: Sequence[Lock] = ()
    spy: str | None = None
    """The py-spy that was used."""
