"""A watched run: as it goes, on standard error; what it came to, on standard output."""

from __future__ import annotations

import sys
from typing import Literal

from patcher.errors import ExitCode
from patcher.i18n import Phrase, Phrases, language, phrase, show
from patcher.logs.milestones import Phase, phase_name
from patcher.report.answers import show_json
from patcher.report.diagnose import lines
from patcher.report.jobs import Live
from patcher.report.stacks import stack_lines
from patcher.terminal.printing import say, style
from patcher.visible import visible_line
from patcher.watch.result import WatchResult
from patcher.watch.run_state import Activity, Reason, RunState, RunStatus
from patcher.watch.watcher import Listener

_STYLES = {"ok": "green", "failed": "red", "stalled": "red", "running": "cyan"}
_REASONS: dict[Reason, Phrase] = {
    "limit": phrase("longer than this phase ever should, and silent"),
    "bar": phrase("its progress bar does not move, and nothing is read"),
    "still": phrase("none of its processes does anything"),
    "given": phrase("silent for longer than --limit"),
}
_LONGEST = 160


class Watching:
    """What is told while it goes: phases and steps, the lines that matter, and when it becomes slow."""

    def __init__(self) -> None:
        self._live = Live(indent="")
        self.listener = Listener(
            self._live.milestone, self._live.time, self._telling, self._standing, self._live.trouble
        )

    def end(self) -> None:
        self._live.end()

    def _telling(self, text: str) -> None:
        self._say(f"  {text[:_LONGEST]}")

    def _standing(self, status: RunStatus, state: RunState) -> None:
        if status.pace != "normal":
            for line in (_phase_line(status, status.phase), _activity(state.activity)):
                if line:
                    self._say(show(line, language()))

    def _say(self, text: str) -> None:
        self._live.end()
        sys.stderr.write(f"{visible_line(text)}\n")
        sys.stderr.flush()


def show_report(report: WatchResult, output: Literal["text", "json"]) -> None:
    """How it stood, where its processes stand, and what is known of that."""
    if output == "json":
        show_json(report.as_json())
        return
    tongue = language()
    if report.left:
        say(show(phrase("the job goes on"), tongue))
        return
    word = style(show(report.verdict, tongue), fg=_STYLES[report.verdict], bold=True)
    say(f"{word}  {show(_phase_line(report.status, report.phase), tongue)}")
    if report.verdict == "stalled" and report.status.reason is not None:
        say(f"  {show(_REASONS[report.status.reason], tongue)}")
    if report.detail:
        say(f"  {show(report.detail, tongue)}")
    if report.verdict in ("stalled", "running") and (told := _activity(report.activity)):
        say(f"  {show(told, tongue)}")
    if report.snapshot is not None:
        if report.snapshot.phase not in (None, report.phase):
            phase = phase_name(report.snapshot.phase)
            say(f"  {show(phrase('its frames are of the phase {phase}', phase=phase), tongue)}")
        for line in stack_lines(report.snapshot):
            say(f"  {show(line, tongue)}")
    if report.diagnosis.findings or report.verdict in ("failed", "stalled"):
        say(*lines(report.diagnosis, "", tongue)[1:])


def exit_code(report: WatchResult) -> int:
    """0 for a run that ended well or goes on, 1 for one that failed or stalled, 130 after an interrupt."""
    if report.left:
        return 130
    return ExitCode.FINDINGS if report.verdict in ("failed", "stalled") else ExitCode.CLEAN


def duration(seconds: float) -> Phrase:
    """`4 min 10 s`."""
    whole = int(seconds)
    if whole < 60:
        return phrase("{seconds} s", seconds=whole)
    if whole < 3600:
        return phrase("{minutes} min {seconds} s", minutes=whole // 60, seconds=f"{whole % 60:02}")
    return phrase("{hours} h {minutes} min", hours=whole // 3600, minutes=f"{whole % 3600 // 60:02}")


def _phase_line(status: RunStatus, phase: Phase | None) -> Phrase:
    low, high = (f"{seconds:.3g}" if seconds < 100 else f"{seconds:.0f}" for seconds in status.usual)
    spans = {"low": low, "high": high, "silent": duration(status.silent)}
    told = phrase("usual for this profile: {low}–{high} s; no new log line for {silent}", **spans)
    if phase == "loop":
        told = phrase("usual: {low}–{high} s; no new log line for {silent}", **spans)
    fields = {"phase": phase_name(phase), "seconds": duration(status.seconds), "told": told}
    if phase == "loop":
        return phrase("{phase}, {seconds} since the last step ({told})", **fields)
    return phrase("{phase}, {seconds} ({told})", **fields)


def _activity(activity: Activity) -> Phrases | None:
    """What the job uses now, in short; nothing where it is not known."""
    if not activity.seconds or not activity.processes:
        return None
    parts: list[Phrase] = [
        phrase(
            "{count} processes, {busy} of them busy, processor {cpu} %, memory {memory} GiB, disk {disk} MB/s",
            count=activity.processes,
            busy=len(activity.busy),
            cpu=f"{sum(activity.cpu.values()):.0f}",
            memory=f"{activity.memory / 2**30:.1f}",
            disk=f"{activity.disk / 1e6:.1f}",
        )
    ]
    parts += [
        phrase(
            "GPU {index}: {use} %, {used} of {all} GiB",
            index=gpu["index"],
            use=gpu["use"] or 0,
            used=f"{(gpu['used'] or 0) / 2**30:.1f}",
            all=f"{(gpu['memory'] or 0) / 2**30:.0f}",
        )
        for gpu in activity.gpus
    ]
    return Phrases(tuple(parts))
