"""What `diagnose` says of a log, and what the simplest reader of logs would."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bench.diagnosis.labels import Label
from patcher.diagnose.diagnosis import UNKNOWN
from patcher.diagnose.fixes import FixContext
from patcher.diagnose.scanner import Scanner
from patcher.diagnose.verdict import diagnosis_of
from patcher.records.symptom_parse import load_symptoms

_LAST = re.compile(r"Error|Exception")


@dataclass(frozen=True, slots=True)
class Answer:
    """What is said of one log. `line` counts from 1, and is 0 where none is named."""

    label: Label
    verdict: str
    phase: str
    root: str
    """Empty where nothing is found; `unknown` for a failure that nothing explains."""
    line: int
    cascade: tuple[str, ...] = ()
    text: str = ""

    @property
    def root_right(self) -> bool:
        return self.root in self.label.root

    @property
    def line_right(self) -> bool:
        return self.line in self.label.lines

    @property
    def verdict_right(self) -> bool:
        return self.verdict == self.label.verdict

    @property
    def phase_right(self) -> bool:
        return self.phase == self.label.phase

    @property
    def alarm(self) -> bool:
        """Whether something is said to be wrong."""
        return bool(self.root) or self.verdict not in ("ok", "running")


def ours(labels: Iterable[Label]) -> list[Answer]:
    """What `diagnose` says of each log. Raises RecordError."""
    scanner = Scanner(load_symptoms())
    return [_diagnosed(scanner, label) for label in labels]


def last_error(label: Label) -> Answer:
    """The last line that holds Error or Exception is the cause; without one, all is well."""
    found = [
        (number, line)
        for number, line in enumerate(label.log.read_bytes().decode("utf-8", "replace").split("\n"), 1)
        if _LAST.search(line)
    ]
    if not found:
        return Answer(label, "ok", "", "", 0)
    number, text = found[-1]
    return Answer(label, "failed", "", UNKNOWN, number, text=text)


def first_error(label: Label) -> Answer:
    """The first such line is the cause."""
    for number, line in enumerate(label.log.read_bytes().decode("utf-8", "replace").split("\n"), 1):
        if _LAST.search(line):
            return Answer(label, "failed", "", UNKNOWN, number, text=line)
    return Answer(label, "ok", "", "", 0)


BASELINES: dict[str, Callable[[Label], Answer]] = {
    "the last line with Error or Exception": last_error,
    "the first line with Error or Exception": first_error,
}


def _diagnosed(scanner: Scanner, label: Label) -> Answer:
    with label.log.open("rb") as stream:
        evidence = scanner.scan([(label.log.name, stream)])
    answer = diagnosis_of(evidence, FixContext({**evidence.versions, **label.assume}))
    root, cascade = answer.root, tuple(one.id for one in answer.findings if one.role == "cascade")
    if root is None:
        unexplained = UNKNOWN if answer.verdict in ("failed", "stalled") else ""
        line = answer.telling[-1].number if unexplained and answer.telling else 0
        return Answer(label, answer.verdict, answer.phase or "", unexplained, line, cascade)
    return Answer(label, answer.verdict, answer.phase or "", root.id, root.place.number, cascade, root.place.text)
