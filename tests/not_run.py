"""The end of a test run: what was not run, by reason, and which lanes it left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from _pytest.mark.expression import Expression

LANES = {"slow": "make test-matrix", "hosts": "make test-hosts", "runtime": "make test-runtime", "ux": "make test-ux"}
"""Marks of tests that are part of a lane of their own, and the command that runs it."""
PLAIN = "all others (make test)"
_FILES = 3
"""Files that are named for one reason."""


def lanes_left_out(expression: str) -> list[str]:
    """The lanes that an expression of `-m` leaves out, each with its command."""
    if not expression:
        return []
    compiled = Expression.compile(expression)
    found = [f"{lane} ({command})" for lane, command in LANES.items() if not compiled.evaluate(_only(lane))]
    return found if compiled.evaluate(_only("")) else [*found, PLAIN]


def by_reason(skipped: Iterable[Any]) -> list[tuple[int, str, Sequence[str]]]:
    """Of reports of skipped tests: how many for each reason, the reason, and the files; the most frequent first."""
    counts: Counter[str] = Counter()
    files: dict[str, list[str]] = {}
    for report in skipped:
        told = report.longrepr
        reason = (told[2] if isinstance(told, tuple) else str(told)).removeprefix("Skipped: ")
        counts[reason] += 1
        name = report.nodeid.partition("::")[0]
        if name not in files.setdefault(reason, []):
            files[reason].append(name)
    return [(count, reason, files[reason]) for reason, count in counts.most_common()]


def lines(skipped: Iterable[Any], expression: str) -> list[str]:
    """The table; empty where all was run."""
    rows = by_reason(skipped)
    told = []
    if rows:
        told.append(f"not run, as this machine lacks what they need: {sum(count for count, _, _ in rows)}")
    for count, reason, files in rows:
        more = f" and {len(files) - _FILES} more" if len(files) > _FILES else ""
        told.append(f"  {count:>4}  {reason}  ({', '.join(str(Path(name)) for name in files[:_FILES])}{more})")
    if lanes := lanes_left_out(expression):
        told.append(f"lanes not run: {', '.join(lanes)}")
    return told


def _only(lane: str) -> Any:
    """Of a test: whether it has a mark, where `lane` is the only one; pytest hands over more than the name."""
    return lambda name, **_: name == lane
