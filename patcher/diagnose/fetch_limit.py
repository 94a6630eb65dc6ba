"""How long releases are fetched for one diagnosis.

Their sources come one after the other, and somebody waits. What was fetched by the end of that time is kept, so that
the same command, given again, goes on from there.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import ParamSpec, TypeVar

from patcher.errors import UkyError
from patcher.i18n import phrase

P = ParamSpec("P")
T = TypeVar("T")

SECONDS = 60.0
"""Set by hand: ten to thirty releases come in that time."""
_until: ContextVar[float] = ContextVar("until", default=math.inf)


class OutOfTimeError(UkyError):
    """The next release of `distribution` is not in the cache, and the time to fetch it is over."""

    def __init__(self, distribution: str, release: str) -> None:
        text = (
            "{name} {release} is still to be read, and releases are fetched for {seconds} s at most: the same command, "
            "given again, goes on from there"
        )
        super().__init__(phrase(text, name=distribution, release=release, seconds=f"{SECONDS:.0f}"))
        self.distribution = distribution


@contextmanager
def limited_to(seconds: float) -> Iterator[None]:
    """Let `is_over` become true once so many seconds have passed."""
    before = _until.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _until.reset(before)


def is_over() -> bool:
    """Whether nothing more is to be fetched."""
    return time.monotonic() > _until.get()


def in_time(ask: Callable[P, T | None], *args: P.args, **kwargs: P.kwargs) -> T | None:
    """What it answers; None where the time is over before that."""
    try:
        return ask(*args, **kwargs)
    except OutOfTimeError:
        return None
