"""The environment that a user has after logging in on this machine."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import uuid

SECONDS = 10.0
"""How long the user's login files may take."""
_OURS = ("SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY", "SSH_AUTH_SOCK", "SHLVL", "OLDPWD", "PWD", "_", "TMUX", "TMUX_PANE")
"""What belongs to a connection and not to a job."""


def login() -> tuple[dict[str, str], str]:
    """The variables, and the shell that they come from; empty where it gave none, and the connection's are taken."""
    try:
        shell = pwd.getpwuid(os.getuid()).pw_shell or "/bin/sh"
    except KeyError:  # A user that the system does not know, as in a container.
        shell = "/bin/sh"
    fence = uuid.uuid4().hex
    command = f"printf {fence}; env -0; printf {fence}"
    try:
        asked = subprocess.Popen(
            [shell, "-l", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return connection(), ""
    try:
        said, _ = asked.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        try:
            os.killpg(asked.pid, signal.SIGKILL)
        except OSError:
            pass
        asked.kill()
        asked.wait()
        return connection(), ""
    parts = said.split(fence.encode())
    if len(parts) != 3 or b"PATH=" not in parts[1]:
        return connection(), ""
    pairs = (item.partition(b"=") for item in parts[1].split(b"\0") if b"=" in item)
    return _clean({os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}), shell


def connection() -> dict[str, str]:
    """The variables that this program itself was started with, less the connection's own."""
    return _clean(dict(os.environ))


def with_interpreter(environment: dict[str, str], python: str | None) -> dict[str, str]:
    """The same with the interpreter to train with first in PATH, and its environment named as activating it would."""
    if not python:
        return environment
    folder = os.path.dirname(python)
    found = dict(environment)
    rest = [part for part in found.get("PATH", os.defpath).split(os.pathsep) if part != folder]
    found["PATH"] = os.pathsep.join([folder, *rest])
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "PYTHONHOME"):
        found.pop(name, None)
    above = os.path.dirname(folder)
    if os.path.isfile(os.path.join(above, "pyvenv.cfg")):
        found["VIRTUAL_ENV"] = above
    elif os.path.isdir(os.path.join(above, "conda-meta")):
        found["CONDA_PREFIX"] = above
    return found


def _clean(environment: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name not in _OURS}
