"""Bytes from an index over HTTP: whole files with their hash checked, or parts of a file by range requests.

A transfer that failed in a way that may pass (timeouts, status 408, 429 and 5xx, a body cut short, a wrong hash) is
tried again, `_TRIES` times in all; any other error answer is final.
"""

from __future__ import annotations

import hashlib
import io
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from patcher.errors import ReleaseError, message_of
from patcher.i18n import phrase

if TYPE_CHECKING:
    from patcher.packages.releases.cache import Progress

BLOCK = 1 << 20
MOST_WHOLE = 60_000_000
"""The largest file, in bytes, that is fetched whole where only its sources are wanted. A guess at what a user waits
for: source archives and pure wheels are below it, wheels with compiled CUDA code are above it."""
_TRIES = 4
"""Attempts for one transfer, with pauses of 0.2, 0.8 and 3.2 seconds: enough for a proxy that restarts. A guess."""
_ADVICE = "Check the connection and pip's settings for indexes, proxies and certificates, then run it again."
_NO_RANGES = (416, 501)
_PLAINLY = {"Accept-Encoding": "identity"}
_Result = TypeVar("_Result")


class Client(Protocol):
    """The part of the HTTP client that is used here."""

    def get(self, url: str, *, headers: Mapping[str, str] | None = None) -> Any: ...

    def stream(self, method: str, url: str, *, headers: Mapping[str, str] | None = None) -> Any: ...


class RangeRefusedError(Exception):
    """The server sends whole files only."""


class TooLargeError(Exception):
    """A file is larger than was allowed for; `size` is in bytes, None where the server does not tell it."""

    def __init__(self, size: int | None) -> None:
        super().__init__(size)
        self.size = size


class _FailedError(Exception):
    """A transfer that may go better when tried again."""


def download(
    client: Client,
    url: str,
    to: Path,
    hashes: Mapping[str, list[str]],
    shown: str,
    progress: Progress,
    most: int | None = None,
) -> None:
    """Fetch a whole file, of at most `most` bytes.

    Raises `ReleaseError` if it is not complete or its hash is not the index's, `TooLargeError` before or while more
    than `most` bytes arrive.
    """

    def attempt() -> None:
        kinds = {kind: hashlib.new(kind) for kind in hashes}
        with client.stream("GET", url, headers=_PLAINLY) as answer, to.open("wb") as file:
            _check_status(answer)
            expected, done = _length(answer), 0
            if most is not None and expected is not None and expected > most:
                raise TooLargeError(expected)
            for part in answer.iter_raw():
                done += len(part)
                if most is not None and done > most:
                    raise TooLargeError(None)
                file.write(part)
                for digest in kinds.values():
                    digest.update(part)
                progress(phrase("fetching {name}", name=shown), done, expected)
        if expected is not None and done != expected:
            raise _FailedError(
                phrase("{done} of {expected} {expected:byte|bytes} arrived", done=done, expected=expected)
            )
        for kind, digest in kinds.items():
            if digest.hexdigest() not in hashes[kind]:
                wrong = {"kind": kind, "found": digest.hexdigest(), "listed": hashes[kind][0]}
                raise _FailedError(phrase("its {kind} is {found}, the index says {listed}", **wrong))

    _retry(attempt, shown)


