"""Whether a progress bar that prints each of its states on a line of its own advances until the log ends.

Loading checkpoint shards:  50%|█████     | 2/4 [00:20<00:20, 10.00s/it]
Loading checkpoint shards:  75%|███████▌  | 3/4 [00:31<00:10, 10.30s/it]
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from patcher.diagnose.evidence import LogLine
from patcher.logs.labels import strip_labels

_STATE = re.compile(
    r"(?P<name>.*?)\d{1,3}% ?(?:\||Completed)[^[]*?(?P<done>\d+(?:\.\d+)?)(?P<unit>[kMGT]?)(?:iB|B)?/\d\S* "
    r"\[(?P<elapsed>\d+(?::\d\d){1,2})<"
)
_UNITS = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_SLOWER, _LONG = 5.0, 60.0
"""A bar has collapsed where its last step took so many times as long as the steps before did, and so many seconds. Set
by hand: one large file among small ones takes a few times as long."""


def advances(last: LogLine, lines: Sequence[LogLine]) -> bool:
    """Whether the bar whose state `last` is has advanced from its state before, at about the pace of until then.

    A bar with a single step has no pace yet, so it does not.
    """
    now = _state(last)
    if now is None:
        return False
    states = [state for one in lines if one.number < last.number and (state := _state(one)) is not None]
    states = [state for state in states if state[0] == now[0] and state[1] <= now[1]]
    before = next((state for state in reversed(states) if state[1] < now[1]), None)
    if before is None or not before[1]:
        return False
    (_, done, took), (_, more, elapsed) = before, now
    # A count that is printed again stands since it was first printed: `3/4 [00:31<00:10`, `3/4 [09:40<03:10`.
    reached = next((state[2] for state in states if state[1] == more), elapsed)
    longest = max(elapsed - reached, (reached - took) / (more - done))
    return longest <= max(_LONG, _SLOWER * took / done)


def _state(line: LogLine) -> tuple[str, float, float] | None:
    """The bar that a line shows the state of, how much is done, and the seconds that it took; None for another line."""
    found = _STATE.match(strip_labels(line.text).text)
    if found is None:
        return None
    seconds = 0.0
    for part in found["elapsed"].split(":"):
        seconds = 60 * seconds + int(part)
    return line.speaker + found["name"].strip(), float(found["done"]) * _UNITS[found["unit"]], seconds
