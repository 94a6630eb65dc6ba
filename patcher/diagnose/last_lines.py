"""The last lines of a log that say something: what a log that ends without an end stands still at, or complains of."""

from __future__ import annotations

import re
from collections.abc import Sequence

from patcher.diagnose.blocks import AROUND, Block
from patcher.diagnose.evidence import Hit, LogLine
from patcher.diagnose.symptom_patterns import TimedPattern
from patcher.logs.labels import strip_labels
from patcher.logs.lines import strip_prefix
from patcher.records.symptoms import Symptom

LAST = 40
"""How many of the last lines are kept."""
_BAR = re.compile(r"\d+%\||\d+(?:it|\w*/s)? ?\[\d\d:\d\d")
_SAYS_NOTHING = re.compile(
    r"\W*$|:(?:job_id|actor_name|task_name):"
    r"|.*\b\w*Warning: |\s+(?:\S.*\bwarn\(|return |self\.|warnings\.|FSDP\.|torch\.|_\w+\()|.*warnings?\.warn\("
    r"|wandb: |.*\bNIXL\b|.*\b(?:resource_tracker|leaked semaphore)|.*destroy_process_group\(\) was not called"
    r"|.*hostname of the client socket cannot be retrieved"
)
_HANDED_UP = re.compile(r"\bNCCL INFO \S+:\d+ -> [1-9]")
"""NCCL hands an error up from call to call; the warning before it says which."""
_COMPLAINT = re.compile(
    r"(?:\S+(?: [a-z][\w-]*){0,2}: )?(?:fatal )?error: |srun: error"
    r"|ERROR: |E: |.*\b(?:command not found|No such file or directory)$",
    re.IGNORECASE,
)
_LEVELS = ("ERROR", "CRITICAL", "FATAL")


class WaitPatterns:
    """The lines after which logs stand still."""

    def __init__(self, symptoms: Sequence[Symptom]) -> None:
        self._waits = [(symptom, TimedPattern(wait.line)) for symptom in symptoms for wait in symptom.waits]

    @property
    def too_slow(self) -> list[tuple[Symptom, str]]:
        """The patterns that have taken too long."""
        return [(symptom, search.pattern) for symptom, search in self._waits if search.is_too_slow]

    def found(self, last: Sequence[LogLine]) -> Hit | None:
        """The symptom of which the last telling line is the sign; bars and warnings behind it count for nothing."""
        for place in reversed(last):
            bare = strip_labels(place.text).text
            for symptom, search in self._waits:
                if search.finds(place.text) or search.finds(bare):
                    return Hit(symptom, place, place, since=place, around=(place,))
            if not is_noise(place.text):
                return None
        return None


def last_lines(block: Block, name: str) -> tuple[LogLine, ...]:
    """The last lines of a log's last block that are not empty; of a bar its last state."""
    own = max(0, block.end - AROUND)
    lines = block.content[own : block.end].split(b"\n")
    number = block.number + block.lines
    offset = block.offset + block.end - block.begin
    found: list[LogLine] = []
    for at, raw in enumerate(reversed(lines)):
        offset -= len(raw) + (1 if at else 0)
        state = raw.rstrip(b"\r").rpartition(b"\r")[2][-4000:]
        told = strip_prefix(state.decode("utf-8", "replace"))
        if told.text.strip():
            found.append(LogLine(name, number - at, max(offset, 0), told.text[:500], told.actors, told.speaker))
            if len(found) == LAST:
                break
    return tuple(reversed(found))


def is_noise(text: str) -> bool:
    """Whether a line tells nothing of where the run stands: a bar, a warning."""
    return bool(_BAR.search(text) or _SAYS_NOTHING.match(strip_labels(text).text))


def is_passed_on(text: str) -> bool:
    """Whether NCCL only passes an error on, of which an earlier line has told."""
    return _HANDED_UP.search(text) is not None


def complaints(last: Sequence[LogLine]) -> tuple[LogLine, ...]:
    """Those of the last lines that call themselves errors, but raylets'; NCCL's warnings where it gave up on one."""
    found = []
    gave_up = any(is_passed_on(place.text) for place in last)
    for place in last:
        told = strip_labels(place.text)
        if "raylet" in place.speaker or "(raylet)" in told.label:
            continue
        if told.level in _LEVELS or _COMPLAINT.match(told.text) or (gave_up and " NCCL WARN " in place.text):
            found.append(place)
    return tuple(found)
