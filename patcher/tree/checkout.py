"""The git checkout that a tree lies in: whose changes are in it, and committing what was done."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patcher.errors import TreeError
from patcher.language import phrase
from patcher.tree.head import Head, head

if TYPE_CHECKING:
    from collections.abc import Callable

    from patcher.tree.ledger import Ledger
    from patcher.tree.source import Source

_QUIET = {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}


@dataclass(frozen=True, slots=True)
class Checkout:
    """A git checkout. Git itself is asked only by the methods; paths are below the tree's root."""

    root: Path
    head: Head

    def changed_files(self, paths: Iterable[str] = ()) -> tuple[str, ...]:
        """Files with uncommitted changes, untracked ones included; of `paths` alone if any are given."""
        listing = self.git(
            "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", "--", *(tuple(paths) or (".",))
        )
        prefix = self.root.relative_to(self.head.top)
        below = "" if prefix == Path() else f"{prefix.as_posix()}/"
        return tuple(sorted(entry[3:].removeprefix(below) for entry in listing.split("\0") if entry))

    def foreign_changes(
        self, paths: Sequence[str], ledger: Ledger, read: Callable[[str], Source | None]
    ) -> tuple[str, ...]:
        """The files among `paths` with uncommitted changes that are not this tool's.

        A file is this tool's work when it is, to the byte, what the ledger says was written or what it was before.
        """
        foreign = []
        for path in self.changed_files(paths) if paths else ():
            source, entry = read(path), ledger.files.get(path)
            if source is None or entry is None or source.sha256 not in (entry.patched, entry.original):
                foreign.append(path)
        return tuple(foreign)

    def commit(self, paths: Sequence[str], message: str) -> str:
        """Commit these files as they are now, and nothing else that is staged. Hooks and identity count.

        Returns the new commit's full hash.

        Raises:
            TreeError: git refuses; the message is git's own.
        """
        self.git("commit", "--quiet", "--only", f"--message={message}", "--", *paths)
        return self.git("rev-parse", "HEAD").strip()

    def git(self, command: str, *arguments: str, env: Mapping[str, str] | None = None, literal: bool = True) -> str:
        """What a git command prints. With `literal`, paths have no wildcards.

        Raises:
            TreeError: git refuses; the message is git's own.
        """
        git, failures = _library()
        settings = {**(_QUIET if command == "status" else {}), **(env or {})}
        if literal:
            settings["GIT_LITERAL_PATHSPECS"] = "1"
        try:
            process = git.cmd.Git(str(self.root)).execute(
                ["git", command, *arguments],
                env=settings,
                strip_newline_in_stdout=False,
            )
        except failures as error:
            said = str(getattr(error, "stderr", "") or getattr(error, "stdout", "") or error).strip()
            raise TreeError(
                phrase("git {command} failed in {root}", command=command, root=self.root),
                cause=said.removeprefix("stderr: ").strip("'\n "),
                advice="Set right what git names and run the command again.",
            ) from error
        return str(process)


def checkout(root: Path) -> Checkout | None:
    """The git checkout that the tree lies in; None when it lies in none."""
    found = head(root)
    return None if found is None else Checkout(root, found)


def _library() -> tuple[Any, tuple[type[Exception], ...]]:
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
    import git

    if git.Git.GIT_PYTHON_GIT_EXECUTABLE is None or _missing():
        raise TreeError(
            "git is needed and was not found",
            cause="the tree is a git checkout, and its uncommitted changes are looked at before files are changed",
            advice="Install git, or put it on PATH.",
        )
    return git, (git.exc.GitCommandError, git.exc.GitCommandNotFound)


def _missing() -> bool:
    from shutil import which

    return which("git") is None
