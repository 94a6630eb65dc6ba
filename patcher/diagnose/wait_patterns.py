"""Lines after which logs stop growing: what a run waits for without a word."""

from __future__ import annotations

import re
from collections.abc import Sequence

from patcher.diagnose.evidence import Hit, LogLine
from patcher.diagnose.line_meaning import is_noise
from patcher.diagnose.matched_line import words_of
from patcher.diagnose.timed_pattern import TimedPattern
from patcher.logs.labels import strip_labels
from patcher.records.symptoms import Symptom

_NAMED_BAR = re.compile(r"(?P<name>[^:|%]{1,60}): +(?P<percent>\d{1,3})%\|")


class WaitPatterns:
    """The patterns of lines after which logs stop growing (`[[wait]]` of the symptom records)."""

    def __init__(self, symptoms: Sequence[Symptom]) -> None:
        self._waits = [
            (symptom, TimedPattern(wait.line), words_of(wait.line)) for symptom in symptoms for wait in symptom.waits
        ]

    @property
    def too_slow(self) -> list[tuple[Symptom, str]]:
        """The patterns that took too long."""
        return [(symptom, search.pattern) for symptom, search, _ in self._waits if search.is_too_slow]

    def found(self, last: Sequence[LogLine]) -> Hit | None:
        """The symptom that the last meaningful line matches; progress bars and warnings after that line are skipped."""
        moved: set[str] = set()
        for place in reversed(last):
            bare, lowered = strip_labels(place.text).text, place.text.lower()
            for symptom, search, words in self._waits:
                if not any(word in lowered for word in words):
                    continue
                if search.finds(place.text) or search.finds(bare):
                    if (bar := _NAMED_BAR.match(bare)) is not None and bar["name"] in moved:
                        return None  # `Generating: 0%|`, and behind other lines `Generating: 40%|`.
                    return Hit(symptom, place, place, since=place, around=(place,))
            if not is_noise(place.text):
                return None
            if (bar := _NAMED_BAR.match(bare)) is not None and int(bar["percent"]):
                moved.add(bar["name"])
        return None
