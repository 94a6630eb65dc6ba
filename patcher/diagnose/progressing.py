"""Signs that a training goes on, whoever trains: steps, bars and counters that move; and that a server goes on."""

from __future__ import annotations

import re

from patcher.records.milestones import Milestones

_BAR = re.compile(r"(?P<name>.*?):?\s*\d+%\|[^|]*\|\s*(?P<done>\d+)/(?P<all>\d+)\s*\[")
_TRAINING = re.compile(r"training progress|train|episode|epoch|steps?\b|rollout batch", re.IGNORECASE)
_VERL = "Training Progress"
"""verl's own bar, whose steps are milestones; drawn again at an exit, it shows no progress."""
_COUNTED = re.compile(
    r"(?:global[_ ]?step|step|iteration|iter|episode|epoch)s?\s*[:=#\[( ]\s*(?P<done>\d+(?:\.\d+)?)\b"
    r".*(?:loss|reward|lr|grad)"
    r"|\{'loss': .*'epoch': (?P<epoch>\d+(?:\.\d+)?)",
    re.IGNORECASE,
)
_SERVED = re.compile(r'HTTP/[\d.]+" 200(?: OK)?\W*$')
COUNTED = "loss"
NEEDLES = ("%|", COUNTED, '" 200')
_NAME, _LENGTH = 100, 500
"""Characters of a bar's name, and of a line, that are looked at."""
MOST = 50
"""Bars that are told apart."""


class Progress:
    """Tells whether a line shows that a training has moved since the last one of its kind."""

    def __init__(self) -> None:
        self._done: dict[str, float] = {}

    def moved(self, text: str, milestones: Milestones) -> bool:
        """Whether this line, without labels, shows more done than any of its kind before, or a request answered."""
        at = text.find("%|")
        if at >= 0:
            found = _BAR.match(text[max(0, at - _NAME) : at + _LENGTH])
            if found is None or not _TRAINING.search(found["name"]) or found["name"].endswith(_VERL):
                return False
            return self._more(found["name"].strip(), float(found["done"]))
        if _SERVED.search(text[-_LENGTH:]):
            return milestones.begun.keys() <= {"config", "rollout"}
        if milestones.step is None and (counted := _COUNTED.search(text[:_LENGTH])) is not None:
            return self._more("", float(counted["done"] or counted["epoch"]))
        return False

    def _more(self, name: str, done: float) -> bool:
        before = self._done.get(name)
        if before is None and len(self._done) >= MOST:
            return False
        self._done[name] = done if before is None else max(done, before)
        return done > (before or 0.0)
