"""One log, read once from its beginning to its end, over as many connections as it takes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from patcher.jobs.clock import Clock
from patcher.jobs.judging import judge
from patcher.jobs.model import Job, Verdict, job_of
from patcher.records.log_lines import Line, Lines
from patcher.records.milestones import FIRST_SEEN, LAST_SEEN, Milestones, Phase
from patcher.secrets.redacting import Following, Redactor

if TYPE_CHECKING:
    from patcher.jobs.following import Ears
    from patcher.remote.connection import Connection
    from patcher.remote.host import Host


_PIECES = re.compile(r"[^\n]{0,16383}\n|[^\n]{1,16383}")
"""Lines with their ends; of a line without an end, pieces."""


class Reading:
    """Where reading stands: `offset` is the byte of the log from which on it goes on."""

    def __init__(self, job: Job, host: Host, ears: Ears, offset: int) -> None:
        self.offset = offset
        self._job = job
        self._ears = ears
        self._lines = Lines(offset)
        self._clock = Clock()
        self._milestones = Milestones()
        self._redactor = Redactor(host.secrets.values())
        self._following = Following(self._redactor)
        self.wrote: float | None = None
        """The job's age when its log last grew, as `search` has found it."""

    def search(self, connection: Connection) -> None:
        """Take in what is there already, by the lines that matter alone; nothing of it is shown as text."""
        told = connection.channel.ask("job_scan", id=self._job.id, first=FIRST_SEEN, last=LAST_SEEN).values
        self._job = job_of(told)
        for number, end, at, text in told["lines"]:
            self._mark(Line(text, number, end), at)
        self.offset = told["offset"]
        self._lines = Lines(self.offset, told["newlines"] + 1)
        self.wrote = told["wrote"]

    def read(self, connection: Connection, seconds: float | None = None) -> Verdict:
        """Read on until the job has ended, for `seconds` at most."""
        ask = connection.channel.ask
        told = ask(
            "job_follow", on_event=self._hear, id=self._job.id, offset=self.offset, wait=True, seconds=seconds
        ).values
        self._job = job_of(told)
        self._milestones.at = max(self._milestones.at, self._job.seconds)
        if self._job.over:
            self._take(list(self._lines.rest()))
            self._show(self._following.rest())
        return self.verdict()

    def verdict(self) -> Verdict:
        """The verdict on what has been read so far. A redacted text is shown in it."""
        return judge(self._job, self._milestones, self.offset, self._redactor)

    def _hear(self, event: Mapping[str, Any], body: bytes) -> None:
        if event.get("cut"):
            self.offset, self._lines, self._clock = 0, Lines(), Clock()
        if "now" in event:
            self._milestones.at = max(self._milestones.at, event["now"])
            self._ears.time(event["now"])
        if body:
            self._clock.note(event["times"], event["upto"])
            self.offset = event["offset"] + len(body)
            self._take(list(self._lines.feed(body)))
            if self._ears.piece is not None:
                self._ears.piece(body, event["upto"])

    def _take(self, lines: list[Line]) -> None:
        if self._ears.text is not None:
            self._show(self._following.feed("".join(line.text for line in lines)))
        for line in lines:
            self._mark(line, self._clock.at(line.end))

    def _show(self, text: str) -> None:
        hear = self._ears.text
        if hear is not None:
            for piece in _PIECES.findall(text):
                hear(piece)

    def _mark(self, line: Line, at: float) -> None:
        if self._ears.line is not None:
            self._ears.line(line, at)
        for milestone in self._milestones.feed(line, at):
            self._ears.milestone(replace(milestone, usual=usual(self._job.profile, milestone.phase)))


def usual(profile: str | None, phase: Phase) -> tuple[float, float] | None:
    """How many seconds a phase takes, low and high, in a run of this profile."""
    from patcher.profiles.phase_durations import USUAL_SECONDS

    return next((spans[phase] for name, spans in USUAL_SECONDS.items() if name == profile), None)