class RangeFile(io.RawIOBase):
    """A remote file to read from anywhere, in blocks of one MiB that are kept. `fetched` counts the bytes.

    `wanted`: how many bytes it will be in all, None while that is unknown.
    """

    def __init__(self, client: Client, url: str, shown: str, progress: Progress) -> None:
        self._client, self._url, self._shown, self._progress = client, url, shown, progress
        self._blocks: dict[int, bytes] = {}
        self._at = 0
        self.fetched = 0
        self.wanted: int | None = None
        self.size = 0
        self.size = self._ask(0, 0)[1]

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + (0, self._at, self.size)[whence]
        return self._at

    def readinto(self, buffer: Any) -> int:
        wanted = min(len(buffer), max(self.size - self._at, 0))
        done = 0
        while done < wanted:
            number, inside = divmod(self._at, BLOCK)
            part = self._block(number)[inside : inside + wanted - done]
            buffer[done : done + len(part)] = part
            done += len(part)
            self._at += len(part)
        return done

    def expect(self, spans: Iterable[tuple[int, int]]) -> None:
        """Tell what will be read, from and to which byte each, so that progress can name how much it is in all."""
        self.wanted = covered = 0
        there = [(number * BLOCK, number * BLOCK + 1) for number in self._blocks]
        for first, end in sorted([*spans, *there]):
            begin = max(first // BLOCK * BLOCK, covered)
            covered = max(min(-(-end // BLOCK) * BLOCK, self.size), covered)
            self.wanted += max(covered - begin, 0)

    def _block(self, number: int) -> bytes:
        if number not in self._blocks:
            first = number * BLOCK
            body, _ = self._ask(first, min(first + BLOCK, self.size) - 1)
            self._blocks[number] = body
            self.fetched += len(body)
            self._progress(phrase("reading parts of {name}", name=self._shown), self.fetched, self.wanted)
        return self._blocks[number]

    def _ask(self, first: int, last: int) -> tuple[bytes, int]:
        """The bytes from `first` to `last`, both included, and the file's size."""

        def attempt() -> tuple[bytes, int]:
            headers = {**_PLAINLY, "Range": f"bytes={first}-{last}"}
            with self._client.stream("GET", self._url, headers=headers) as answer:
                if answer.status_code in _NO_RANGES:
                    raise RangeRefusedError
                _check_status(answer)
                span, _, size = answer.headers.get("Content-Range", "").removeprefix("bytes ").partition("/")
                # Some servers answer a range request with 200 and the whole file, or with another range.
                if answer.status_code != 206 or not size.isdigit() or span != f"{first}-{last}":
                    raise RangeRefusedError
                # The index replaced the file between two requests.
                if self.size and int(size) != self.size:
                    raise _FailedError(phrase("the file changed while it was read"))
                body = b"".join(answer.iter_raw())
            if len(body) != last - first + 1:
                counts = {"done": len(body), "expected": last - first + 1}
                raise _FailedError(phrase("{done} of {expected} {expected:byte|bytes} arrived", **counts))
            return body, int(size)

        return _retry(attempt, self._shown)


def _length(answer: Any) -> int | None:
    length = answer.headers.get("Content-Length") or ""
    return int(length) if length.isdigit() else None


def _check_status(answer: Any) -> None:
    # Overloaded or restarting: worth another try. Any other error answer stays the same.
    if answer.status_code >= 500 or answer.status_code in (408, 429):
        raise _FailedError(phrase("the server answered {status}", status=answer.status_code))
    if answer.status_code >= 400:
        raise ReleaseError(phrase("the server answered {status}", status=answer.status_code))


def _retry(attempt: Callable[[], _Result], shown: str) -> _Result:
    """Try a few times, with growing pauses; what the last attempt says is the error's cause."""
    for number in range(1, _TRIES + 1):
        try:
            return attempt()
        except (RangeRefusedError, TooLargeError):
            raise
        except ReleaseError as error:
            raise ReleaseError(
                phrase("cannot fetch {name}", name=shown), cause=message_of(error), advice=_ADVICE
            ) from error
        except _FailedError as error:
            cause: Exception = error
        except Exception as error:
            if not any(base.__name__ == "TransportError" for base in type(error).__mro__):
                raise
            cause = error
        if number < _TRIES:
            time.sleep(0.2 * 4 ** (number - 1))
    raise ReleaseError(
        phrase("cannot fetch {name}", name=shown),
        cause=phrase(
            "{why} (tried {count} {count:time|times})", why=message_of(cause) or type(cause).__name__, count=_TRIES
        ),
        advice=_ADVICE,
    )
