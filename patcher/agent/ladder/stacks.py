"""Where a process stood, from what faulthandler wrote."""

from __future__ import annotations

import os
import re

_FRAME = re.compile(r'^\s*File "(?P<path>[^"]*)", line (?P<line>\d+) in (?P<function>.*)$')


def place(text: str, root: str) -> str:
    """`vllm/platforms/cuda.py:33 in init`, of the innermost frame, and the nearest caller outside Python's library.

    Empty where `text` holds no stack.
    """
    frames = _frames(text)
    if not frames:
        return ""
    inner = frames[0]
    told = _told(inner, root)
    if _standard(inner[0]):
        caller = next((frame for frame in frames if not _standard(frame[0])), None)
        if caller is not None:
            told += " < " + _told(caller, root)
    return told


def _frames(text: str) -> list[tuple[str, str, str]]:
    """The frames of the thread that crashed, else of the main thread, which comes last; innermost first."""
    threads: list[list[tuple[str, str, str]]] = []
    current = None
    for line in text.splitlines():
        if re.match(r"(Current thread|Thread|Stack) ", line):
            threads.append([])
            if line.startswith("Current"):
                current = threads[-1]
        frame = _FRAME.match(line)
        if frame and threads:
            threads[-1].append((frame["path"], frame["line"], frame["function"]))
    return current or (threads[-1] if threads else [])


def _told(frame: tuple[str, str, str], root: str) -> str:
    path, line, function = frame
    _head, found, tail = path.rpartition("-packages/")
    if found:
        path = tail
    elif path.startswith(root + os.sep):
        path = path[len(root) + 1 :]
    elif _standard(path) and not path.startswith("<"):
        path = os.path.basename(path)
    return f"{path}:{line} in {function}"


def _standard(path: str) -> bool:
    return path.startswith("<frozen ") or (
        re.search(r"/lib/python3\.\d+/", path) is not None and "-packages/" not in path
    )
