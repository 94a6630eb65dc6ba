"""Whatever a command shows, on standard output and standard error, goes through here and loses its secrets."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import TextIO


@contextmanager
def without_secrets() -> Iterator[None]:
    """Commands within write to streams that let no secret through; JSON stays JSON."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (_Hiding(stream) if stream is not None else stream for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


class _Hiding(io.TextIOBase):
    """A stream that takes secrets out of what it is given. `buffer` is the one below: for files that are applied."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        from patcher.secrets.redacting import here

        self._stream.write(here().document(text))
        return len(text)

    def flush(self) -> None:
        self._stream.flush()

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()

    def writable(self) -> bool:
        return True

    @property
    def closed(self) -> bool:
        return self._stream.closed

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return getattr(self._stream, "encoding", None) or "utf-8"

    @property
    def errors(self) -> str:  # type: ignore[override]
        return getattr(self._stream, "errors", None) or "strict"

    def close(self) -> None:
        """The stream below belongs to somebody else."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
