"""The types for stacks: frames, threads, ranks, processes, and locks of one machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

How: TypeAlias = Literal["py-spy", "faulthandler", "proc"]
"""How the stack was taken. `proc`: it was not, and only the kernel says what the process does."""
Role: TypeAlias = Literal["driver", "rank", "engine", "loader", "worker", "helper", "system"]
"""`driver` leads; `rank` trains; `engine` generates; `loader` reads data for one of them; `worker`: another of Ray's;
`helper`: a shell, `tee`, a compiler, a resource tracker; `system`: Ray's own."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame. `path` is shortened: from the package or the tree on, in Python's standard library the file only."""

    path: str
    function: str
    """With its class where that is known: `Worker.get`."""
    line: int = 0
    library: bool = False
    """Whether it is in Python's standard library."""

    @property
    def place(self) -> str:
        """`verl/trainer/main_ppo.py:main`."""
        return f"{self.path}:{self.function}"

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts that patterns are searched in: with the class of the function, and without."""
        bare = self.function.rpartition(".")[2]
        return (self.place,) if bare == self.function else (self.place, f"{self.path}:{bare}")


@dataclass(frozen=True, slots=True)
class Thread:
    """The Python stack of a thread, innermost frame first."""

    frames: tuple[Frame, ...]
    name: str = ""
    main: bool = False


@dataclass(frozen=True, slots=True)
class Rank:
    """The rank of a process in its group; None where it is not known."""

    number: int | None = None
    size: int | None = None
    group: str = ""
    """Which group, if there are several: Ray's name of the worker group, or TP, DP of an engine."""


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
    """Where its main thread is in the kernel: `wchan`, `call`, `file`, `ends`, `peer`, as `process_facts` returns them.
    """
    kernel: tuple[str, ...] = ()
    closed: str = ""
    """Why its stack may not be read: user, capabilities, yama, closed; "" if it may."""
    failed: tuple[tuple[str, str], ...] = ()
    """The ways to take the stack that failed, each with its message."""

    @property
    def main(self) -> Thread | None:
        """The main thread; None where no stack was taken."""
        return next((thread for thread in self.threads if thread.main), None)

    @property
    def stopped(self) -> bool:
        """Whether a signal stopped it (SIGSTOP, a debugger)."""
        return self.state in ("T", "t")


@dataclass(frozen=True, slots=True)
class Lock:
    """A file lock that a process of the job holds or waits for; the holders by pid and name."""

    path: str | None
    holders: Mapping[int, str]
    waiters: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class MachineStacks:
    """The processes and locks of one machine. `spy`: the py-spy that was used."""

    host: str
    processes: Sequence[Process]
    locks: Sequence[Lock] = ()
    spy: str | None = None
    """The py-spy that was used."""
