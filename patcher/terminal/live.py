"""The progress of a training job on the terminal: phases with their time and steps as they are reached in its log.

    02:58  dataset ▸ actor 42 s ▸ rollout 91 s (usual: 30–90 s)

On a terminal it is one line that changes; in a file or pipe, a line for each phase and step.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TextIO

from patcher.i18n import Phrase, language, phrase, show
from patcher.terminal.layout import wrapped
from patcher.terminal.printing import end_passing, guard, room, settled, show_passing
from patcher.terminal.sequences import is_dumb
from patcher.visible import visible_line

if TYPE_CHECKING:
    from patcher.logs.milestones import Milestone, Phase

INDENT = " " * 12
WORTH = 5.0
"""Seconds from which on the time of a phase is shown."""
_STEPS = 6
"""How many steps are named before only the last one is."""


class Live:
    """Phases and steps as they come: one line that changes on a terminal, else a line for each."""

    def __init__(self, stream: TextIO | None = None, indent: str = INDENT) -> None:
        self._stream = guard(stream or sys.stderr)
        self._indent = indent
        self._still = not self._stream.isatty() or is_dumb()
        self._phases: list[tuple[Phase, float | None]] = []
        self._usual: tuple[float, float] | None = None
        self._begun = 0.0
        self._steps: list[int] = []
        self._last = ""

    def milestone(self, reached: Milestone) -> None:
        """Tell a phase or a step."""
        if reached.step is not None:
            self._step(reached)
            return
        if self._phases:
            self._phases[-1] = (self._phases[-1][0], reached.took)
            if self._still:
                self._line(reached.at, self._phase(*self._phases[-1], self._usual))
        self._phases.append((reached.phase, None))
        self._usual, self._begun = reached.usual, reached.at
        if not self._still:
            self._line(reached.at, self._chain(reached.at))
            if reached.phase == "loop":
                self.end()
        elif reached.phase == "loop":
            self._line(reached.at, _name("loop"))

    def time(self, at: float) -> None:
        """Tell how late it is; on a terminal alone."""
        if not self._still and self._phases and not self._steps:
            self._line(at, self._chain(at))

    def problem(self, message: Phrase) -> None:
        """Tell on a line of its own what is in the way; the line that changes goes on below it."""
        self.end()
        self._stream.write(f"{self._indent}{visible_line(show(message, language()))}\n")
        self._stream.flush()

    def end(self) -> None:
        """Leave the last line where it is, whole."""
        if self._last:
            end_passing()
            lines = wrapped(settled(self._last, self._stream), room(self._stream))
            self._stream.write("\n".join(lines) + "\n")
            self._stream.flush()
        self._last = ""

    def _step(self, reached: Milestone) -> None:
        assert reached.step is not None
        self._steps.append(reached.step)
        del self._steps[:-_STEPS]
        shown = self._steps[-1:] if self._still else self._steps
        text = " · ".join(show(phrase("step {step}", step=step), language()) for step in shown)
        if reached.steps:
            text += show(phrase(" of {steps}", steps=reached.steps), language())
        if reached.took >= WORTH:
            text += f", {_seconds(reached.took)}"
        self._line(reached.at, text)

    def _chain(self, at: float) -> str:
        parts = [self._phase(phase, took, None) for phase, took in self._phases[:-1]]
        last = self._phases[-1][0]
        parts.append(self._phase(last, at - self._begun if last != "loop" else None, self._usual))
        return " ▸ ".join(parts)

    def _phase(self, phase: Phase, took: float | None, usual: tuple[float, float] | None) -> str:
        text = _name(phase)
        if took is None or took < WORTH:
            return text
        text += f" {_seconds(took)}"
        if usual is not None:
            text += show(phrase(" (usual: {low}–{high} s)", low=f"{usual[0]:g}", high=f"{usual[1]:g}"), language())
        return text

    def _line(self, at: float, message: str) -> None:
        text = f"{self._indent}{clock(at)}  {message}"
        if self._still:
            self._stream.write(text + "\n")
        else:
            show_passing(text, self._stream)
            self._last = text
        self._stream.flush()


def clock(seconds: float) -> str:
    """`02:58`, with hours where there are any."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.0f} s"


def _name(phase: Phase) -> str:
    from patcher.logs.milestones import phase_name  # Loaded where a job is followed, and not to begin a migration.

    return show(phase_name(phase), language())
