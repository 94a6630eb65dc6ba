"""Follow a log on this machine as it grows, even if it does not exist yet, is rotated, or is truncated.

Of what the log already has, only lines that matter are read. Their own times say when they were written.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from patcher.cluster.model import NETWORK
from patcher.jobs.agent.folder import read as read_json
from patcher.jobs.agent.log_reading import Times, find_lines
from patcher.jobs.agent.processes import TICKS
from patcher.logs.agent.writers import descriptors
from patcher.logs.labels import time_of
from patcher.logs.lines import Line, Lines, strip_prefix
from patcher.logs.milestones import FIRST_SEEN, LAST_SEEN
from patcher.remote.agent.resources import mount
from patcher.watch.run_state import DIAGNOSED_BYTES, LAST_LINES, End, RunState, open_end
from patcher.worktree.files import open_binary

REACH = 1 << 16
"""Bytes before a line in which a time is searched."""
_HALF_HOUR = 1800.0
"""Seconds. The offsets of time zones are multiples of it, as those of India and Newfoundland show."""
_NEAR = 60.0
"""Seconds by which the last time in the log and the file's last change may differ, apart from whole half hours. A
guess: a run prints something about once a minute."""


class Stamps:
    """The times that loggers put before the lines of a log, as seconds since 1970. `wrote`: when the file last
    changed."""

    def __init__(self, log: BinaryIO, wrote: float) -> None:
        self._log = log
        self._wrote = wrote
        size = os.fstat(log.fileno()).st_size
        last = self._found(size, last=True)
        self._shift = _shift(last, wrote) if last is not None else 0.0
        first = self._found(min(size, REACH), last=False)
        self.first = None if first is None else first + self._shift

    def at(self, offset: int) -> float | None:
        """The last time before the byte at `offset`; None where none is near."""
        found = self._found(offset + 1, last=True)
        return None if found is None else min(found + self._shift, self._wrote)

    def _found(self, end: int, *, last: bool) -> float | None:
        begin = max(0, end - REACH)
        lines = os.pread(self._log.fileno(), end - begin, begin).decode("utf-8", "replace").splitlines()
        stamps = (self._time(line) for line in (reversed(lines) if last else lines))
        return next((stamp for stamp in stamps if stamp is not None), None)

    def _time(self, line: str) -> float | None:
        """The time on a line. A time without a year belongs to the year before if it would otherwise be in the
        future."""
        line = strip_prefix(line).text
        year = time.localtime(self._wrote).tm_year
        found = time_of(line, year)
        return found if found is None or found <= self._wrote + 86400 else time_of(line, year - 1)


def _shift(last: float, wrote: float) -> float:
    """The offset of a log's clock from ours, in whole half hours; 0 unless the log's last time fits the file's last
    change."""
    whole = round((wrote - last) / _HALF_HOUR) * _HALF_HOUR
    return whole if whole and abs(wrote - last - whole) < _NEAR and abs(whole) <= 14 * 3600 else 0.0


NAP = 0.25
"""Seconds between looks for new text in the log."""
CHUNK = 1 << 20
"""Bytes that are read at once, to bound the memory."""
LAST = 1 << 16
"""Bytes of the log's end in which its last lines are searched."""
ABANDONED = 10.0
"""Seconds of silence after which a log that no process has open counts as abandoned.

A guess: a program that opens its log for each line is not seen to have it open.
"""


