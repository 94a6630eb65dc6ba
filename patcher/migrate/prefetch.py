"""Work that is done while ssh logs in: what a plan needs of this machine does not depend on the host's answers."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from patcher.errors import UkyError

T = TypeVar("T")
FRESH = 2.0
"""Seconds for which the work counts. A guess: a login takes 0.2 s, unless a password is typed."""


def prefetched(make: Callable[[], T]) -> Callable[[], T]:
    """Do the work now, and return a function that gives its result.

    If that function is called late, or a second time, it does the work again. It also raises the UkyError that the work
    raises; this one raises none.
    """
    done: Future[T] = Future()
    try:
        done.set_result(make())
    except UkyError as error:
        done.set_exception(error)
    kept, until = [done], time.monotonic() + FRESH

    def result() -> T:
        if kept and time.monotonic() < until:
            return kept.pop().result()
        return make()

    return result
