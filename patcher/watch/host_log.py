"""The log of a job on a host, read over one connection in time slices, so that other requests fit in between."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from io import BytesIO
from typing import TYPE_CHECKING, Any, BinaryIO

from patcher.errors import HostError
from patcher.jobs.control import tail
from patcher.jobs.follow_log import JobListener, LastingConnection, LogReader
from patcher.watch.run_state import DIAGNOSED_BYTES, LAST_LINES, End, RunState, Source, open_end

if TYPE_CHECKING:
    from patcher.jobs.job import Job, Verdict
    from patcher.logs.lines import Line
    from patcher.remote.connection import Connection
    from patcher.remote.host import Host


class HostLog(Source):
    """The log of a job on a host, as a `run_state.Source`. If the connection breaks, it is opened again."""

    def __init__(self, host: Host, job: Job, lasting: LastingConnection) -> None:
        self.name = job.log
        self._job = job
        self._lasting = lasting
        self._state: RunState | None = None
        self._reading = LogReader(job, host, JobListener(line=self._on_line, piece=self._on_piece), 0)
        self._synchronised_at = time.monotonic() - job.seconds

    @property
    def profile(self) -> str | None:
        return self._job.profile

    def begin(self, state: RunState) -> None:
        self._state = state
        self._lasting.do(self._reading.search)
        self._synchronised(self._reading.verdict())
        wrote = self._reading.wrote
        last = self.now() if wrote is None else wrote
        for text in self._lasting.do(lambda link: tail(link, self._job.id, LAST_LINES)).text.splitlines():
            state.take_text(text, last)
        state.begun = min(self.now(), last)

    def read(self, state: RunState, seconds: float) -> None:
        self._state = state
        lasting, reading = self._lasting, self._reading
        self._synchronised(lasting.do(lambda link: reading.read(link, seconds), lambda: reading.offset))

    def now(self) -> float:
        return max(0.0, time.monotonic() - self._synchronised_at)

    def end(self) -> End | None:
        job = self._job
        return End(job.code, job.state == "stopped") if job.over else None

    def content(self) -> list[tuple[str, BinaryIO]]:
        pieces: list[bytes] = []
        offset = max(0, self._job.size - DIAGNOSED_BYTES)

        def take(_: Mapping[str, Any], body: bytes) -> None:
            pieces.append(body)

        def fetch(link: Connection) -> None:
            pieces.clear()
            link.channel.ask("job_follow", on_event=take, id=self._job.id, offset=offset, wait=False)

        with contextlib.suppress(HostError):
            self._lasting.do(fetch)
        return [(self.name, BytesIO(b"".join(pieces)))]

    def _synchronised(self, verdict: Verdict) -> None:
        self._job = verdict.job
        self._synchronised_at = time.monotonic() - verdict.job.seconds

    def _on_piece(self, piece: bytes, at: float) -> None:
        if self._state is not None and (text := open_end(piece)):
            self._state.take_text(text, at)

    def _on_line(self, line: Line, at: float) -> None:
        if self._state is not None:
            self._state.take_line(line, at)
