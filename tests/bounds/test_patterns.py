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
_WINDOW = 4096
"""Bytes of a line that are looked at at once."""
_SECONDS = 0.25
"""A linear pattern takes some 50 microseconds for that; one that is quadratic in a bad way takes seconds."""
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


def _slowest(pattern: str, lines: Iterator[str]) -> tuple[float, str]:
    search, worst = TimedPattern(pattern), (0.0, "")
    search._found("")
    for line in lines:
        seconds = min(_seconds(search, line) for _ in range(1))
        if seconds > _SECONDS:  # Something else may have had the processor.
            seconds = min(_seconds(search, line) for _ in range(3))
        worst = max(worst, (seconds, line[:80]))
    return worst


def _seconds(search: TimedPattern, line: str) -> float:
    began = time.thread_time()
    search._found(line)
    return time.thread_time() - began


@pytest.mark.slow
def test_shipped_patterns_that_repeat_something_twice() -> None:
    twice = [one for one in _repeating() if len(re.findall(r"(?<!\\)[*+]", one)) > 1]
    slow = {one: worst for one in twice if (worst := _slowest(one, hostile(one, 2000, few=True)))[0] > _SECONDS}
    assert len(twice) > 100
    assert not slow


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_all_shipped_patterns(part: int) -> None:
    slow = {
        one: worst for one in _repeating()[part::8] if (worst := _slowest(one, hostile(one, _WINDOW)))[0] > _SECONDS
    }
    assert not slow


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
