"""What a command leaves on a real terminal: no progress, nothing cut inside a word, colours for any background."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from itertools import product
from pathlib import Path

import pytest

from tests.lanes import one_in

TOOL = str(Path(sys.executable).parent / "uky-patch")
USES = """\
import vllm
from vllm.model_executor.layers.quantization.utils.fp8_utils import maybe_post_process_fp8_weight_block
print(vllm.entrypoints.NoSuchName)
"""
RECORD = """
id = "{id}"
title = "Import {name} from where it went to"
reason = "It moved."
lifetime = "until-upstream"
[when]
verl = "{verl}"
vllm = ">=0.12"
[[edit]]
file = "verl/uses.py"
kind = "move-import"
old = "vllm.old.{name}"
new = "vllm.new.{name}"
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Beside verl 0.7.0, with four records for all releases around it."""
    root = tmp_path / "fork"
    (root / "verl/version").mkdir(parents=True)
    (root / "own").mkdir()
    (root / "verl/version/version").write_text("0.7.0.dev0\n")
    (root / "verl/__init__.py").write_text("")
    names = ("One", "Two", "Three", "Four")
    (root / "verl/uses.py").write_text(USES + "".join(f"from vllm.old import {name}\n" for name in names))
    for name, verl in zip(names, (">=0.6,<0.9", ">=0.6,<0.9.1", ">=0.6,<0.9.2", ">=0.6,<0.9"), strict=True):
        text = RECORD.format(id=f"own-{name.lower()}", name=name, verl=verl)
        (root / f"own/own-{name.lower()}.toml").write_text(text)
    (root / "uky-patch.toml").write_text('patches = ["own"]\n')
    return root


def on_terminal(root: Path, columns: int, *arguments: str, **variables: str) -> str:
    """What arrives on a terminal of so many columns, standard output and standard error in their order."""
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "CI", "COLUMNS", "LC_ALL")}
    env = kept | {"LANG": "C.UTF-8", "TERM": "xterm-256color", **variables}
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    process = subprocess.Popen(
        [TOOL, *arguments], cwd=root, stdin=theirs, stdout=theirs, stderr=theirs, env=env, close_fds=True
    )
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 1 << 16):
            shown += part
    except OSError:  # The other end is closed.
        pass
    os.close(ours)
    process.wait(timeout=60)
    return shown.decode().replace("\r\n", "\n")


def left(text: str) -> str:
    """What stays of it: a line that was cleared does not, colours aside."""
    return re.sub(r"\x1b\[[\d;]*m", "", re.sub(r"[^\n]*\r\x1b\[K", "", text))


CHECK = ("check", "--against", "vllm==0.20.2", "--no-since")


@pytest.mark.network
def test_progress_is_shown_and_gone_afterwards(tree: Path) -> None:
    text = on_terminal(tree, 80, *CHECK)
    assert re.search(r"checking: \d+ of \d+ files?\b", text)
    assert "checking:" not in left(text)
    assert left(text).startswith("verl 0.7.0.dev0 against vllm 0.20.2")


@pytest.mark.network
@pytest.mark.parametrize("variables", one_in(3, [{"CI": "true"}, {"NO_COLOR": "1"}, {"TERM": "dumb"}]), ids=str)
def test_no_line_is_rewritten_where_that_is_not_wanted(tree: Path, variables: dict[str, str]) -> None:
    text = on_terminal(tree, 80, *CHECK, **variables)
    assert "\x1b[K" not in text
    assert "checking:" not in text
    assert ("\x1b" in text) == ("CI" in variables)


def test_a_reason_that_many_rows_give_is_told_once_above_them(tree: Path) -> None:
    done = subprocess.run(
        [TOOL, "status", "--assume", "vllm==0.20.2"],
        cwd=tree,
        capture_output=True,
        text=True,
        env=os.environ | {"LANG": "C"},
    )
    assert done.stdout.count("0.7.0.dev0 is like a release beside 0.7.0, and all of these are in …") == 1
    rows = [line for line in done.stdout.splitlines() if re.search("pending +own-", line)]
    assert [row.rpartition(" [1: ")[2] for row in sorted(rows)] == [
        ">=0.6,<0.9]",
        ">=0.6,<0.9]",
        ">=0.6,<0.9.2]",
        ">=0.6,<0.9.1]",
    ]


IN_MAKE_TEST = (("C.UTF-8", 80), ("zh_CN.UTF-8", 60))
"""The other languages and widths are in the lane `ux`."""


@pytest.mark.network
@pytest.mark.parametrize(
    ("language", "columns"),
    [
        pytest.param(*screen, marks=() if screen in IN_MAKE_TEST else pytest.mark.ux)
        for screen in product(("C.UTF-8", "zh_CN.UTF-8"), (60, 80, 100, 140))
    ],
)
def test_nothing_is_cut_inside_a_word(tree: Path, columns: int, language: str) -> None:
    for arguments in (CHECK, ("status", "--assume", "vllm==0.20.2"), ("explain", "own-one"), ("list",)):
        wide = left(on_terminal(tree, 400, *arguments, LANG=language))
        narrow = left(on_terminal(tree, columns, *arguments, LANG=language))
        assert all(len(line) <= columns for line in narrow.split("\n"))
        words = {word for word in re.findall(r"[!-~]+", wide) if len(word) <= columns}
        assert words <= set(re.findall(r"[!-~]+", narrow))


def test_below_100_columns_a_row_stands_over_its_text(tree: Path) -> None:
    lines = left(on_terminal(tree, 60, "status", "--assume", "vllm==0.20.2")).split("\n")
    at = next(number for number, line in enumerate(lines) if re.fullmatch(" +pending +own-four +uses.py:4", line))
    assert lines[at + 1] == "      Import Four from where it went to [1: >=0.6,<0.9]"


def test_a_locale_of_ascii_alone_gets_signs_of_ascii_alone(tree: Path) -> None:
    for locale in ("C", "POSIX"):
        text = on_terminal(tree, 80, "status", "--assume", "vllm==0.20.2", LANG=locale)
        assert re.search(r"\|\svllm 0.20.2", text)
        assert text.isascii()
    assert " ·" in on_terminal(tree, 80, "status", "--assume", "vllm==0.20.2")


@pytest.mark.network
def test_colours_are_readable_on_black_and_on_white(tree: Path) -> None:
    for arguments in (CHECK, ("status", "--assume", "vllm==0.20.2"), ("apply", "--dry-run", "--diff"), ("nosuch",)):
        text = on_terminal(tree, 80, *arguments)
        codes = {int(found) for found in re.findall(r"\x1b\[38;5;(\d+)(?:;1)?m", text)}
        assert not re.search(r"\x1b\[(3[0-7]|9[0-7])m", text)
        assert all(contrast(code, white) >= 3.5 for code in codes for white in (0.0, 1.0))


def contrast(code: int, background: float) -> float:
    """As WCAG defines it, of one of the 216 colours of a terminal, on black (0) or white (1)."""
    steps = (0, 95, 135, 175, 215, 255)
    parts = [steps[(code - 16) // 36], steps[(code - 16) // 6 % 6], steps[(code - 16) % 6]]
    red, green, blue = (part / 255 / 12.92 if part <= 10 else ((part / 255 + 0.055) / 1.055) ** 2.4 for part in parts)
    light = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return (max(light, background) + 0.05) / (min(light, background) + 0.05)


def test_programs_get_one_line_of_json_on_a_terminal_too(tree: Path) -> None:
    text = on_terminal(tree, 60, "status", "--format", "json", "--assume", "vllm==0.20.2")
    assert len(json.loads(text)["records"]) > 3
