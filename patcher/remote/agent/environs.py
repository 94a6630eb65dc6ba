"""Environment variables that say where things are: of this process, and of a login of this user."""

from __future__ import annotations

import os
import pwd
import threading
from collections.abc import Mapping

from patcher.messages import Message, phrase
from patcher.remote.agent.facts import UnknownFact, run

SECONDS = 1.2
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


def parse_environ(text: str) -> dict[str, str]:
    """Of `env -0`; what the shell's start-up files print before it is not taken for a variable."""
    pairs = (entry.rpartition("\n")[2].partition("=") if "=" in entry else ("", "", "") for entry in text.split("\0"))
    found = {name: value for name, _, value in pairs if name in WANTED}
    if not found:
        raise UnknownFact(phrase("the login shell did not tell its environment"))
    return found


class Login:
    """The variables of a login shell, asked for once, when they first matter. Nothing where they cannot be known."""

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
    """PATHs one after another, without what depends on the folder that one stands in."""
    entries = [part for path in paths for part in path.split(os.pathsep)]
    return os.pathsep.join(part for part in entries if part.startswith("/"))


def both(session: Mapping[str, str], login_shell: Mapping[str, str]) -> dict[str, str]:
    """This process's variables, and those that only a login has."""
    return {**login_shell, **session}
