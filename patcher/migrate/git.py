"""What git says of a tree: its files, what it ignores, and where it stands."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from patcher.errors import TreeError
from patcher.git.checkout import names
from patcher.git.head import repository
from patcher.git.running import Git, refuse_pipes
from patcher.i18n import phrase

_STATE = ("--porcelain=v2", "--branch", "-z", "--no-renames", "--ignored=traditional", "--ignore-submodules=all")


@dataclass(frozen=True, slots=True)
class State:
    """Where a tree stands. `ignored` are paths below the root; folders end in a slash."""

    ignored: tuple[str, ...]
    commit: str | None
    dirty: bool


class Asked:
    """Questions to git that are answered side by side."""

    def __init__(self, root: Path) -> None:
        """Raises TreeError where there is no checkout, or no git."""
        found = repository(root)
        if found is None:
            if not root.is_dir():
                title = phrase("{root}: no such folder", root=root)
                raise TreeError(title, advice="Name the fork with --root.")
            raise TreeError(
                phrase("{root}: not a git checkout", root=root),
                cause="which files belong to the fork, and which are data or results, is known from git alone",
                advice="Make it one: git init, a .gitignore, git add. Nothing needs to be committed.",
            )
        refuse_pipes(found.top, [root.relative_to(found.top).as_posix()])
        self._git = git = Git(found, root)  # Its folder for git is there as long as it is.
        self._listed = git.start("ls-files", "-co", "--exclude-standard", "-z", folder=root)
        self._state = git.start("status", *_STATE, "--", ".", folder=root)
        self._prefix = git.start("rev-parse", "--show-prefix", folder=root)

    def __enter__(self) -> Asked:
        return self

    def __exit__(self, *_: object) -> None:
        for process in (self._listed, self._state, self._prefix):
            process.stop()

    def paths(self) -> tuple[str, ...]:
        """Git's list, each path once; a folder that is a repository of its own may end in a slash. Raises TreeError."""
        return tuple(dict.fromkeys(names(self._listed.end())))

    def state(self) -> State:
        """Raises TreeError."""
        entries = names(self._state.end())
        below = os.fsdecode(self._prefix.end().removesuffix(b"\n"))
        ignored = [entry[2:] for entry in entries if entry.startswith("! ")]
        commits = [entry.removeprefix("# branch.oid ") for entry in entries if entry.startswith("# branch.oid ")]
        return State(
            ignored=tuple(path.removeprefix(below) for path in ignored if path.startswith(below) and path != below),
            commit=commits[0] if commits and commits[0] != "(initial)" else None,
            dirty=any(entry[:2] in ("1 ", "2 ", "u ", "? ") for entry in entries),
        )
