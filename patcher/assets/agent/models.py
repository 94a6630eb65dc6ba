"""The newest model on this machine, and its weights read into the page cache ahead of the run that loads them."""

from __future__ import annotations

import ctypes
import mmap
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any

from patcher.messages import Refusal, phrase
from patcher.remote.agent import resources
from patcher.remote.agent.snapshots import newest_snapshot
from patcher.worktree import files

if TYPE_CHECKING:
    from patcher.remote.agent.serving import Request

PIECE = 32 << 20
"""Bytes that one thread reads as one task: large files are read by several threads at once."""
THREADS = 8
"""A network disk answers several readers faster than one; a local NVMe disk is full with four."""
_BLOCK = 1 << 20
"""Bytes that are read at one call."""
_SHARE = 0.8
"""Of the free memory, what may be filled: pages beyond that would push out what was read first."""
_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf")


def newest(request: Request) -> dict[str, Any]:
    """The newest model in the first of the folders `bases` that is there. Raises Refusal where there is none.

    Answers `base`, `model`: its folder, and `size`: bytes of its weights.
    """
    base, model = _find_model(request)
    return {"base": base, "model": model, "size": sum(size for _, size in _weights(model))}


def warm(request: Request) -> dict[str, Any]:
    """Read that model's weights into the page cache, telling the bytes read so far in events. Raises Refusal.

    What is in the cache already is not read again. `cached` are the bytes that were there before, None where the system
    does not tell it to this user; `skipped` are files that do not fit into free memory.
    """
    model = _find_model(request)[1]
    weights = _weights(model)
    free = resources.available()
    room = float("inf") if free is None else free * _SHARE
    pieces: list[tuple[str, int, int]] = []
    skipped: list[dict[str, Any]] = []
    cached: int | None = 0
    for path, size in weights:
        pages = resident(path, size)
        cold = [(path, at, length) for at, length in _cold_pieces(pages, size)]
        missing = sum(length for _, _, length in cold)
        cached = None if pages is None or cached is None else cached + size - missing
        if missing > room:
            skipped.append({"path": path, "size": size})
        else:
            room -= missing
            pieces += cold
    started = time.monotonic()
    read, failed = _read_pieces(request, pieces)
    return {
        "model": model,
        "files": len(weights),
        "size": sum(size for _, size in weights),
        "cached": cached,
        "read": read,
        "seconds": time.monotonic() - started,
        "skipped": skipped,
        "failed": failed,
    }


def resident(path: str, size: int) -> bytes | None:
    """A byte for each page of a file: odd where the page is in the cache. None where the system does not tell.

    Linux says that every page is there to a user who neither owns the file nor may write to it, so that is not asked.
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


def _find_model(request: Request) -> tuple[str, str]:
    """The folder that is looked in, and the newest model's. Raises Refusal where there is none."""
    bases = [os.path.expanduser(str(base)) for base in request.args["bases"]]
    base = next((base for base in bases if os.path.isdir(base)), None)
    advice = phrase("Name the folder, or set models for this host.")
    if base is None:
        raise Refusal("missing", phrase("{path}: there is no such folder", path=bases[-1]), None, advice)
    try:
        return base, newest_snapshot(base)
    except OSError:
        cause = phrase("no folder with config.json is in it or below it")
        raise Refusal("missing", phrase("{path}: there is no model", path=base), cause, advice) from None


def _weights(model: str) -> list[tuple[str, int]]:
    """The files of weights with their sizes, largest first, linked ones once; all files where none is named so."""
    named: dict[tuple[int, int], tuple[str, int]] = {}
    others: dict[tuple[int, int], tuple[str, int]] = {}
    for name in sorted(os.listdir(model)):
        path = os.path.join(model, name)
        try:
            status = os.stat(path)
        except OSError:
            continue
        if os.path.isfile(path):
            kind = named if name.endswith(_WEIGHTS) else others
            kind[status.st_dev, status.st_ino] = (os.path.realpath(path), status.st_size)
    return sorted((named or others).values(), key=lambda file: -file[1])


def _cold_pieces(pages: bytes | None, size: int) -> list[tuple[int, int]]:
    """The pieces of a file, by offset and length, of which some page is not in the cache."""
    found = []
    for at in range(0, size, PIECE):
        length = min(PIECE, size - at)
        first, last = at // mmap.PAGESIZE, -(-(at + length) // mmap.PAGESIZE)
        if pages is None or any(not page & 1 for page in pages[first:last]):
            found.append((at, length))
    return found


def _read_pieces(request: Request, pieces: list[tuple[str, int, int]]) -> tuple[int, list[str]]:
    """Read all pieces (file, offset, length). Returns the bytes read, and the files that cannot be read."""
    total = sum(length for _, _, length in pieces)
    ended = threading.Event()
    failed: set[str] = set()
    with ThreadPoolExecutor(THREADS) as pool:
        tasks = [pool.submit(_read_piece, piece, failed, ended) for piece in pieces]
        waiting = set(tasks)
        while waiting:
            waiting = wait(waiting, timeout=0.5).not_done
            if waiting:
                request.emit(read=sum(task.result() for task in tasks if task not in waiting), total=total)
                if request.gone():
                    ended.set()
    return sum(task.result() for task in tasks), sorted(failed)


def _read_piece(piece: tuple[str, int, int], failed: set[str], ended: threading.Event) -> int:
    path, at, length = piece
    block = bytearray(_BLOCK)
    read = 0
    try:
        handle = files.open_regular(path, follow=True)
        try:
            while read < length and not ended.is_set():
                count = os.preadv(handle, [memoryview(block)[: min(_BLOCK, length - read)]], at + read)
                if count == 0:
                    break
                read += count
        finally:
            os.close(handle)
    except OSError:
        failed.add(path)
    return read
