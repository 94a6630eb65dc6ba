"""The report of `verify`: each check with its verdict (ok, warn, fail, skip), seconds, detail and fix, as soon as it is
done.

The checks of the markers are many, so they are listed for `--level markers` only; for higher levels they are one line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from patcher.i18n import Phrases, language, phrase, show
from patcher.report.commands import next_lines, step_command
from patcher.report.header import header, problems
from patcher.terminal.document import Json, Lines, Part, Table
from patcher.terminal.layout import width
from patcher.terminal.sequences import style
from patcher.terminal.table import Cell

if TYPE_CHECKING:
    from patcher.checks import Check, Level, Status
    from patcher.patching.next_step import NextStep
    from patcher.remote.host import Host
    from patcher.session.session import Session

STATUS_STYLES: dict[Status, str] = {"ok": "green", "warn": "yellow", "fail": "red", "skip": ""}
"""The verdicts of a check, each with its colour; totals are shown in this order."""
_NAME = 13
"""Columns for the name of a check above the markers."""


class ChecksReport:
    """One run of `verify`. The markers are listed where nothing else is asked for, else summed up in a line."""

    def __init__(self, session: Session, level: Level, host: Host | None) -> None:
        self._session = session
        self._listed = level == "markers"
        self._markers: list[Check] = []
        self._tongue = language()
        self._here = host is None or host.here
        self._host = host

    def begin(self) -> Iterator[Part]:
        """The tree, or the host."""
        if self._session.output == "text":
            first = [self._host.name] if self._host is not None and not self._here else []
            lines = first or [header(self._session, self._tongue), *problems(self._session, self._tongue)]
            yield Lines(*lines, "")

    def take(self, check: Check) -> Iterator[Part]:
        """A check, unless it is kept until its level is complete."""
        if self._session.output == "json":
            return
        if check.level == "markers":
            self._markers.append(check)
            return
        yield from self._flush()
        yield Lines(self._line(check))

    def end(self, checks: Sequence[Check], step: NextStep | None) -> Iterator[Part]:
        """The sum, and the next command; or the contract's JSON."""
        if self._session.output == "json":
            command = step_command(step, self._session)
            yield Json({"checks": [as_json(check) for check in checks], "nodes": [], "next": command})
            return
        yield from self._flush()
        shown = checks if self._listed else [c for c in checks if c.level != "markers" or c.status in ("warn", "fail")]
        counts = Counter(check.status for check in shown)
        totals = (f"{counts[status]} {show(status, self._tongue)}" for status in STATUS_STYLES if counts[status])
        yield Lines("", ", ".join(totals), *next_lines(step, self._session, self._tongue))

    def _flush(self) -> Iterator[Part]:
        """The markers that were kept."""
        kept, self._markers = self._markers, []
        if not kept:
            return
        wrong = [check for check in kept if check.status in ("warn", "fail")]
        shown = [check for check in kept if check.status != "skip"] if self._listed else wrong
        if not self._listed:
            yield Lines(self._summary(kept))
        rows = [
            (
                Cell(show(check.status, self._tongue), STATUS_STYLES[check.status]),
                Cell(check.name),
                Cell("", reason=Phrases((check.detail, check.fix), "  ->  ")),
            )
            for check in shown
        ]
        yield Table(rows)

    def _summary(self, kept: Sequence[Check]) -> str:
        """All marker checks in one line."""
        from patcher.checks import Check

        good = [check for check in kept if check.status == "ok"]
        files = sum(check.name.startswith("file") for check in good)
        failed = sum(check.status == "fail" for check in kept)
        fields = {"records": len(good) - files, "files": files, "failed": failed}
        detail = phrase("{records} {records:record|records} {records:holds|hold}, {files} {files:file|files}", **fields)
        if failed:
            detail = phrase(
                "{records} {records:record|records} {records:holds|hold}, {files} {files:file|files}; "
                "{failed} {failed:does|do} not",
                **fields,
            )
        seconds = sum(check.seconds for check in kept)
        return self._line(Check("markers", "markers", "fail" if failed else "ok", seconds, detail))

    def _line(self, check: Check) -> str:
        status = show(check.status, self._tongue)
        status += " " * (4 - width(status))
        name = check.name + " " * (_NAME - width(check.name))
        coloured = style(status, STATUS_STYLES[check.status])
        detail = show(check.detail, self._tongue) + (f"  ->  {show(check.fix, self._tongue)}" if check.fix else "")
        return f"  {coloured}  {name}  {check.seconds:5.1f} s  {detail}"


def as_json(check: Check) -> dict[str, str | float]:
    """A check as the contract has it."""
    return {
        "name": check.name,
        "level": check.level,
        "status": check.status,
        "seconds": round(check.seconds, 4),
        "detail": str(check.detail),
        "fix": str(check.fix),
    }
