"""The telling parts of a log, of whatever shape and size."""

from __future__ import annotations

import gzip
import resource
from pathlib import Path

from patcher.bundle.excerpts import LONGEST, around, command_in, tail


def test_the_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"".join(b"line %d\n" % number for number in range(1000)) + b"0%\r50%\r100%\r\nno end")
    lines = tail(log, 3).splitlines()
    assert lines == ["line 999", "100%", "no end"]
    packed = tmp_path / "log.gz"
    packed.write_bytes(gzip.compress(log.read_bytes()))
    assert tail(packed, 3).splitlines() == lines
    assert around(packed, 990)[0] == around(log, 990)[0]
    log.write_bytes(b"")
    assert tail(log) == ""


def test_a_traceback_is_told_whole(tmp_path: Path) -> None:
    log = tmp_path / "log"
    frames = "".join(f'  File "a.py", line {number}, in f\n' for number in range(150))
    text = "before\n" * 500 + f"Traceback (most recent call last):\n{frames}ValueError: no\n" + "behind\n" * 500
    log.write_text(text)
    number = text[: text.index("ValueError")].count("\n") + 1
    shown, first = around(log, number)
    lines = shown.splitlines()
    assert text.splitlines()[first - 1 : first - 1 + len(lines)] == lines
    assert lines[10] == "Traceback (most recent call last):"
    assert lines[-1] == "behind"
    assert "ValueError: no" in lines


def test_the_line_itself_is_there_at_either_end(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("first\nsecond\nthird")
    assert around(log, 1) == ("first\nsecond\nthird\n", 1)
    assert around(log, 3) == ("first\nsecond\nthird\n", 1)


def test_the_command_is_what_the_shell_showed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("+ cd /x\n+ export A=1\n+ HYDRA_FULL_ERROR=1 python3 -m verl.trainer.main_ppo a=1 b=2\nINFO\n")
    assert command_in(log) == "HYDRA_FULL_ERROR=1 python3 -m verl.trainer.main_ppo a=1 b=2"
    log.write_text("INFO nothing\n")
    assert command_in(log) == ""


def test_a_huge_log_and_a_line_without_end_are_not_held(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as stream:
        stream.write(b"start\nValueError: here\n")
        stream.truncate(300 << 20)
        stream.seek(0, 2)
        stream.write(b"\nthe end\n")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    lines = tail(log).splitlines()
    shown, _ = around(log, 2)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10
    assert lines[-1] == "the end"
    assert "ValueError: here" in shown
    assert all(len(line) < LONGEST + 100 for line in [*lines, *shown.splitlines()])
