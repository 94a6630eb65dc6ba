"""The traceback of a bug goes to a file that only its user can read (mode 600), never into a tree; the last 20 are
kept.

Messages of exceptions hold what was being worked on: paths, versions, lines of a log. So the line that a terminal or
a job's log gets names the kind of the exception and the place alone, and the rest is in the file.
"""

from __future__ import annotations

import os
import stat
from types import TracebackType
from typing import Any

KEPT = 20
"""How many tracebacks are kept; the oldest go first."""
_LONGEST = 200_000
_PREFIX, _SUFFIX = "traceback-", ".txt"


def place_of(error: BaseException) -> tuple[str, str]:
    """The kind of the exception, and where in patcher it came up: `ValueError`, `patcher/session/session.py:120`."""
    place = "?"
    step: TracebackType | None = error.__traceback__
    while step is not None:
        name = step.tb_frame.f_code.co_filename
        if place == "?" or f"{os.sep}patcher{os.sep}" in name:
            short = name[name.rfind(f"{os.sep}patcher{os.sep}") + 1 :] if "patcher" in name else os.path.basename(name)  # noqa: PTH119
            place = f"{short}:{step.tb_lineno}"
        step = step.tb_next
    return type(error).__name__, place


def write(error: BaseException) -> str | None:
    """Write the traceback of `error` to a new file and give its path; None where there is no place for it."""
    text = _text(error).encode("utf-8", "backslashreplace")
    for folder in _folders():
        try:
            return _write(folder, text)
        except Exception:  # noqa: S112  # There is a next folder; a second bug must not hide the first.
            continue
    return None


def _text(error: BaseException) -> str:
    """The traceback, and on what it happened. Arguments are left out, as they may hold a password."""
    import platform
    import traceback

    from patcher import __version__

    try:
        lines = "".join(traceback.format_exception(error))
    except Exception as second:  # A message that cannot be made, or no memory for it.
        lines = f"{type(error).__name__} at {place_of(error)[1]} (its text cannot be made: {type(second).__name__})\n"
    if len(lines) > _LONGEST:
        half = _LONGEST // 2
        lines = f"{lines[:half]}\n…\n{lines[-half:]}"
    made = f"uky-patch {__version__}, Python {platform.python_version()}, {platform.platform()}\n"
    return f"{made}{lines}"


def _folders() -> list[str]:
    """Where it may go, best first: the user's state folder, then (empty) a new folder for temporary files."""
    try:
        from patcher.homes import state_folder

        state = [str(state_folder() / "bugs")]
    except Exception:  # The bug may be in what this imports.
        state = []
    return [folder for folder in [*state, ""] if not _in_a_tree(folder)]


def _in_a_tree(folder: str) -> bool:
    """Whether a folder lies in a fork's checkout: then a traceback there would be a change of the tree."""
    while len(folder) > 1:
        if os.path.lexists(os.path.join(folder, "verl", "__init__.py")):  # noqa: PTH118
            return True
        folder = os.path.dirname(folder)  # noqa: PTH120
    return False


def _write(folder: str, text: bytes) -> str:
    import tempfile
    import time

    if folder:
        os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103
        at = os.lstat(folder)
        if not stat.S_ISDIR(at.st_mode) or at.st_uid != os.geteuid() or at.st_mode & stat.S_IWOTH:
            raise OSError("somebody else's folder")
    else:
        if _in_a_tree(tempfile.gettempdir()):
            raise OSError("in a tree")
        folder = tempfile.mkdtemp(prefix="uky-patch-bug-")
    name = f"{_PREFIX}{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{os.urandom(3).hex()}{_SUFFIX}"
    path = os.path.join(folder, name)  # noqa: PTH118
    flags: Any = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(path, flags, 0o600)
    try:
        with open(fd, "wb") as file:  # noqa: PTH123
            file.write(text)
    except BaseException:
        os.unlink(path)  # noqa: PTH108
        raise
    _forget_oldest(folder)
    return path


def _forget_oldest(folder: str) -> None:
    names = sorted(name for name in os.listdir(folder) if name.startswith(_PREFIX) and name.endswith(_SUFFIX))  # noqa: PTH208
    for name in names[:-KEPT]:
        os.unlink(os.path.join(folder, name))  # noqa: PTH108, PTH118
