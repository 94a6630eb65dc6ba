"""Lines within the width of a terminal."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patcher.terminal.layout import shortened, width, wrapped
from patcher.terminal.sequences import SEQUENCE, style, to_paste


@pytest.mark.parametrize("columns", [60, 80, 100, 140])
def test_no_name_place_or_id_is_broken(columns: int) -> None:
    line = (
        "  for: lacks vllm.engine.arg_utils.AsyncEngineArgs, see run_debug.sh:12 and vllm-lora-embedding-arguments now"
    )
    lines = wrapped(line, columns)
    assert all(width(one) <= columns for one in lines)
    assert " ".join(lines).split() == line.split()


def test_what_is_wider_than_the_terminal_goes_on_after_a_slash_or_a_dot() -> None:
    lines = wrapped("edits: verl/workers/rollout/vllm_rollout/vllm_async_server.py", 40)
    assert lines == ["edits: verl/workers/rollout/", "vllm_rollout/vllm_async_server.py"]


def test_a_text_stays_beside_its_label_where_there_is_room_and_below_it_where_there_is_none() -> None:
    line = "  ok    record vllm-lora-model-moved  " + "word " * 20
    assert wrapped(line, 120)[1].index("word") == line.index("word")
    assert wrapped(line, 60)[:2] == ["  ok    record vllm-lora-model-moved", "      " + ("word " * 11).strip()]


def test_a_command_is_not_broken_or_goes_on_with_a_backslash() -> None:
    assert wrapped("12 pending, 1 adopted. Next: uky-patch apply --diff", 40) == [
        "12 pending, 1 adopted. Next:",
        "uky-patch apply --diff",
    ]
    lines = wrapped("Next: uky-patch check --against vllm==0.20.2 --baseline vllm==0.12.0 --root '/a b'", 50)
    assert lines[0] == "Next:"
    assert all(line.endswith(" \\") for line in lines[1:-1])
    assert " ".join("".join(line.rstrip("\\") for line in lines[1:]).split()).endswith("--root '/a b'")
    pasted = wrapped("    " + to_paste("export VLLM_A=1 && python -m vllm serve --model models/x"), 40)
    assert [SEQUENCE.sub("", line) for line in pasted] == [
        "    export VLLM_A=1 && python -m vllm \\",
        "        serve --model models/x",
    ]


def test_chinese_goes_on_anywhere_but_not_before_a_comma_nor_inside_a_name() -> None:
    lines = wrapped(
        "它的结束不会被记录下来，因为监视它的进程（uky-patch 自己的那个）已经不在了，请看 run_debug.sh:12。", 24
    )
    assert all(width(line) <= 24 for line in lines)
    assert not any(line[0] in "，。）" or line[-1] == "（" for line in lines)
    assert any("run_debug.sh:12。" in line for line in lines)


def test_colours_take_no_room_and_stay_where_they_were() -> None:
    line = f"  {style('pending', 'yellow')}  {'word ' * 12}{style('last', 'red')}"
    lines = wrapped(line, 40)
    assert all(width(one) <= 40 for one in lines)
    assert SEQUENCE.findall("".join(lines)) == SEQUENCE.findall(line)
    assert lines[-1].endswith(style("last", "red"))


@given(st.text(st.sampled_from("ab.:/-=(),'\"` 0中文，（）…"), max_size=200), st.integers(20, 100))
def test_nothing_is_lost_and_nothing_is_cut(text: str, columns: int) -> None:
    lines = wrapped(text, columns)
    shown = re.sub(r"[\s\\]", "", "".join(lines))
    assert shown == re.sub(r"[\s\\]", "", text)


def test_a_line_that_passes_is_cut_to_its_columns() -> None:
    assert shortened("正在检查：第 0 个", 9) == "正在检查…"
    assert shortened("checking", 8) == "checking"
