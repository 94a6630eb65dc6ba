"""Environment variables that say where programs and libraries are: those of this process and of a login shell.

The agent is started by ssh without a terminal, so what the user's `~/.bash_profile` or `~/.zprofile` adds to PATH is
missing here. The login shell is asked for it once.
"""

from __future__ import annotations

import os
import pwd
import threading
from collections.abc import Mapping

from patcher.messages import Message, phrase
from patcher.remote.agent.facts import UnknownFact, run

SECONDS = 1.2
"""Seconds that a login shell may take. A guess: the survey is to end within a few seconds, also on a slow home."""
WANTED = (
    "PATH",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "CONDA_EXE",
    "MAMBA_ROOT_PREFIX",
    "PYENV_ROOT",
    "LD_LIBRARY_PATH",
    "CUDA_HOME",
    "CUDA_VISIBLE_DEVICES",
)
"""No other variable is looked at: they may be secrets."""
_SHELLS = ("bash", "zsh", "sh", "dash", "ksh", "fish")
"""Shells that take `-l -c`. For any other one, such as /usr/sbin/nologin or a menu, /bin/sh is asked instead."""


def own() -> dict[str, str]:
    """The wanted variables of this process."""
    return {name: os.environ[name] for name in WANTED if name in os.environ}


def login() -> dict[str, str]:
    """The wanted variables as a login shell of this user has them. Raises UnknownFact."""
    try:
        shell = pwd.getpwuid(os.getuid()).pw_shell
    except KeyError:
        shell = ""
    shell = shell if os.path.basename(shell) in _SHELLS else "/bin/sh"
    return parse_environ(run([shell, "-l", "-c", "env -0"], SECONDS).out)


def decode_environ(block: bytes, errors: str = "surrogateescape") -> dict[str, str]:
    """All variables of a block `NAME=value\\0NAME=value\\0`, as `env -0` prints it and /proc/PID/environ holds it.

    `errors` says what becomes of bytes that are no UTF-8; by default they survive as they do in `os.environ`.
    """
    pairs = (entry.decode("utf-8", errors).partition("=") for entry in block.split(b"\0") if b"=" in entry)
    return {name: value for name, _, value in pairs}


def parse_environ(text: str) -> dict[str, str]:
    """The wanted variables in what a login shell printed for `env -0`. Raises UnknownFact where there is none.

    Start-up files may print a greeting before it: of `Welcome\\nPATH=/bin` the part after the last newline counts.
    """
    pairs = (entry.rpartition("\n")[2].partition("=") if "=" in entry else ("", "", "") for entry in text.split("\0"))
    found = {name: value for name, _, value in pairs if name in WANTED}
    if not found:
        raise UnknownFact(phrase("the login shell did not tell its environment"))
    return found


class Login:
    """The wanted variables of a login shell; empty where they cannot be known.

    Several facts need them at the same time, each in its own thread. The shell is started by the first that calls.
    """

    def __init__(self) -> None:
        self._asking = threading.Lock()
        self._known: dict[str, str] | None = None
        self.reason: Message | None = None
        """Why they cannot be known."""

    def __call__(self) -> dict[str, str]:
        with self._asking:
            if self._known is None:
                try:
                    self._known = login()
                except UnknownFact as untold:
                    self._known, self.reason = {}, untold.reason
            return self._known


def search(*paths: str) -> str:
    """A PATH of several, without relative entries: in `.:/usr/bin` the `.` would start programs of any folder."""
    entries = [part for path in paths for part in path.split(os.pathsep)]
    return os.pathsep.join(part for part in entries if part.startswith("/"))


def both(session: Mapping[str, str], login_shell: Mapping[str, str]) -> dict[str, str]:
    """Both merged; where both have a variable, this process's value counts."""
    return {**login_shell, **session}
