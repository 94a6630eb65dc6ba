"""What git says of a tree, asked with nothing of the caller's environment that could point it elsewhere."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from patcher.errors import TreeError
from patcher.language import phrase

_KEPT = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH")

_STATE = ("--porcelain=v2", "--branch", "-z", "--no-renames", "--ignored=traditional")


@dataclass(frozen=True, slots=True)
class State:
    """Where a tree stands. `ignored` are paths below the root; folders end in a slash."""

    ignored: tuple[str, ...]
    commit: str | None
    dirty: bool


class Asked:
    """Questions to git that are answered side by side."""

    def __init__(self, root: Path) -> None:
        """Raises TreeError where there is no git, or no folder."""
        self._root = root
        self._listed = _start(root, "ls-files", "-co", "--exclude-standard", "-z")
        self._state = _start(root, "status", *_STATE, "--", ".")
        self._prefix = _start(root, "rev-parse", "--show-prefix")

    def __enter__(self) -> Asked:
        return self

    def __exit__(self, *_: object) -> None:
        for process in (self._listed, self._state, self._prefix):
            if process.poll() is None:
                process.kill()
            process.communicate()

    def paths(self) -> tuple[str, ...]:
        """Git's list, each path once; a folder that is a repository of its own may end in a slash. Raises TreeError."""
        out = _end(self._root, self._listed)
        return tuple(dict.fromkeys(os.fsdecode(path) for path in out.split(b"\0") if path))

    def state(self) -> State:
        """Raises TreeError."""
        entries = [os.fsdecode(entry) for entry in _end(self._root, self._state).split(b"\0") if entry]
        below = os.fsdecode(_end(self._root, self._prefix).removesuffix(b"\n"))
        ignored = [entry[2:] for entry in entries if entry.startswith("! ")]
        commits = [entry.removeprefix("# branch.oid ") for entry in entries if entry.startswith("# branch.oid ")]
        return State(
            ignored=tuple(path.removeprefix(below) for path in ignored if path.startswith(below) and path != below),
            commit=commits[0] if commits and commits[0] != "(initial)" else None,
            dirty=any(entry[:2] in ("1 ", "2 ", "u ", "? ") for entry in entries),
        )


def _start(root: Path, *arguments: str) -> subprocess.Popen[bytes]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in _KEPT}
    env |= {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        return subprocess.Popen(
            ["git", *arguments],
            cwd=root,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    except FileNotFoundError as error:
        if not root.is_dir():
            raise TreeError(phrase("{root}: no such folder", root=root), advice="Name the fork with --root.") from error
        raise TreeError(
            "git is needed and was not found",
            cause="which files belong to the fork, git says",
            advice="Install git, or put it on PATH.",
        ) from error


def _end(root: Path, process: subprocess.Popen[bytes]) -> bytes:
    out, said = process.communicate()
    if process.returncode == 0:
        return bytes(out)
    message = said.decode("utf-8", "replace").strip()
    if "not a git repository" in message:
        raise TreeError(
            phrase("{root}: not a git checkout", root=root),
            cause="which files belong to the fork, and which are data or results, is known from git alone",
            advice="Make it one: git init, a .gitignore, git add. Nothing needs to be committed.",
        )
    raise TreeError(
        phrase("git fails in {root}", root=root),
        cause=message,
        advice="Set right what git names and run the command again.",
    )
