"""Find the log files that a path stands for: a file, or the newest run in a folder with many logs.

Logs belong to one run if the times overlap in which they were written. Also of one run are the logs of its ranks, whose
names or folders differ only in the rank's number, and logs of one name, such as `slurm-7.out` and `slurm-7.err`. A
session of Ray is one run. If the files were copied together, so that their own times say nothing, the times on their
lines count.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeAlias

from patcher.diagnose.log_stream import STANDARD_INPUT, open_log
from patcher.errors import UsageError
from patcher.i18n import phrase
from patcher.logs.labels import time_of

_NAME = re.compile(r"(?P<stem>.+\.(?:log|out|err|txt))(?:[.-](?P<turn>\d+))?(?:\.(?:gz|xz|zst))?", re.IGNORECASE)
"""`train.log`, `slurm-7.out.gz`, and rotated ones: `worker.log.2`, `worker.log-2.gz`."""
_DATED = re.compile(r"(?P<stem>.+)\.(?:log|out|err)[.-]\d{4}-?\d\d-?\d\d\S*", re.IGNORECASE)
"""Rotated by date: `train.log.2026-01-11`."""
_DAEMON_LOGS = re.compile(r"raylet\.|gcs_server\.")
"""Logs of Ray's daemons that say why workers ended. Most errors in them are harmless."""
_OTHER_RAY_LOGS = re.compile(
    r"(?:dashboard|monitor|log_monitor|python-core-|ray_client_server|agent-|runtime_env_agent|event_|debug_state|redis"
    r"|ray_process_exit|metrics|nsight)"
)
"""Logs of Ray that say nothing of a run."""
_EVENTS = ("events", "export_events")
"""Folders in which Ray keeps records of its own."""
_NO_LOGS = ("__pycache__", "node_modules", "site-packages")
"""Folders of programs, which are skipped; so are folders whose names begin with a dot."""
_OF_A_PROJECT = (".git", "pyproject.toml", "setup.py", "verl/__init__.py")
"""A folder with one of these is one of source code."""
_LATEST = "session_latest"
"""Ray's link to the folder of its latest session, in `/tmp/ray`."""


@dataclass(frozen=True, slots=True)
class RotatedLog:
    """One log with its rotated parts, the oldest first."""

    parts: tuple[str, ...]
    of_ray_daemon: bool = False
    """Whether it is the log of a Ray daemon. In it only symptoms count, and those only as the cause of another end."""


def logs_named(log: str) -> Sequence[RotatedLog]:
    """The logs that a path stands for: a file, `-`, or all logs below a folder. Of Ray's folder, those of its latest
    session.

    Raises UsageError for a folder without logs.
    """
    path = Path(log)
    if log == STANDARD_INPUT or not path.is_dir():
        return [RotatedLog((log,))]
    parts, empty = _logs_below(path / _LATEST) if (path / _LATEST).is_dir() else ({}, 0)
    if not parts:
        parts, empty = _logs_below(path)
    if not parts:
        raise UsageError(
            phrase("there are no logs in {folder}", folder=path),
            cause=phrase("{count} {count:log|logs} there, and nothing in {count:it|them}", count=empty)
            if empty
            else "",
            advice="Logs are files that end in .log, .out, .err or .txt, packed and rotated ones too.",
        )
    return [
        RotatedLog(tuple(name for _, _, name in sorted(found)), bool(_DAEMON_LOGS.match(Path(stem).name)))
        for stem, found in sorted(parts.items())
    ]


_Parts: TypeAlias = "dict[str, list[tuple[int, float, str]]]"
"""By the path of a log without its number and ending: its rotated parts, with number, time and path."""


def _logs_below(folder: Path) -> tuple[_Parts, int]:
    """The logs below a folder, of a session of Ray those below `logs` alone, and how many more are empty."""
    top = folder / "logs" if (folder / "logs").is_dir() else folder
    parts: _Parts = {}
    empty = 0
    for at, folders, names in os.walk(top):
        folders[:] = [one for one in folders if may_hold_logs(one)]
        for name in sorted(names):
            if (found := _log_name(name)) is not None:
                file = Path(at) / name
                with contextlib.suppress(OSError):
                    status = file.stat()
                    if stat.S_ISREG(status.st_mode) and status.st_size:
                        turn = int(found.groupdict().get("turn") or 0)
                        parts.setdefault(f"{at}/{found['stem']}", []).append((-turn, status.st_mtime, str(file)))
                    elif stat.S_ISREG(status.st_mode):
                        empty += 1
    return parts, empty


def may_hold_logs(folder: str) -> bool:
    """Whether to search a subfolder of this name for logs."""
    return not folder.startswith(".") and folder not in (*_EVENTS, *_NO_LOGS)


