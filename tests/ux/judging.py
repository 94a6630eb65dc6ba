"""What is wrong with a screen, and a screen without what differs from run to run."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from tests.ux.commands import Call
from tests.ux.terminals import Screen

WORD = re.compile(r"[!-~]+")
"""What must stay whole, in Chinese too; Chinese itself may be broken anywhere."""
_DIFFERS = (
    (re.compile(r"/tmp/uky-ux-\w{8}"), "/tmp/uky-ux-00000000"),
    (re.compile(r"main@[0-9a-f]{7,12}"), "main@000000000"),
    (re.compile(r"\d+(\.\d)(?=\s(s\b|秒))"), "0.0"),
    (re.compile(r"\b\d+ (h|小时) \d+ (min|分钟?)"), r"0 \1 00 \2"),
    (re.compile(r"\b\d+ (min|分钟?) \d+ (s|秒)"), r"0 \1 00 \2"),
    (re.compile(r"\b\d+(\.\d)? (B|kB|KiB|MiB)\b"), r"0 \2"),
    (re.compile(r"/tmp/uky-patch-demo-\w+|/tmp/tmp\w+"), "/tmp/scratch"),
)
_STEP = re.compile(r"uky-patch [a-z]|--[a-z]|->|the same command|同一条命令|Did you mean")
_COLOURS = re.compile(r"\x1b\[([\d;:]*)m")
_READABLE = {
    "",
    "0",
    "1",
    "39",
    "49",
    "31",
    "32",
    "33",
    "35",
    "36",
    "38;5;160",
    "38;5;28",
    "38;5;130",
    "38;5;127",
    "38;5;30",
}
"""On black and on white."""
_LEFT = ("checking:", "fetching", "reading parts", "正在检查", "正在下载", "\u280b")


def settled(text: str) -> str:
    """The same on every machine and at any time."""
    for pattern, instead in _DIFFERS:
        text = pattern.sub(instead, text)
    return text


def faults(call: Call, screen: Screen, wide: Screen | None, columns: int, tongue: str) -> Iterator[str]:
    """Each thing that is wrong; `wide` is the same command on a terminal on which nothing needs to be broken."""
    if "Traceback (most recent call last)" in screen.text.replace("2  Traceback", "").replace(
        "pid=4712) Traceback", ""
    ):
        yield "a traceback"
    if "this is a bug" in screen.text or screen.code == 70:
        yield "a bug"
    if not call.exactly:
        yield from (f"wider than the terminal: {line}" for line in screen.joined if columns_of(line) > columns)
    if wide is not None and not call.exactly:
        yield from _broken(screen, wide, columns)
    for line in screen.lines:
        if line.lstrip().startswith(_LEFT):
            yield f"progress is left: {line}"
    if call.todo and not _STEP.search(ending(screen)) and not _is_error_with_advice(screen):
        yield f"no next step: {ending(screen)}"
    for codes in _COLOURS.findall(screen.coloured):
        if codes.replace(":", ";") not in _READABLE and not all(part in _READABLE for part in codes.split(";")):
            yield f"colour {codes}"
    if tongue == "C" and any("\u2010" <= char <= "\u25ff" or char == "·" for char in screen.text) and not call.exactly:
        yield "signs that a terminal of C may not have"


def ending(screen: Screen) -> str:
    """The last paragraph."""
    return screen.text.rstrip("\n").rpartition("\n\n")[2]


def columns_of(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in line)


def _broken(screen: Screen, wide: Screen, columns: int) -> Iterator[str]:
    """Words of the wide screen that the narrow one does not have whole."""
    there = set(WORD.findall(settled(screen.text)))
    for word in dict.fromkeys(WORD.findall(settled(wide.text))):
        if len(word) <= columns and word not in there and not _is_shortened(word):
            yield f"broken: {word}"


def _is_shortened(word: str) -> bool:
    """Whether a bar or dots stand for the rest, which the width decides; a short number is how long something took."""
    return (word.isdigit() and len(word) <= 3) or word.endswith("...") or set(word) <= set("-=_#|")


def _is_error_with_advice(screen: Screen) -> bool:
    """Whether an error says more than what is wrong."""
    lines = ending(screen).split("\n")
    return screen.code >= 2 and len(lines) >= 2
