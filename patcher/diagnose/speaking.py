"""Who says a line of a block, and what; a state of a progress bar is said by who began its line."""

from __future__ import annotations

from patcher.diagnose.blocks import LONG, Block
from patcher.records.log_lines import Said, said

_PREFIX = 300
"""Bytes of a line in which its prefixes stand."""


def spoken(block: Block, begin: int, end: int) -> Said:
    """What stands between `begin` and `end`, which is a line or begins behind a carriage return."""
    content = block.content
    line = said(content[begin:end].decode("utf-8", "replace"))
    if line.speaker or content[begin - 1 : begin] != b"\r":
        return line
    start = content.rfind(b"\n", max(0, begin - LONG), begin) + 1
    first = said(content[start : min(begin, start + _PREFIX)].decode("utf-8", "replace"))
    return Said(line.text, first.actors, first.speaker) if first.speaker else line
