"""Processes that work for one command: deaf to Ctrl-C, importing nothing of the tree, and ended with the command."""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from typing import Any

from patcher.errors import UkyError


def pool(most: int, start: Callable[..., None], *given: Any) -> ProcessPoolExecutor:
    """Processes that begin with `start`, which is to call `begun`. Work is given to them inside `starting()`."""
    # Forked processes would share the memory of this one, and with it whatever locks other threads hold.
    return ProcessPoolExecutor(most, multiprocessing.get_context("spawn"), start, given)


_MMAP_THRESHOLD = -3
"""Its number in malloc.h."""


def begun() -> None:
    """What a process does first."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # It makes millions of nodes and drops them part by part; the collector would walk them again and again.
    gc.disable()
    # Pieces of 1 MB or more, such as all texts of a release, lie by themselves and are given back at once.
    with suppress(OSError, AttributeError):  # Only glibc has these two.
        ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, 1 << 20)


def collect() -> None:
    """Collect garbage, and give free memory back: the C library keeps what lies between pieces that are in use.

    What is left is not looked through the next time."""
    gc.collect()
    gc.freeze()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


@contextmanager
def starting() -> Iterator[None]:
    """Give work to processes: each is started with the first work that none is idle for."""
    with _at_root(), _without_interrupts():
        yield


@contextmanager
def ended_with(pools: Sequence[ProcessPoolExecutor], killed: UkyError) -> Iterator[None]:
    """End the processes of all pools behind this, whatever happens. Raises `killed` where one was killed."""
    try:
        yield
    except BrokenProcessPool as error:
        raise killed from error
    except BaseException:
        for process in multiprocessing.active_children():
            process.terminate()  # What is under way can take seconds, and nobody wants it any more.
        raise
    finally:
        for one in pools:
            one.shutdown(wait=False, cancel_futures=True)


@contextmanager
def _at_root() -> Iterator[None]:
    """Work in `/` while processes are started: a Python process imports from the folder that it is started in, and the
    tree may have a `random.py`."""
    before = os.open(os.curdir, os.O_PATH)
    os.chdir("/")
    try:
        yield
    finally:
        os.fchdir(before)
        os.close(before)


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Start processes that never get a Ctrl-C, not even while Python starts in them. The waiting process gets it."""
    resource_tracker.ensure_running()  # Beginning it takes the block away.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
