"""Compare a log with that of a good run: the lines that only one of them has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from patcher.diagnose.evidence import LogLine
from patcher.diagnose.line_meaning import is_noise
from patcher.diagnose.log_stream import blocks
from patcher.logs.labels import strip_labels
from patcher.logs.lines import strip_prefix

MOST = 10
"""Lines that are shown of each kind. Set by hand: they fit on a screen beside the verdict."""
_SHAPES = 200_000
"""Different lines that are kept of one log. Set by hand, to bound the memory."""
_VALUE = re.compile(
    r"0x[0-9a-f]+|[0-9a-f]{12,}|\d+(?:\.\d+)*(?:e[+-]?\d+)?|(?<![\w/])/[\w./@+-]{2,}|\s+|[█▏▎▍▌▋▊▉#]+", re.IGNORECASE
)
"""What differs from run to run: numbers, hashes, paths, white space, and the blocks of a progress bar."""
_WORD = re.compile(r"[^\W\d_]{3,}")
_WRONG = re.compile(
    r"error|exception|fail|fatal|kill|abort|refus|denied|timed? ?out|cannot|could not|unable|not found|invalid",
    re.IGNORECASE,
)
"""Words of a line that speaks of something wrong."""
_FRAME = re.compile(r'\s+|File "|[\^~]+$')
"""A line of a traceback; a single one says little."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The lines that only one of two logs has, in the order of the log."""

    missing: tuple[LogLine, ...] = ()
    """Lines of the good run's log only."""
    added: tuple[LogLine, ...] = ()
    """Lines of the other log only."""


def compare(log: Iterable[tuple[str, BinaryIO]], good: Iterable[tuple[str, BinaryIO]]) -> Difference:
    """Compare two logs. Numbers, times, paths and the prefix of the process do not count as differences."""
    own, others = _line_shapes(log), _line_shapes(good)
    common = [at for at, shape in enumerate(others) if shape in own]
    parted = common[-1] if common else -1
    missing = [(at > parted, place) for at, (shape, place) in enumerate(others.items()) if shape not in own]
    added = [place for shape, place in own.items() if shape not in others]
    return Difference(_choose_missing(missing), _choose_added(added))


def _choose_missing(missing: Sequence[tuple[bool, LogLine]]) -> tuple[LogLine, ...]:
    """The first lines after the point where the logs part; if they are few, also the last ones before it."""
    telling = [(later, place) for later, place in missing if not is_noise(place.text)]
    after = [place for later, place in telling if later][:MOST]
    before = [place for later, place in telling if not later][-(MOST - len(after)) :] if len(after) < MOST else []
    return (*before, *after)


def _choose_added(added: Sequence[LogLine]) -> tuple[LogLine, ...]:
    """Lines that speak of something wrong first, then the last ones."""
    telling = [place for place in added if not is_noise(place.text) and not _FRAME.match(place.text)]
    wrong = [place for place in telling if _WRONG.search(place.text)]
    kept = wrong[: MOST // 2] + wrong[MOST // 2 :][-(MOST // 2) :]
    rest = [place for place in telling if place not in kept]
    kept += rest[len(rest) - (MOST - len(kept)) :] if len(kept) < MOST else []
    chosen = set(kept)
    return tuple(place for place in telling if place in chosen)


def _line_shapes(files: Iterable[tuple[str, BinaryIO]]) -> dict[str, LogLine]:
    """Each normalised line with the first line of the log that has it, in order."""
    found: dict[str, LogLine] = {}
    seen: set[bytes] = set()
    for name, number, offset, raw in _lines(files):
        bare = raw.translate(None, b"0123456789")
        if bare in seen:
            continue
        if len(seen) < _SHAPES:
            seen.add(bare)
        stripped = strip_prefix(raw[:4000].decode("utf-8", "replace"))
        text = strip_labels(stripped.text).text
        shape = _VALUE.sub(" ", text).strip().lower()
        if len(found) < _SHAPES and _WORD.search(shape):
            found.setdefault(shape[:300], LogLine.of(name, number, offset, stripped))
    return found


def _lines(files: Iterable[tuple[str, BinaryIO]]) -> Iterator[tuple[str, int, int, bytes]]:
    for name, stream in files:
        for block in blocks(stream):
            offset = block.offset
            for number, line in enumerate(block.content[block.begin : block.end].split(b"\n"), block.number):
                yield name, number, offset, line.rstrip(b"\r").rpartition(b"\r")[2]
                offset += len(line) + 1
