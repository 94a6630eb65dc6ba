"""How long releases are fetched for one diagnosis.

Their sources come one after the other, and somebody waits. What was fetched by the end of that time is kept, so that
the same command, given again, goes on from there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import NoReturn, ParamSpec, TypeVar

from patcher.i18n import Phrase, phrase

P = ParamSpec("P")
T = TypeVar("T")

SECONDS = 60.0
"""Set by hand: ten to thirty releases come in that time."""


@dataclass(slots=True)
class FetchLimit:
    """`until`: by the monotonic clock."""

    until: float
    passed_over: str = ""
    """The first release, with its package, that is still to be fetched."""


_limit: ContextVar[FetchLimit | None] = ContextVar("limit", default=None)


class OutOfTimeError(Exception):
    """The next release is not in the cache, and the time to fetch it is over."""


@contextmanager
def limited_to(seconds: float) -> Iterator[FetchLimit]:
    """Let `is_over` become true once so many seconds have passed."""
    limit = FetchLimit(time.monotonic() + seconds)
    before = _limit.set(limit)
    try:
        yield limit
    finally:
        _limit.reset(before)


def is_over() -> bool:
    """Whether nothing more is to be fetched."""
    limit = _limit.get()
    return limit is not None and time.monotonic() > limit.until


def pass_over(name: str, release: str) -> NoReturn:
    """Raise OutOfTimeError, and keep which release it was."""
    if (limit := _limit.get()) is not None:
        limit.passed_over = limit.passed_over or f"{name} {release}"
    raise OutOfTimeError


def still_to_fetch(limit: FetchLimit) -> tuple[Phrase, ...]:
    """The note on a diagnosis that ran out of time; nothing on one that did not."""
    text = (
        "{release} is still to be read, and releases are fetched for {seconds} s at most: the same command, given "
        "again, goes on from there"
    )
    return (phrase(text, release=limit.passed_over, seconds=f"{SECONDS:.0f}"),) if limit.passed_over else ()


def in_time(ask: Callable[P, T | None], *args: P.args, **kwargs: P.kwargs) -> T | None:
    """What it answers; None where the time is over before that."""
    try:
        return ask(*args, **kwargs)
    except OutOfTimeError:
        return None
