"""Samples that a trainer prints, and a server's answers to its clients: what they say is quoted."""

from __future__ import annotations

from patcher.diagnose.blocks import Block
from patcher.diagnose.speaking import spoken

_OPENS = (b"[prompt]", b"[response]", b"[ground_truth]")
_CLOSES = (b"[score]", b"step:", b"Training Progress:", b"Error executing job with overrides")
"""What ends a sample, or cannot be part of one."""
_ANSWERS = (b'{"error":{"message":', b'{"object":"error",')
_FAR = 1 << 14
"""Bytes that a sample is looked back over."""


def is_quoted(block: Block, begin: int, end: int, speaker: str) -> bool:
    """Whether the line from `begin` to `end` is an answer, or in a sample of its speaker that has not ended."""
    if block.content.startswith(_ANSWERS, begin):
        return True
    low = max(0, begin - _FAR)
    opened = max(block.content.rfind(mark, low, end) for mark in _OPENS)
    if opened < 0 or opened < max(block.content.rfind(mark, low, begin) for mark in _CLOSES):
        return False
    at, until = block.bounds(opened)
    first = spoken(block, at, until)
    return first.speaker == speaker and first.text.startswith("[")
