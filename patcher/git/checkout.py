"""The git checkout that a tree lies in: uncommitted changes, and which of them are not this tool's."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from patcher.errors import TreeError
from patcher.git.head import Head, Repository, head, repository
from patcher.i18n import phrase
from patcher.tree.source import sha256_of
from patcher.worktree import files

if TYPE_CHECKING:
    from collections.abc import Callable

    from patcher.git.running import Git
    from patcher.tree.source import Source
    from patcher.worktree.ledger import Ledger

_HIDING = "hsS"
"""Letters of `git ls-files -v` for files whose changes git skips: `h` assume-unchanged, `S` skip-worktree, `s` both."""


class Checkout:
    """A git checkout. The methods start git; to make the object reads a few files. Paths are below the tree's root."""

    def __init__(self, root: Path, head: Head, repository: Repository) -> None:
        self.root, self.head, self.repository = root, head, repository
        self._git: Git | None = None

    @property
    def git(self) -> Git:
        """Git for this checkout."""
        if self._git is None:
            from patcher.git.running import Git

            self._git = Git(self.repository, self.root)
        return self._git

    @property
    def prefix(self) -> str:
        """What turns a path below the tree's root into one below the checkout's top: `""` or `forks/verl/`."""
        inner = self.root.relative_to(self.head.top)
        return "" if inner == Path() else f"{inner.as_posix()}/"

    def changed_files(self, paths: Iterable[str] = ()) -> tuple[str, ...]:
        """Files with uncommitted changes, untracked ones included; only those among `paths` if any are given.

        Files of `paths` are also compared if they are marked in the index as assume-unchanged or skip-worktree.

        Raises:
            TreeError: git fails.
        """
        from patcher.git.running import refuse_pipes

        wanted = [self.prefix + path for path in paths]
        refuse_pipes(self.head.top, wanted or [self.prefix])
        hidden = self._hidden(wanted) if wanted else []
        if not hidden:
            return self._changed(wanted or [self.prefix or "."])
        # On a copy of the index without these marks, as the real one is not to change.
        with tempfile.TemporaryDirectory(prefix="uky-patch-") as scratch:
            index = Path(scratch) / "index"
            try:
                index.write_bytes(files.read(self.repository.folder / "index", files.DATA_BYTES))
            except OSError as error:
                raise TreeError(phrase("{path}: cannot be read", path=self.repository.folder / "index")) from error
            env = {"GIT_INDEX_FILE": str(index)}
            for flag in ("--no-assume-unchanged", "--no-skip-worktree"):
                self.git.run("update-index", flag, "-z", "--stdin", given=listed(hidden), env=env)
            return self._changed(wanted, env)

    def _changed(self, places: Sequence[str], env: dict[str, str] | None = None) -> tuple[str, ...]:
        form = ("--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=all")
        listing = self.git.run("status", *form, "--", *places, env=env)
        # A file that is deleted in the index and still on the disk is listed twice, as `D  file` and `?? file`.
        return tuple(sorted({entry[3:].removeprefix(self.prefix) for entry in names(listing)}))

    def _hidden(self, places: Sequence[str]) -> list[str]:
        listing = names(self.git.run("ls-files", "-v", "-z", "--", *places))
        return [entry[2:] for entry in listing if entry[0] in _HIDING]

    def foreign_changes(
        self, paths: Sequence[str], ledger: Ledger, read: Callable[[str], Source | None]
    ) -> tuple[str, ...]:
        """The files among `paths` with uncommitted changes that this tool has not made.

        A file counts as this tool's if its digest is one that the ledger has for it: before the records, or after.

        Raises:
            TreeError: git fails, or a file cannot be read.
        """
        foreign = []
        for path in self.changed_files(paths) if paths else ():
            entry = ledger.files.get(path)
            if entry is None or sha256_of(read(path)) not in (entry.patched, entry.original):
                foreign.append(path)
        return tuple(foreign)

    def ignored(self, paths: Iterable[str]) -> frozenset[str]:
        """Those of `paths` that git would ignore, whether they exist or not. A folder is written `name/`.

        Raises:
            TreeError: git fails.
        """
        before = f"./{self.prefix}"  # With "./" a file named `:top` is no pathspec magic.
        given = listed(before + path for path in paths)
        env = {"GIT_LITERAL_PATHSPECS": "0"}  # check-ignore fails with it, and takes paths literally anyway.
        out = self.git.start("check-ignore", "-z", "--stdin", given=given, env=env).end(fine=(0, 1))  # 1: none is.
        return frozenset(path.removeprefix(before) for path in names(out))

    def remotes(self) -> dict[str, str]:
        """The URL of each remote by its name, from the checkout's own configuration. Raises TreeError if git fails."""
        from patcher.git.settings import remotes

        return remotes(self.git.settings())


def checkout(root: Path) -> Checkout | None:
    """The git checkout that `root` lies in; None outside of one, and in an installed package."""
    found, where = head(root), repository(root)
    return None if found is None or where is None else Checkout(root, found, where)


def names(listing: bytes) -> list[str]:
    """The entries that git prints with `-z`, each with a NUL at its end."""
    return [os.fsdecode(entry) for entry in listing.split(b"\0") if entry]


def listed(paths: Iterable[str]) -> bytes:
    """Entries as git reads them with `-z`; the inverse of `names`."""
    return b"".join(os.fsencode(path) + b"\0" for path in paths)
