"""Whether processes that compute get anywhere: two looks at their stacks, a few seconds apart."""

from __future__ import annotations

from collections.abc import Sequence

from patcher.watch.activity import Name
from patcher.watch.stacks.meaning import doing
from patcher.watch.stacks.model import Process

_COMPILERS = ("cc1", "cc1plus", "cicc", "clang", "g++", "gcc", "hipcc", "ld", "ninja", "nvcc", "ptxas")


def moved(first: Sequence[Process], second: Sequence[Process], busy: Sequence[Name]) -> bool:
    """Whether a process that computes, among `busy`, stands elsewhere now, or one has come or gone."""
    before = {(process.host, process.pid): process for process in first if _counts(process)}
    after = {(process.host, process.pid): process for process in second if _counts(process)}
    if before.keys() != after.keys():
        return True
    return any(_calls(before[one]) != _calls(after[one]) for one in busy if one in before and before[one].threads)


def works(processes: Sequence[Process], busy: Sequence[Name]) -> bool:
    """Whether a process that computes does so where work is done, or where nobody can tell that it waits."""
    for process in processes:
        main = process.main
        if (process.host, process.pid) in busy and process.role != "system":
            found = doing(main.frames) if main is not None else None
            if found is None or found.act == "works":
                return True
    return False


def _counts(process: Process) -> bool:
    return process.role not in ("system", "helper") or process.title.partition(" ")[0].rpartition("/")[2] in _COMPILERS


def _calls(process: Process) -> tuple[str, ...]:
    """The functions that are called: lines change also where something only looks again and again."""
    main = process.main
    return tuple(frame.place for frame in (main.frames if main is not None else ()) if not frame.library)
