"""Where a process stood, from what faulthandler wrote."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

_HEAD = re.compile(r"(?:(?P<current>Current thread)|Thread|Stack) (?:0x[0-9a-f]+ )?(?:\[(?P<name>[^\]]*)\] )?\(?")
_FRAME = re.compile(r'^\s*File "(?P<path>[^"]*)", line (?P<line>\d+) in (?P<function>.*)$')


class Thread(NamedTuple):
    """A thread's stack: path, line and function of each frame, innermost first."""

    name: str
    current: bool
    """Whether it is the one that crashed, or that was asked."""
    frames: list[tuple[str, str, str]]


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


def threads(text: str) -> list[Thread]:
    """The threads of a dump in its order: the main thread comes last."""
    found: list[Thread] = []
    for line in text.splitlines():
        head = _HEAD.match(line)
        if head is not None:
            found.append(Thread(head["name"] or "", bool(head["current"]), []))
        frame = _FRAME.match(line)
        if frame is not None and found:
            found[-1].frames.append((frame["path"], frame["line"], frame["function"]))
    return found


def _frames(text: str) -> list[tuple[str, str, str]]:
    """The frames of the thread that crashed, else of the main thread; innermost first."""
    found = threads(text)
    crashed = next((thread.frames for thread in found if thread.current and thread.frames), None)
    return crashed or (found[-1].frames if found else [])


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
