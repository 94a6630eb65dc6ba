"""Which logs of a folder are of one run, told without reading more than their beginnings.

Logs are of one run where the times overlap in which they were written; so are those of its ranks, whose names or
folders differ in a rank's number alone, and those of one name, as `slurm-7.out` and `slurm-7.err`. A session of Ray is
one run. Of files that were copied together, the times that their lines tell count.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from patcher.diagnose.folders import Series
from patcher.diagnose.opening import opened
from patcher.diagnose.times import time_of
from patcher.errors import UsageError

_PART = 1 << 16
"""Bytes of a log's beginning, and of its end, in which times are looked for."""
_SLACK = 60.0
"""Seconds between two logs of one run: a copy, or a worker that said its last word earlier."""
_RANK = re.compile(r"((?:rank|worker|node|gpu|proc|process|actor|local|tp|dp|pp)[-_.=]?)\d+", re.IGNORECASE)
_RANK_FOLDER = re.compile(r"(?<=/)\d{1,3}(?=/)")
"""torchrun's `attempt_0/3/stderr.log`."""
_ENDING = re.compile(r"\.(?:log|out|err|txt)$|\b(?:stdout|stderr)\b", re.IGNORECASE)


@dataclass(slots=True)
class _Run:
    logs: list[Series]
    keys: set[str]
    begun: float
    ended: float

    def is_one_with(self, other: _Run) -> bool:
        if self.keys & other.keys:
            return True
        return self.begun <= other.ended + _SLACK and other.begun <= self.ended + _SLACK


@dataclass(frozen=True, slots=True)
class _Times:
    """When a log was written: by its file, and by the first and last time that it tells; None where it tells none."""

    changed: float
    first: float | None
    last: float | None


def runs(logs: Sequence[Series]) -> list[list[Series]]:
    """The logs of each run, the run that was written to last first. Raises UsageError for one that cannot be read."""
    if len(logs) == 1 or any(one.housekeeping for one in logs):
        return [list(logs)]
    times = [_times(one) for one in logs]
    copied = _are_copies(times)
    found: list[_Run] = []
    undated: list[Series] = []
    for one, told in zip(logs, times, strict=True):
        if copied and told.last is None:
            undated.append(one)
            continue
        ended = told.last if copied and told.last is not None else told.changed
        own = _Run([one], {_key(one)}, min(ended, told.first if told.first is not None else ended), ended)
        for other in [run for run in found if run.is_one_with(own)]:
            found.remove(other)
            logs_of_both, keys = [*other.logs, *own.logs], own.keys | other.keys
            own = _Run(logs_of_both, keys, min(own.begun, other.begun), max(own.ended, other.ended))
        found.append(own)
    ordered = [run.logs for run in sorted(found, key=lambda run: run.ended, reverse=True)]
    return [[*ordered[0], *undated], *ordered[1:]]


def _are_copies(times: Sequence[_Times]) -> bool:
    """Whether all files changed at one time, and their lines tell of several: what the files say is of the copying."""
    changed = [one.changed for one in times]
    last = [one.last for one in times if one.last is not None]
    return max(changed) - min(changed) < _SLACK and bool(last) and max(last) - min(last) > _SLACK


def _key(one: Series) -> str:
    """What the logs of one run's ranks have in common."""
    return _ENDING.sub("", _RANK_FOLDER.sub("*", _RANK.sub(r"\1*", one.parts[-1])))


def _times(one: Series) -> _Times:
    changed = Path(one.parts[-1]).stat().st_mtime
    year = time.localtime(changed).tm_year
    first, last = _told(one.parts[0], year), _told(one.parts[-1], year)
    return _Times(changed, first[0] if first else None, last[-1] if last else None)


def _told(name: str, year: int) -> list[float]:
    """The times that a log's beginning and end tell. Those of another time zone are off by hours."""
    with opened(name) as stream:
        try:
            head = tail = stream.read(_PART)
            while piece := stream.read(_PART):
                tail = (tail + piece)[-_PART:]
        except UsageError:  # It is no text; whoever reads it says so.
            return []
    lines = (head + b"\n" + tail).decode("utf-8", "replace").splitlines()
    return [told for line in lines if (told := time_of(line, year)) is not None]
