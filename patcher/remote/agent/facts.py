"""Find several facts about this machine at the same time, each with its own time limit.

What cannot be found, or not in time, is reported as missing with the reason: a survey must not hang on a dead mount.
"""

from __future__ import annotations

import os
import pwd
import queue
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from patcher.messages import Message, phrase, why

_DYING = 1.0
"""Seconds that a program may take to be gone after SIGKILL, also where the machine is busy. A guess: one that hangs in
the kernel takes forever."""


class Fact(NamedTuple):
    """A function that finds something out, and the seconds that it may take. It raises UnknownFact or OSError."""

    find: Callable[[], Any]
    seconds: float


class UnknownFact(Exception):  # noqa: N818
    """Something cannot be found out on this machine; `reason` says why."""

    def __init__(self, reason: Message) -> None:
        super().__init__(reason["template"])
        self.reason = reason


class Output(NamedTuple):
    """What a program printed, and how it ended."""

    code: int
    out: str
    err: str


def gather(facts: Mapping[str, Fact]) -> tuple[dict[str, Any], dict[str, Message]]:
    """What was found, by name, and why the rest was not. Never takes longer than the largest limit.

    A fact that hangs, say on a dead mount, is left behind in its thread, which ends with the process. Any other
    exception than UnknownFact and OSError is a bug, and is raised here.
    """
    answers: queue.Queue[Any] = queue.Queue()
    begun = time.monotonic()
    for name, fact in facts.items():
        threading.Thread(target=_find, args=(name, fact.find, answers), daemon=True).start()
    open_until = {name: begun + fact.seconds for name, fact in facts.items()}
    found: dict[str, Any] = {}
    missing: dict[str, Message] = {}
    while open_until:
        try:
            name, value, reason, bug = answers.get(timeout=max(0.0, min(open_until.values()) - time.monotonic()))
        except queue.Empty:
            for late in [name for name, until in open_until.items() if until <= time.monotonic()]:
                missing[late] = phrase("no answer within {seconds} s", seconds=facts[late].seconds)
                del open_until[late]
            continue
        if bug is not None:
            raise bug
        if open_until.pop(name, None) is None:
            continue  # Its time was over before: it has been reported as missing.
        if reason is None:
            found[name] = value
        else:
            missing[name] = reason
    return found, missing


def _find(name: str, find: Callable[[], Any], answers: Any) -> None:
    try:
        answers.put((name, find(), None, None))
    except UnknownFact as untold:
        answers.put((name, None, untold.reason, None))
    except OSError as error:
        answers.put((name, None, why(error), None))
    except Exception as bug:
        answers.put((name, None, None, bug))


def user_name(number: int) -> str:
    """The name of a user; the number itself where this machine has no name for it, as in a container."""
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def run(command: list[str], seconds: float, variables: Mapping[str, str] | None = None) -> Output:
    """Run a program that only reads, with `variables` added to the environment, and in English (`LC_ALL=C`).

    Raises UnknownFact where it is not there or does not end within `seconds`.
    """
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(os.environ, LC_ALL="C", **(variables or {})),
            start_new_session=True,
        )
    except OSError as error:
        raise UnknownFact(phrase("{program}: {reason}", program=command[0], reason=why(error))) from error
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        _end(process)
        reason = phrase("{program} gave no answer within {seconds} s", program=command[0], seconds=seconds)
        raise UnknownFact(reason) from None
    return Output(process.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))


_RSYNC: dict[str, str] = {}
"""By the program's path, what has been told already."""


def rsync_version(seconds: float) -> str:
    """The version of this machine's rsync, which is asked once. Raises UnknownFact as `version_of`."""
    path = shutil.which("rsync") or ""
    if path not in _RSYNC:
        _RSYNC[path] = version_of("rsync", "--version", r"version v?(\d[\w.]*)", seconds)
    return _RSYNC[path]


def version_of(program: str, option: str, pattern: str, seconds: float) -> str:
    """The version that a program tells, by the first group of `pattern`. Raises UnknownFact."""
    if shutil.which(program) is None:
        raise UnknownFact(phrase("there is no {program}", program=program))
    output = run([program, option], seconds)
    found = re.search(pattern, output.out)
    if output.code or found is None:
        raise UnknownFact(
            phrase("{program} does not run: {message}", program=program, message=(output.err or output.out).strip())
        )
    return found[1]


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a program and what it has started. One that hangs in the kernel cannot be killed, and is left alone."""
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
    try:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=_DYING)
    except (OSError, subprocess.TimeoutExpired):
        pass