def is_named_like_a_log(name: str) -> bool:
    """Whether a file name is that of a log: `train.log`, `slurm-12.out.gz`, `run.err.1`, `notes.txt`; no log of Ray's
    own."""
    return _log_name(name) is not None


def _log_name(name: str) -> re.Match[str] | None:
    """The parts of a log's file name: its `stem`, and its `turn` if it was rotated; None for other files."""
    return None if _OTHER_RAY_LOGS.match(name) else _NAME.fullmatch(name) or _DATED.fullmatch(name)


def is_of_sources(folder: Path) -> bool:
    """Whether a folder is one of source code, in which text files may be anything."""
    return any((folder / one).exists() for one in _OF_A_PROJECT)


_PART = 1 << 16
"""Bytes at the beginning and the end of a log in which times and signs of a run are searched: some hundred lines."""
_SLACK = 60.0
"""Seconds that two logs of one run may be apart, as when a worker wrote its last line earlier. Set by hand."""
_RANK = re.compile(r"((?:rank|worker|node|gpu|proc|process|actor|local|tp|dp|pp)[-_.=]?)\d+", re.IGNORECASE)
_RANK_FOLDER = re.compile(r"(?<=/)\d{1,3}(?=/)")
"""The number of a rank as a folder: torchrun's `attempt_0/3/stderr.log`."""
_ENDING = re.compile(r"\.(?:log|out|err|txt)$|\b(?:stdout|stderr)\b", re.IGNORECASE)


@dataclass(slots=True)
class _Run:
    logs: list[RotatedLog]
    keys: set[str]
    begun: float
    ended: float

    def is_one_with(self, other: _Run) -> bool:
        if self.keys & other.keys:
            return True
        return self.begun <= other.ended + _SLACK and other.begun <= self.ended + _SLACK


@dataclass(frozen=True, slots=True)
class _Times:
    """When a log was written: by its file, and by the first and last time on its lines; None where no line has one."""

    changed: float
    first: float | None
    last: float | None


def group_by_run(logs: Sequence[RotatedLog]) -> list[list[RotatedLog]]:
    """Group logs by run, the run that was written to last first. Raises UsageError for a log that cannot be read."""
    if len(logs) == 1 or any(one.of_ray_daemon for one in logs):
        return [list(logs)]
    times = [_times(one) for one in logs]
    copied = _are_copies(times)
    found: list[_Run] = []
    undated: list[RotatedLog] = []
    for one, span in zip(logs, times, strict=True):
        if copied and span.last is None:
            undated.append(one)
            continue
        ended = span.last if copied and span.last is not None else span.changed
        own = _Run([one], {_name_without_rank(one)}, min(ended, span.first if span.first is not None else ended), ended)
        for other in [run for run in found if run.is_one_with(own)]:
            found.remove(other)
            logs_of_both, keys = [*other.logs, *own.logs], own.keys | other.keys
            own = _Run(logs_of_both, keys, min(own.begun, other.begun), max(own.ended, other.ended))
        found.append(own)
    ordered = [run.logs for run in sorted(found, key=lambda run: run.ended, reverse=True)]
    return [[*ordered[0], *undated], *ordered[1:]]


def _are_copies(times: Sequence[_Times]) -> bool:
    """Whether all files have the same time and their lines do not. Then the files' times are those of a copy."""
    changed = [one.changed for one in times]
    last = [one.last for one in times if one.last is not None]
    return max(changed) - min(changed) < _SLACK and bool(last) and max(last) - min(last) > _SLACK


def _name_without_rank(one: RotatedLog) -> str:
    """The name of a log without rank and ending, which the logs of one run have in common."""
    return _ENDING.sub("", _RANK_FOLDER.sub("*", _RANK.sub(r"\1*", one.parts[-1])))


def _times(one: RotatedLog) -> _Times:
    changed = Path(one.parts[-1]).stat().st_mtime
    year = time.localtime(changed).tm_year
    first, last = _times_told(one.parts[0], year), _times_told(one.parts[-1], year)
    return _Times(changed, first[0] if first else None, last[-1] if last else None)


def _times_told(name: str, year: int) -> list[float]:
    """The times on the first and last lines of a log, in order. Times of another time zone are off by hours."""
    with open_log(name) as stream:
        try:
            lines = both_ends(stream).decode("utf-8", "replace").splitlines()
        except UsageError:  # It is no text. Reading the log will raise the same error.
            return []
    return [stamp for line in lines if (stamp := time_of(line, year)) is not None]


def both_ends(stream: BinaryIO) -> bytes:
    """The beginning and the end of a log. A packed log has to be read through to its end."""
    head, tail = stream.read(_PART), b""
    while piece := stream.read(1 << 20):
        tail = (tail + piece)[-_PART:]
    return head + b"\n" + tail
