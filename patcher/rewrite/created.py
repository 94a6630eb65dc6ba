"""Make a whole file, and tell one that was made from another file of its name.

The record's marker is a comment of its own at the top, below what must be the first line:

    #!/bin/bash                     # -*- coding: utf-8 -*-         # Uky[fork-flags-log]
    # Uky[fork-run-flags]           # Uky[fork-flags-log]           from __future__ import annotations
    export NCCL_DEBUG=WARN          import os                       import os

In a format without comments, such as JSON, or where a comment would be text, the file has no marker.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import zip_longest

from patcher.rewrite.comments import same_but_for_comments
from patcher.rewrite.edits import CreateFile, Mark
from patcher.rewrite.marker import markers, shown_line, split, split_whole, without_markers
from patcher.rewrite.outcome import AlreadyDone, OtherFile, Rewritten

_STAYS_FIRST = re.compile(r"#!|[ \t\f]*#.*?coding[:=]")
"""A line that counts only as the first, or as one of the first two: what runs a script, the encoding of Python."""


@lru_cache(maxsize=1024)
def create_file(edit: CreateFile, mark: Mark) -> Rewritten:
    """The outcome for a tree that has no such file. Kept: `record` asks again with each order of the records."""
    lines = split_whole(edit.content)
    top = 0
    while top < min(len(lines), 2) and _STAYS_FIRST.match(lines[top]):
        top += 1
    if top and not lines[top - 1].endswith("\n"):
        lines[top - 1] += "\n"
    made = "".join([*lines[:top], f"{mark.text}\n", *lines[top:]])
    python = edit.file.endswith((".py", ".pyi"))
    if mark.style == "unmarked" or not (python or same_but_for_comments(edit.file, edit.content, made)):
        return Rewritten(edit.content, (1,))
    return Rewritten(made, (top + 1,))


def recognise_file(text: str, edit: CreateFile, word: str) -> AlreadyDone | OtherFile:
    """The outcome for a tree that has a file of this name: done where the two differ in markers alone."""
    if (index := _first_difference(text, edit, word)) is None:
        found = markers(text, word)
        return AlreadyDone((found[0].line if found else 1,), bool(found))
    return OtherFile(max(1, min(shown_line(text, word, index), len(split(text)))))


def markers_of_file(text: str, edit: CreateFile, word: str) -> frozenset[int]:
    """The lines with a marker, from 1, in a file that is the edit's: all of them."""
    if _first_difference(text, edit, word) is not None:
        return frozenset()
    return frozenset(marker.line for marker in markers(text, word))


def _first_difference(text: str, edit: CreateFile, word: str) -> int | None:
    """The first line, from 0, in which two texts differ without their markers and without white space at the ends."""
    plain = ([line.rstrip() for line in split(without_markers(one, word))] for one in (text, edit.content))
    pairs = enumerate(zip_longest(*plain))
    return next((index for index, (one, two) in pairs if one != two), None)
