"""Group processes by their stacks, and find the odd ones: the rank that is elsewhere while all others wait for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from patcher.i18n import NOTHING, Phrase, Phrases, phrase
from patcher.watch.stacks.frame_meaning import (
    FrameMeaning,
    frames_key,
    kernel_call,
    meaning_of,
    telling_frames,
    waits_for,
)
from patcher.watch.stacks.processes import Frame, Lock, Process, Role

ORDER: tuple[Role, ...] = ("rank", "engine", "loader", "driver", "worker", "helper", "system")


@dataclass(frozen=True, slots=True)
class Group:
    """Processes of one role in one place. `odd` if they hold up, or stand apart from, the others of their role."""

    processes: tuple[Process, ...]
    frames: tuple[Frame, ...]
    """The frames that say where they are, innermost first; empty where only the kernel is known."""
    doing: FrameMeaning | None
    odd: Phrase | Phrases = NOTHING
    """Why the group is odd; empty where it is not."""

    @property
    def role(self) -> Role:
        """The role of the processes in the job."""
        return self.processes[0].role

    @property
    def ranks(self) -> tuple[int, ...]:
        """Their ranks, sorted; empty where none is known."""
        return tuple(sorted({one.rank.number for one in self.processes if one.rank.number is not None}))

    @property
    def pids(self) -> tuple[int, ...]:
        return tuple(one.pid for one in self.processes)

    @property
    def action(self) -> Phrase | Phrases:
        """What they do, in words; empty where nothing is known."""
        if self.processes[0].stopped or self.doing is None:
            return waits_for(self.processes[0])
        return self.doing.meaning

    @property
    def where(self) -> str:
        """The place in short: the first frame outside of the standard library, else what the kernel says."""
        if not self.frames:
            return str(waits_for(self.processes[0])) or self.processes[0].state
        own = next((frame for frame in self.frames if not frame.library), self.frames[0])
        return own.place


@dataclass(frozen=True, slots=True)
class ProcessGroups:
    """All groups, ranks first; the ranks that are missing, and the size of the process group if known."""

    groups: tuple[Group, ...]
    absent: tuple[int, ...] = ()
    size: int | None = None

    @property
    def odd(self) -> tuple[Group, ...]:
        """The groups that hold up the others, or stand apart."""
        return tuple(group for group in self.groups if group.odd)


def group_processes(processes: Iterable[Process], locks: Iterable[Lock] = ()) -> ProcessGroups:
    """Group the processes of a job, without Ray's own and without Ray's idle workers.

    A process that holds a file lock of `locks` for which others wait is odd.
    """
    found = [one for one in processes if one.role != "system" and not one.title.startswith("ray::IDLE")]
    places: dict[tuple[object, ...], list[Process]] = {}
    for one in found:
        places.setdefault(_place(one), []).append(one)
    groups = [_group(tuple(members)) for members in places.values()]
    absent, size = _absent(found)
    holders = {pid for lock in locks if lock.waiters for pid in lock.holders}
    groups = [_with_oddness(group, groups, absent, holders) for group in groups]
    groups.sort(key=lambda group: (ORDER.index(group.role), -len(group.processes)))
    return ProcessGroups(tuple(groups), absent, size)


def _place(process: Process) -> tuple[object, ...]:
    head = (process.role, process.rank.group, process.stopped)
    main = process.main
    if main is not None and main.frames:
        return (*head, frames_key(telling_frames(main.frames)))
    return (*head, process.state in "RD", kernel_call(process), str(waits_for(process)))


def _group(members: tuple[Process, ...]) -> Group:
    main = members[0].main
    frames = main.frames if main is not None else ()
    return Group(members, telling_frames(frames), meaning_of(frames))


def _absent(processes: Sequence[Process]) -> tuple[tuple[int, ...], int | None]:
    """The ranks below WORLD_SIZE that no process has, and WORLD_SIZE; nothing where the processes disagree about it."""
    ranks = [one.rank for one in processes if one.role == "rank" and one.rank.number is not None]
    sizes = {one.size for one in ranks if one.size}
    if len(sizes) != 1:
        return (), None
    size = sizes.pop()
    return tuple(sorted(set(range(size)) - {one.number for one in ranks})), size


def _with_oddness(group: Group, groups: Sequence[Group], absent: tuple[int, ...], holders: set[int]) -> Group:
    odd = _oddness(group, [other for other in groups if other.role == group.role and other is not group], absent)
    if holders & set(group.pids):
        odd = phrase("holds the file lock that others wait for")
    return replace(group, odd=odd)


def _oddness(group: Group, others: Sequence[Group], absent: tuple[int, ...]) -> Phrase | Phrases:
    """Why a group is odd: its processes are stopped, or they are elsewhere while all others of their role wait."""
    first = group.processes[0]
    if first.stopped:
        return phrase("the others can wait for ever")
    if group.role not in ("rank", "engine", "loader") or not others or any(one.processes[0].stopped for one in others):
        return NOTHING
    most = max(others, key=lambda other: len(other.processes))
    waiting = group.doing is not None and group.doing.act == "waits-peers"
    others_wait = most.doing is not None and most.doing.act == "waits-peers"
    if others_wait and not waiting:
        if first.state == "R":
            return phrase("on a processor while the others wait for it")
        return phrase("elsewhere while the others wait for it")
    if waiting and not others_wait:
        return NOTHING
    # If a rank is missing, those that wait for it are not odd.
    if absent and waiting:
        return NOTHING
    if len(most.processes) > len(group.processes):
        return phrase("in another place than the others")
    return NOTHING
