"""`--format json`: one JSON object on standard output, in valid UTF-8, whatever happens: NaN, broken names, late
errors.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

Report: TypeAlias = Mapping[str, Any]


def show_json(report: Report) -> None:
    """Give the command's one object. Every command does it here."""
    sys.stdout.write(encoded(report))


def encoded(report: Report) -> str:
    """One line of JSON. NaN, which JSON does not have, is null; half a surrogate pair (a file name) is escaped."""
    try:
        text = json.dumps(report, ensure_ascii=False, allow_nan=False)
    except ValueError:
        text = json.dumps(_without_nan(report), ensure_ascii=False)
    return text.encode("utf-8", "backslashreplace").decode("utf-8") + "\n"


class Held:
    """Standard output while a command runs: it is held back, so that a late error still gives one object."""

    def __init__(self) -> None:
        self._bytes = io.BytesIO()
        self.stream = io.TextIOWrapper(self._bytes, encoding="utf-8", errors="backslashreplace")

    def release(self, error: Report | None) -> None:
        """Write what was held back; where there is an `error`, as a part of the object."""
        self.stream.flush()
        written = self._bytes.getvalue()
        if error is not None:
            written = encoded({**_object(written), **error}).encode()
        elif not written:
            written = b"{}\n"
        sys.stdout.write(written.decode())
        sys.stdout.flush()


@contextmanager
def held() -> Iterator[Held]:
    """Hold standard output back."""
    before, found = sys.stdout, Held()
    sys.stdout = found.stream
    try:
        yield found
    finally:
        sys.stdout = before


def _object(written: bytes) -> Report:
    try:
        found = json.loads(written)
    except ValueError:  # A part of a text, such as help.
        return {}
    return found if isinstance(found, dict) else {}


def _without_nan(value: Any) -> Any:
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, Mapping):
        return {name: _without_nan(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(part) for part in value]
    return value
