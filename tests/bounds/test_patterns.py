"""A line cannot stretch what a pattern takes, and a pattern of a fork's own that is slow is left out by name."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from patcher.diagnose.timed_pattern import MOST_SECONDS, TimedPattern, split_pattern
from patcher.records.symptom_parse import load_symptoms
from tests.bounds.conftest import Done
from tests.bounds.hostile_lines import hostile

Uky = Callable[..., Done]
_WINDOW = 1024
"""Bytes of a line that are looked at. A pattern that is cubic takes seconds for that, and one that is quadratic in a
bad way a hundred times what the plain one takes."""
_QUADRATIC = re.compile("a+b", re.IGNORECASE)
"""Reads each tail of a line of `a` to its end: 5 milliseconds for the window. A linear pattern takes some 20
microseconds."""
_TIMES = 4
"""How often the plain quadratic pattern may be searched for in what a shipped pattern takes."""
_OWN = """
id = "own-slow"
title = "t"
cause = "c"
kind = "failure"
topic = "system"
[zh]
title = "标题"
cause = "原因"
[[match]]
line = '{pattern}'
[[fix]]
text = "x"
zh = "修"
[[example]]
name = "e"
log = "needle aab"
line = 1
"""


def _patterns() -> Iterator[str]:
    for symptom in load_symptoms():
        for match in symptom.matches:
            yield from (match.line, *match.near)
        yield from (wait.line for wait in symptom.waits)


def _repeating() -> list[str]:
    return sorted({one for one in _patterns() if re.search(r"(?<!\\)[*+]|\{\d+,", one)})


def _slowest(pattern: str, lines: Iterator[str], bound: float) -> tuple[float, str]:
    """How often the plain quadratic pattern was found in the time of this one, at the worst line, and that line."""
    search, worst = TimedPattern(pattern), (0.0, "")
    search._found("")
    for line in lines:
        if _seconds(search._found, line) > bound:  # Measured side by side, as other work may have had the processor.
            ratio = min(_seconds(search._found, line) / _quadratic(len(line)) for _ in range(3))
            worst = max(worst, (ratio, line[:80]))
    return worst


def _quadratic(length: int = _WINDOW) -> float:
    return _seconds(_QUADRATIC.search, "a" * length)


def _seconds(search: Callable[[str], object], line: str) -> float:
    began = time.thread_time()
    search(line)
    return time.thread_time() - began


@pytest.mark.slow
@pytest.mark.parametrize("part", range(2))
def test_all_shipped_patterns(part: int) -> None:
    bound = _TIMES * min(_quadratic() for _ in range(5))
    found = {one: _slowest(one, hostile(one, _WINDOW), bound) for one in _repeating()[part::2]}
    assert len(found) > 500
    assert not {one: worst for one, worst in found.items() if worst[0] > _TIMES}


def test_a_slow_pattern_is_noticed() -> None:
    line = "a" * 300
    assert _slowest("a+ ?a+ ?b", iter([line]), 0)[0] > 10 * _TIMES
    assert _slowest("a+b", iter([line]), 0)[0] < _TIMES


@pytest.mark.parametrize("part", range(4))
def test_a_pattern_taken_apart_finds_what_it_found(part: int) -> None:
    for pattern in _repeating()[part::4]:
        plain, search = re.compile(pattern, re.IGNORECASE), TimedPattern(pattern)
        for line in hostile(pattern, 150, few=True):
            assert search._found(line) is (plain.search(line) is not None), (pattern, line)


@pytest.mark.parametrize(
    ("pattern", "parts"),
    [
        ("a.*b", [["a", "b"]]),
        ("a.*?b.*c|d", [["a", "b", "c"], ["d"]]),
        (r"a\.*b[.*|]c(?:.*|x)d", [[r"a\.*b[.*|]c(?:.*|x)d"]]),
        ("^(?!.*x).*y", [["^(?!.*x)", "y"]]),
        ("a.*", [["a", ""]]),
    ],
)
def test_where_a_pattern_is_cut(pattern: str, parts: list[list[str]]) -> None:
    assert split_pattern(pattern) == parts


@pytest.mark.parametrize("text", ["foo xbar", "foo x bar", "foo bar", "bar foo", "foo  xx bar", "foo xfoo x"])
def test_what_stands_before_a_gap_ends_early(text: str) -> None:
    pattern = r"foo \S+.*bar"
    assert TimedPattern(pattern).finds(text) is (re.search(pattern, text) is not None)


@pytest.mark.parametrize(
    "pattern", [r"needle (a+)+b", r"needle (?:a|aa)+b", r"needle (a*)*b", r"needle (?:a{1,9}){1,99}b"]
)
def test_a_forks_own_pattern_has_a_time(uky: Uky, tree: Path, tmp_path: Path, pattern: str) -> None:
    (tree / "own").mkdir()
    (tree / "own/own-slow.toml").write_text(_OWN.replace("{pattern}", pattern), encoding="utf-8")
    (tree / "uky-patch.toml").write_text('symptoms = ["own"]\n')
    log = tmp_path / "train.log"
    log.write_text(("needle " + "a" * 300 + "\n") * 200 + "RuntimeError: CUDA out of memory\n")
    began = time.monotonic()
    done = uky("diagnose", log)
    assert time.monotonic() - began < 20 * MOST_SECONDS
    assert any("own-slow.toml" in note and pattern in note for note in done.told["notes"])
    assert done.told["verdict"] != "ok"


def test_a_log_of_one_hostile_line_ends(uky: Uky, tmp_path: Path) -> None:
    worst = [
        "AttributeError: aaLoRa" + "aLoRa" * 10_000,
        "flashinferacompil" * 3_000,
        "TypeError: " * 5_000,
        "socket" * 8_000 + ":",
        "gloo/transport/a] Write [" + "a]" * 24_000,
        "(" + "a " * 24_000 + "pid=",
        "CUDA error " + " " * 48_000,
        "5%|" * 16_000,
    ]
    for number, line in enumerate(worst):
        log = tmp_path / f"{number}.log"
        log.write_text(line + "\n")
        began = time.process_time()
        assert uky("diagnose", log).code in (0, 1, 2)  # 2: the line tells of no training run
        assert time.process_time() - began < 20, line[:40]
