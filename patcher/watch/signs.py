"""What a line says of life: something new, a bar that has moved, or the same words again."""

from __future__ import annotations

import re
from collections import deque

_TIMES = re.compile(
    r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?|\b\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?|\b\d\d:\d\d:\d\d(?:[.,]\d+)?"
    r"|\bpid=\d+|\[\d\d:\d\d<[^\]]*\]"
)
_BAR = re.compile(r"\d+%\|| \d+/\d+ \[|\[\d\d:\d\d[<,]|examples? \[|it/s|s/it")
_TRAINING = "Training Progress: "
_WAITS = re.compile(
    r"\bwait(?:s|ing|ed)?\b|\bretr(?:y|ies|ying)\b|no available shared memory|heartbeat|still (?:running|not)|"
    r"\bstuck\b|timed? ?out|cannot be scheduled|insufficient resources",
    re.IGNORECASE,
)
_TELLS = re.compile(
    r"\[uky\]|\[(?:ACTOR|ROLLOUT|SYNC)\]|✓|✗|\b(?:ERROR|CRITICAL|FATAL)\b|Traceback \(most recent|"
    r"^(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Timeout)\b|\bNCCL (?:WARN|error)|watchdog|Starting weight sync|"
    r"^(?:Initializing|Starting|Loading) ",
)
_LONGEST = 500
_SAME = 64
"""How many of the last different lines a line is compared with."""


def open_end(piece: bytes) -> str:
    """What a piece of a log ends with that has no line end yet: a progress bar, mostly."""
    last = piece[max(piece.rfind(b"\n"), piece.rstrip(b"\r").rfind(b"\r")) + 1 :]
    return last[:_LONGEST].decode("utf-8", "replace").strip()


class Signs:
    """Takes lines in order, with their times."""

    def __init__(self) -> None:
        self.lived = 0.0
        """When the log last said something new."""
        self.bar: str | None = None
        """The progress bar that is the last thing it said."""
        self.moved = 0.0
        """When that bar last changed."""
        self.last = ""
        self._seen: deque[str] = deque(maxlen=_SAME)
        self._told: deque[str] = deque(maxlen=_SAME)

    def take(self, text: str, at: float) -> bool:
        """Hear a line without prefixes. Whether it is a sign of life: new, and no word of waiting."""
        text = text.strip()
        if not text:
            return False
        is_bar = _BAR.search(text) is not None
        self.last = text
        said = text if is_bar else _TIMES.sub("", text)
        new = said not in self._seen
        if new:
            self._seen.append(said)
        if is_bar and not text.startswith(_TRAINING):
            if new or self.bar is None:
                self.moved = at
            self.bar = text
        else:
            self.bar = None
        if new and not _WAITS.search(text):
            self.lived = max(self.lived, at)
            return True
        return False

    def tells(self, text: str) -> bool:
        """Whether a line is worth showing to who watches, once."""
        said = _TIMES.sub("", text.strip())
        if not _TELLS.search(text) or said in self._told:
            return False
        self._told.append(said)
        return True
