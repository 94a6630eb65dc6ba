"""Where `KEY=VALUE` stands in a shell script: variables, and hydra overrides in a command.

    export NCCL_DEBUG=WARN                          NCCL_DEBUG
    python3 -m verl.trainer.main_ppo \\
        trainer.total_epochs=15 \\                  trainer.total_epochs
        +trainer.logger="['console', 'wandb']"      +trainer.logger

A value ends where the shell's word does. A new key goes on a line of its own behind another, written as that is.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator

from patcher.rewrite.keyed import Form, Spot, inserted_line, line_around

_KEY = r"[+~]{0,2}[A-Za-z_][\w./@-]*"
_ASSIGNED = re.compile(rf"(?<![\w.+~/@$\-{{])(?P<key>{_KEY})=")
_CLOSING = {"(": ")", "{": "}"}


def _assigned(text: str) -> Iterator[tuple[str, Spot]]:
    """The words `KEY=VALUE` with the places of their values, in order; what a comment says is none.

    export NCCL_DEBUG=WARN        python3 -m verl.trainer.main_ppo "trainer.logger=['console']" +data.seed=1
    """
    for match in _ASSIGNED.finditer(text):
        start, _ = line_around(text, match.start())
        if re.search(r"(^|\s)#", text[start : match.start()]):
            continue
        quote = text[match.start() - 1 : match.start()]
        if quote and quote in "\"'":
            end = text.find(quote, match.end())
            end = end if end >= 0 else len(text)
        else:
            end = _word_end(text, match.end())
        yield match["key"], Spot(match.end(), end, text[match.end() : end])


def _word_end(text: str, at: int) -> int:
    """Where a shell word ends: `"a b"`, `$(nvidia-smi -L | wc -l)` and `${N:-8}` are parts of one."""
    closing: list[str] = []
    while at < len(text):
        char = text[at]
        if char == "\\":
            if text[at + 1 : at + 2] in ("\n", "\r", ""):
                return at
            at += 2
            continue
        if closing and closing[-1] == "'":
            if char == "'":
                closing.pop()
        elif closing and char == closing[-1]:
            closing.pop()
        elif char == "$" and text[at + 1 : at + 2] in _CLOSING:
            closing.append(_CLOSING[text[at + 1]])
            at += 1
        elif char in "\"'`" and not (char == "'" and closing and closing[-1] == '"'):
            closing.append(char)
        elif not closing and char in " \t\r\n;&|<>)":
            return at
        elif not closing and char == "(" and text[at - 1] == "=":
            closing.append(")")
        at += 1
    return at


def _shell_add(text: str, key: str, value: str, behind: str | None, comment: str | None) -> str | None:
    """A line behind the one of another key, written as that is: `export KEY=VALUE`, or `KEY=VALUE \\` in a command."""
    spots = [spot for name, spot in _assigned(text) if name == behind]
    if len(spots) != 1:
        return None
    start, end = line_around(text, spots[0].start)
    _, end = line_around(text, max(spots[0].start, spots[0].end - 1))
    line = text[start:end].rstrip("\r\n")
    head = text[start : spots[0].start].removesuffix(f"{behind}=")
    if not re.fullmatch(r"\s*(export |set |local |readonly )?", head):
        return None
    tail = line[spots[0].end - start :].rstrip()
    if tail.strip() == "\\":
        return inserted_line(text, end, f"{head}{key}={value}{tail}")
    above, _ = line_around(text, max(start - 1, 0))
    if start and text[above:start].rstrip().endswith("\\"):
        # The last line of a command, which goes on now.
        ended = text[:start] + line[: spots[0].end - start] + " \\" + text[start + len(line) : end] + text[end:]
        return inserted_line(ended, end + 2, f"{head}{key}={value}{tail}") if not tail.strip() else None
    return inserted_line(text, end, "\n".join([*(comment or "").splitlines(), f"{head}{key}={value}"]))


def _shell_take(text: str, spot: Spot) -> str:
    start, _ = line_around(text, spot.start)
    _, end = line_around(text, max(spot.start, spot.end - 1))
    head, tail = text[start : spot.start], text[spot.end : end]
    if re.fullmatch(rf"\s*(export |set |local |readonly )?{_KEY}=", head) and tail.strip() in ("", "\\"):
        above, _ = line_around(text, max(start - 1, 0))
        before = text[:start]
        if not tail.strip() and start and text[above:start].rstrip().endswith("\\"):
            newline = text[len(before.rstrip("\r\n")) : start]
            before = before.rstrip("\r\n").rstrip(" \t").removesuffix("\\").rstrip(" \t") + newline
        return before + text[end:]
    word = re.search(rf"[ \t]*{_KEY}=$", text[start : spot.start])
    return text[: start + word.start() if word else spot.start] + text[spot.end :]


SHELL = Form(_assigned, _shell_add, _shell_take, operator.eq)
