"""JSON from another machine, another program or a shared folder, parsed with limits on size and depth.

`json.loads` raises RecursionError, not ValueError, for a text that nests too deeply. And what it accepts can still be
too deep for a recursive function that walks through the result.
"""

from __future__ import annotations

import json
from typing import Any

MOST_BYTES = 64 << 20
"""The largest text that is parsed. The manifest of a tree of 50,000 files has 10 MB."""
DEEPEST = 100
"""The most levels of nesting. What this tool writes has at most 12."""


def parse_json(text: str | bytes | bytearray, most: int = MOST_BYTES) -> Any:
    """As `json.loads`.

    Raises:
        ValueError: it is no JSON, has more than `most` bytes (characters of a `str`), or nests too deeply.
    """
    if len(text) > most:
        raise ValueError(f"more than {most} bytes of JSON")
    try:
        found = json.loads(text)
    except RecursionError:
        raise ValueError("the JSON nests too deeply") from None
    _require_shallow(found)
    return found


def _require_shallow(value: object) -> None:
    waiting: list[tuple[object, int]] = [(value, 0)]
    while waiting:
        one, depth = waiting.pop()
        inner = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        if depth > DEEPEST:
            raise ValueError("the JSON nests too deeply")
        waiting.extend((below, depth + 1) for below in inner if isinstance(below, (dict, list)))
