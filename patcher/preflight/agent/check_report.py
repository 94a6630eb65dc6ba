"""How a check program tells its verdicts, while it runs, on a stream that nothing else writes to."""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
import traceback
from types import TracebackType
from typing import IO, Any, Mapping, NoReturn

from patcher.messages import Message, phrase

ARGS: dict[str, Any] = {}
"""What the program was given; filled before it starts."""
STREAM: dict[str, IO[str]] = {}
PYTHON = shlex.quote(sys.executable)
"""The interpreter that trains, for a command that installs something into its environment."""
LONGEST = 300
"""Letters of an exception's words that are shown."""


class StopHere(Exception):  # noqa: N818
    """A check has failed, and what follows in this program needs it."""


class Check:
    """One check: `with Check("torch") as check: …; check.ok(…)`. An exception inside fails, with its last words."""

    def __init__(self, name: str, *, needed: bool = True, fix: Message | None = None) -> None:
        """Where the check is `needed`, the program ends with its failure. `fix` answers an exception."""
        self.name = name
        self._needed = needed
        self._fix = fix
        self._reported = False
        self._began = time.monotonic()

    def ok(self, detail: Message, fix: Message | None = None, **values: Any) -> None:
        self._tell("ok", detail, fix, values)

    def warn(self, detail: Message, fix: Message | None = None, **values: Any) -> None:
        self._tell("warn", detail, fix, values)

    def fail(self, detail: Message, fix: Message | None = None, **values: Any) -> NoReturn:
        """Ends the block of this check; the whole program where the check is needed."""
        self._tell("fail", detail, fix, values)
        raise StopHere

    def skip(self, detail: Message) -> None:
        self._tell("skip", detail, None, {})

    def __enter__(self) -> Check:
        say({"begin": self.name})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is None or isinstance(error, StopHere):
            return error is not None and not self._needed
        if self._reported:
            return not self._needed
        self._tell("fail", last_words(error), self._fix, {})
        if self._needed:
            raise StopHere from error
        return True

    def _tell(self, status: str, detail: Message, fix: Message | None, values: Mapping[str, Any]) -> None:
        self._reported = True
        seconds = time.monotonic() - self._began
        say({"check": self.name, "status": status, "detail": detail, "fix": fix, "seconds": seconds, "values": values})


def say(message: Mapping[str, Any]) -> None:
    """Write one message of the stream of verdicts: a line of JSON."""
    STREAM["verdicts"].write(json.dumps(message) + "\n")
    STREAM["verdicts"].flush()


def last_words(error: BaseException) -> Message:
    """An exception's kind, its words, and the innermost line that is not Python's own."""
    text = _one_line(error)
    cause = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    if cause is not error and _one_line(cause) not in text:
        text += f" < {type(cause).__name__}: {_one_line(cause)}"
    error_name = type(error).__name__
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _foreign(frame.filename)]
    if not frames:
        return phrase("{error}: {message}", error=error_name, message=text)
    place = f"{short(frames[-1].filename)}:{frames[-1].lineno}"
    return phrase("{error}: {message} ({place})", error=error_name, message=text, place=place)


def short(path: str) -> str:
    """A file's path, from the tree's root or from the folder of packages on."""
    for folder in (str(ARGS.get("root") or ""), *sys.path):
        if folder and folder != "/" and path.startswith(folder.rstrip("/") + "/"):
            return path[len(folder.rstrip("/")) + 1 :]
    return path


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= LONGEST else text[: LONGEST // 2] + " … " + text[-LONGEST // 2 :]


def _foreign(path: str) -> bool:
    return (
        not path.startswith("<") and os.path.dirname(os.__file__) != os.path.dirname(path).rpartition("/importlib")[0]
    )
