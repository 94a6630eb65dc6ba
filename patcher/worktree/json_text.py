"""JSON that another machine, another program or a shared folder may have written: parsed with limits.

`json.loads` raises RecursionError for a text that nests too deeply, which callers who wait for ValueError do not
catch; and what it lets pass may still be too deep for those who walk through the result.
"""

from __future__ import annotations

import json
from typing import Any

MOST_BYTES = 64 << 20
"""The most that a text may have. The manifest of a tree of 50,000 files has 10 MB."""
DEEPEST = 100
"""The most levels. What this tool writes itself has 12 at most."""


def parse_json(text: str | bytes | bytearray, most: int = MOST_BYTES) -> Any:
    """The value that a JSON text stands for.

    Raises:
        ValueError: it is no JSON, or larger or deeper nested than is looked at.
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