class LocalLog:
    """A log by its path, or no log, as a `run_state.Source`. The job is the processes that write it, or those named.

    If a job of uky-patch writes the log, the job's folder has its start, its times and its end.
    """

    def __init__(self, path: Path | None, started: float | None = None) -> None:
        self.name = str(path) if path is not None else ""
        self._path = path
        self._log: BinaryIO | None = None
        self._offset = 0
        self._lines = Lines()
        self._folder = path.parent if path is not None and (path.parent / "job.json").is_file() else None
        self._job: Mapping[str, Any] = (read_json(str(self._folder / "job.json")) or {}) if self._folder else {}
        self._started = self._job.get("started") or started
        self._members: int | None = None
        self._seen = False
        self._named = path is None
        self._foreign: bool | None = None

    @property
    def profile(self) -> str | None:
        found = self._job.get("profile")
        return str(found) if found else None

    @property
    def unwritten(self) -> bool:
        return self._path is not None and not self._seen

    def begin(self, state: RunState) -> None:
        wrote = self._history(state)
        if self._started is None:
            self._started = time.time()
        state.milestones.at = max(state.milestones.at, 0.0)
        state.begun = min(self.now(), wrote) if wrote is not None else self.now()

    def read(self, state: RunState, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while True:
            self._more(state)
            left = deadline - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(NAP, left))

    def now(self) -> float:
        return max(0.0, time.time() - (self._started if self._started is not None else time.time()))

    def update_members(self, look: Mapping[str, Any]) -> None:
        self._members = len(look["processes"])
        self._seen = self._seen or self._members > 0

    def end(self) -> End | None:
        if self._folder is not None and (end := read_json(str(self._folder / "end.json"))) is not None:
            return End(end["code"], (self._folder / "stop.json").exists())
        if self._seen and self._members == 0:
            return End()
        return End(unseen=True) if self._abandoned() else None

    def content(self) -> list[tuple[str, BinaryIO]]:
        if self._path is None:
            return []
        try:
            # The file that is followed may have another name by now: `mv run.log run.log.1`.
            log = open_binary(Path(f"/proc/self/fd/{self._log.fileno()}") if self._log is not None else self._path)
        except OSError:
            return []
        log.seek(max(0, os.fstat(log.fileno()).st_size - DIAGNOSED_BYTES))
        return [(self.name, log)]

    def close(self) -> None:
        if self._log is not None:
            self._log.close()
            self._log = None

    def _abandoned(self) -> bool:
        """Whether it is certain that no process writes the log: it was silent, and a writer would be visible."""
        if self._log is None or self._seen or self._members != 0 or self._named:
            return False
        if time.time() - os.fstat(self._log.fileno()).st_mtime < ABANDONED:
            return False
        return not self._elsewhere()

    def _elsewhere(self) -> bool:
        """Whether the log may be written by another machine, or by a user whose open files are not visible."""
        assert self._path is not None
        if self._foreign is None:
            kind = mount(str(self._path.resolve().parent))[0]
            self._foreign = kind in NETWORK or kind.startswith("fuse")
            if os.geteuid() != 0:
                self._foreign = self._foreign or self._path.stat().st_uid != os.geteuid()
        return self._foreign

    def _history(self, state: RunState) -> float | None:
        """Pass what the log already has to `state`. Returns the job's age when the log last changed; None without a
        log."""
        if self._path is None or not self._open():
            return None
        assert self._log is not None
        wrote = os.fstat(self._log.fileno()).st_mtime
        stamps = Stamps(self._log, wrote)
        if self._started is None:
            self._started = stamps.first if stamps.first is not None else wrote
        begun = self._started
        times = Times(str(self._folder / "times")) if self._folder is not None else None

        def when(offset: int) -> float | None:
            if times is not None:
                return times.when(offset)
            found = stamps.at(offset)
            return None if found is None else max(0.0, found - begun)

        lines, self._offset, newlines = find_lines(self._log, FIRST_SEEN, LAST_SEEN, when)
        at, last = 0.0, max(0.0, wrote - begun)
        for number, end, stamp, text in lines:
            at = max(at, stamp if stamp is not None else at)
            state.take_line(Line(text, number, end), min(at, last))
        self._lines = Lines(self._offset, newlines + 1)
        for text in self._last_words():
            state.take_text(text, last)
        return last

    def _last_words(self) -> list[str]:
        assert self._log is not None
        self._log.seek(max(0, os.fstat(self._log.fileno()).st_size - LAST))
        text = self._log.read(LAST).decode("utf-8", "replace")
        self._log.seek(self._offset)
        return text.replace("\r", "\n").split("\n")[-LAST_LINES:]

    def _more(self, state: RunState) -> None:
        if self._path is None or (self._log is None and not self._open()):
            return
        assert self._log is not None
        self._take(state)
        try:
            there = self._path.stat()
        except OSError:
            return
        now = os.fstat(self._log.fileno())
        if not os.path.samestat(there, now):  # Rotated: the rest of the old file, then the new one.
            self._take(state)
            if not there.st_size:  # What is running still writes the old one, until it is told to open the new one.
                return
            self.close()
            self._open()
            self._take(state)
        elif there.st_size < self._offset:  # Truncated: `> run.log`.
            self._offset, self._lines = 0, Lines()
            self._log.seek(0)
            self._take(state)

    def _take(self, state: RunState) -> None:
        while self._log is not None and (piece := self._log.read(CHUNK)):
            self._offset += len(piece)
            for line in self._lines.feed(piece):
                state.take_line(line, self.now())
            if text := open_end(piece):
                state.take_text(text, self.now())

    def _open(self) -> bool:
        assert self._path is not None
        try:
            self._log = open_binary(self._path, buffering=0)
        except OSError:
            return False
        self._offset, self._lines = 0, Lines()
        return True


def log_of(pid: int) -> Path | None:
    """The file that a process writes its output to, also through `tee`; None where there is none."""
    opened = dict(descriptors(pid))
    for number in (1, 2):
        target = opened.get(number, "")
        if target.startswith("/") and Path(target).is_file():
            return Path(target)
        if target.startswith("pipe:") and (found := _through(target)) is not None:
            return found
    return None


def _through(pipe: str) -> Path | None:
    """The file that the process at the other end of a pipe writes."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            opened = dict(descriptors(int(entry.name)))
            if opened.get(0) == pipe:
                for number, target in opened.items():
                    if number > 2 and target.startswith("/") and Path(target).is_file():
                        return Path(target)
    return None


def started_at(start: int) -> float:
    """Seconds since 1970 at which a process started, from its start in clock ticks after boot."""
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + start / TICKS
