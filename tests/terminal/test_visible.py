"""What is shown of text that would steer a terminal."""

from __future__ import annotations

import json
import re
import sys

import pytest
from hypothesis import given

from patcher.terminal.printing import Guarded, guard, say, show_job_log
from patcher.terminal.sequences import CLEAR, style
from patcher.visible import visible, visible_line
from tests.terminal.hostile import TEXTS, Screen, steering


def test_every_character_that_is_obeyed_is_written_out() -> None:
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    assert steering(visible(every), own=False) == []
    assert not re.search(r"[\n\t]", visible_line(every))


def test_what_is_drawn_stays() -> None:
    for text in ("plain", "训练 · ▸ …", "naïve café", "\U0001f600", "عربي", "a\tb\nc", "e\u0301"):
        assert visible(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", r"\x1b[2J"),
        ("\r\x00\x07", r"\r\x00\x07"),
        ("\x7f\x9b", r"\u007f\u009b"),
        ("\u202e\u2066", r"\u202e\u2066"),
        ("\udcff", r"\udcff"),
        ("\U000e0041", r"\udb40\udc41"),
    ],
)
def test_how_it_is_written(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(TEXTS)
def test_a_json_text_stays_one_with_the_same_meaning(text: str) -> None:
    shown = visible(json.dumps({text: [text]}, ensure_ascii=False))
    assert json.loads(shown) == json.loads(json.dumps({text: [text]}))
    shown.encode("utf-8")


@given(TEXTS)
def test_showing_twice_is_showing_once(text: str) -> None:
    assert visible(visible(text)) == visible(text)
    assert visible_line(visible_line(text)) == visible_line(text)


@given(TEXTS)
def test_a_guarded_terminal_gets_the_tool_s_own_styling_alone(text: str) -> None:
    screen = Screen()
    guard(screen).write(f"{CLEAR}{style(text, 'red', bold=True)}\n")
    answer = screen.getvalue()
    assert answer.startswith("\r\x1b[K\x1b[31;1m")
    assert answer.endswith("\x1b[0m\n")
    assert steering(answer[len("\r\x1b[K\x1b[31;1m") : -len("\x1b[0m\n")], own=False) == []


@given(TEXTS)
def test_a_line_stays_one(text: str) -> None:
    screen = Screen()
    before, sys.stdout = sys.stdout, guard(screen)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("COLUMNS", "10000")  # Wide enough, so that nothing is folded.
            say(f"a {text} b")
    finally:
        sys.stdout = before
    assert screen.getvalue().count("\n") == 1
    assert steering(screen.getvalue(), own=False) == []


@given(TEXTS)
def test_of_a_log_colours_arrive_and_nothing_else(text: str) -> None:
    screen = Screen()
    before, sys.stdout = sys.stdout, guard(screen)
    try:
        show_job_log(text)
    finally:
        sys.stdout = before
    assert steering(screen.getvalue()) == []
    assert "\x1b[8m" not in screen.getvalue()


def test_colours_of_a_log_do_not_outlive_it() -> None:
    screen = Screen()
    before, sys.stdout = sys.stdout, guard(screen)
    try:
        show_job_log("\x1b[36m(pid=1)\x1b[0m one\r\n\x1b[1;31mtwo\x1b[8m\n")
    finally:
        sys.stdout = before
    assert screen.getvalue() == "\x1b[36m(pid=1)\x1b[0m one\n\x1b[1;31mtwo\\x1b[8m\n\x1b[0m"


def test_nothing_writes_past_a_guard() -> None:
    guarded = guard(Screen())
    assert isinstance(guarded, Guarded)
    assert guard(guarded) is guarded
    for name in ("buffer", "detach", "reconfigure"):
        assert not hasattr(guarded, name)
    guarded.write(b"\x1b[2J of bytes, token=hf_abcdefghijklmnopqrstuvwxyzABCDEF12")
    shown = guarded.inner.getvalue()  # type: ignore[attr-defined]
    assert "of bytes" in shown
    assert "\x1b" not in shown
    assert "hf_abc" not in shown
