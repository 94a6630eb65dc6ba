"""Read a model's weights into the page cache, in parallel; what is there already is not read again."""

from __future__ import annotations

import ctypes
import mmap
import os
import queue
import threading
import time
from typing import TYPE_CHECKING, Any

from patcher.assets.agent.models import found, weights
from patcher.remote.agent import resources
from patcher.worktree import files

if TYPE_CHECKING:
    from patcher.remote.agent.serving import Request

PIECE = 32 * 2**20
"""Bytes that one thread reads at a time."""
THREADS = 8
_BLOCK = 2**20
_SHARE = 0.8
"""Of the memory that is free, what the cache is filled with."""


def warm(request: Request) -> dict[str, Any]:
    """Warm the model that `bases` lead to, telling the bytes read so far in events.

    `cached` are bytes that were in the cache before, None where the system does not tell it to this user; `skipped`
    are files that do not fit into free memory.
    """
    model = found(request)
    files = weights(model)
    room = _room()
    pieces: list[tuple[str, int, int]] = []
    skipped: list[dict[str, Any]] = []
    total = cached = 0
    unknown = False
    for path, size in files:
        total += size
        there = resident(path, size)
        unknown = unknown or there is None
        cold = _cold(there, size)
        wanted = sum(length for _, length in cold)
        cached += size - wanted if there is not None else 0
        if wanted > room:
            skipped.append({"path": path, "size": size})
            continue
        room -= wanted
        pieces += [(path, at, length) for at, length in cold]
    started = time.monotonic()
    read, failed = _read(request, pieces, sum(length for _, _, length in pieces))
    return {
        "model": model,
        "files": len(files),
        "size": total,
        "cached": None if unknown else cached,
        "read": read,
        "seconds": time.monotonic() - started,
        "skipped": skipped,
        "failed": failed,
    }


def resident(path: str, size: int) -> bytes | None:
    """A byte for each page of a file: odd where it is in the page cache. None where the system does not tell.

    Linux says that every page is there to a user who neither owns the file nor may write to it.
    """
    if size == 0:
        return b""
    try:
        if os.stat(path).st_uid != os.geteuid() and not os.access(path, os.W_OK):
            return None
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
        libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
        handle = files.open_regular(path, follow=True)
    except (OSError, AttributeError):
        return None
    try:
        address = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, handle, 0)
        if address in (None, ctypes.c_void_p(-1).value):
            return None
        pages = ctypes.create_string_buffer(-(-size // mmap.PAGESIZE))
        answer = libc.mincore(address, size, pages)
        libc.munmap(address, size)
        return pages.raw if answer == 0 else None
    finally:
        os.close(handle)


def _cold(there: bytes | None, size: int) -> list[tuple[int, int]]:
    """The pieces, by offset and length, of which some page is not in the cache."""
    found = []
    for at in range(0, size, PIECE):
        length = min(PIECE, size - at)
        first, last = at // mmap.PAGESIZE, -(-(at + length) // mmap.PAGESIZE)
        if there is None or any(not page & 1 for page in there[first:last]):
            found.append((at, length))
    return found


def _read(request: Request, pieces: list[tuple[str, int, int]], total: int) -> tuple[int, list[str]]:
    """Read all pieces; gives the bytes read, and the files that could not be."""
    waiting: queue.SimpleQueue[tuple[str, int, int]] = queue.SimpleQueue()
    for piece in pieces:
        waiting.put(piece)
    done: queue.SimpleQueue[int] = queue.SimpleQueue()
    failed: set[str] = set()
    ended = threading.Event()
    workers = [
        threading.Thread(target=_worker, args=(waiting, done, failed, ended), daemon=True)
        for _ in range(min(THREADS, len(pieces)))
    ]
    for worker in workers:
        worker.start()
    read, told = 0, time.monotonic()
    while any(worker.is_alive() for worker in workers) or not done.empty():
        try:
            read += done.get(timeout=0.1)
        except queue.Empty:
            pass
        if time.monotonic() - told >= 0.5:
            told = time.monotonic()
            request.emit(read=read, total=total)
            if request.gone():
                ended.set()
    return read, sorted(failed)


def _worker(
    waiting: queue.SimpleQueue[tuple[str, int, int]],
    done: queue.SimpleQueue[int],
    failed: set[str],
    ended: threading.Event,
) -> None:
    block = bytearray(_BLOCK)
    while not ended.is_set():
        try:
            path, at, length = waiting.get_nowait()
        except queue.Empty:
            return
        read = 0
        try:
            handle = files.open_regular(path, follow=True)
            try:
                while read < length and not ended.is_set():
                    got = os.preadv(handle, [memoryview(block)[: min(_BLOCK, length - read)]], at + read)
                    if got == 0:
                        break
                    read += got
            finally:
                os.close(handle)
        except OSError:
            failed.add(path)
        done.put(read)


def _room() -> float:
    """Bytes that may be filled; without end where the system does not tell."""
    free = resources.available()
    return float("inf") if free is None else free * _SHARE
