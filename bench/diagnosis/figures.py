"""Shares of right answers over some logs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.diagnosis.answers import Answer


@dataclass(frozen=True, slots=True)
class Share:
    """How many of how many."""

    right: int
    of: int

    @property
    def value(self) -> float:
        """1.0 where nothing was asked."""
        return self.right / self.of if self.of else 1.0

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.right} of {self.of})"


@dataclass(frozen=True, slots=True)
class Score:
    """`root` and `line`: of logs that have a cause; `phase`: of those that have a phase; `alarms`: of healthy ones."""

    logs: int
    root: Share
    line: Share
    verdict: Share
    phase: Share
    alarms: Share

    def as_json(self) -> dict[str, object]:
        shares = {name: getattr(self, name) for name in ("root", "line", "verdict", "phase")}
        told = {name: {"right": share.right, "of": share.of} for name, share in shares.items()}
        return {"logs": self.logs, **told, "alarms": {"count": self.alarms.right, "of": self.alarms.of}}


def score(answers: Sequence[Answer]) -> Score:
    sick = [each for each in answers if each.label.root]
    healthy = [each for each in answers if each.label.healthy]
    return Score(
        len(answers),
        _share(each.root_right for each in sick),
        _share(each.line_right for each in sick),
        _share(each.verdict_right for each in answers),
        _share(each.phase_right for each in answers if each.label.phase),
        _share(each.alarm for each in healthy),
    )


def _share(right: Iterable[bool]) -> Share:
    told = list(right)
    return Share(sum(told), len(told))
