"""The git checkout that a tree lies in, and whose changes are in it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Iterable, Sequence
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
    from patcher.tree import Tree
    from patcher.tree.source import Source
    from patcher.worktree.ledger import Ledger

_HIDING = "hsS"
"""How `git ls-files -v` marks files whose changes git is asked not to look at (assume-unchanged, skip-worktree)."""


class Checkout:
    """A git checkout. Git itself is asked only by the methods; paths are below the tree's root."""

    def __init__(self, root: Path, head: Head, repository: Repository) -> None:
        self.root, self.head, self.repository = root, head, repository
        self._git: Git | None = None

    @property
    def git(self) -> Git:
        """Git, started in the checkout's top folder."""
        if self._git is None:
            from patcher.git.running import Git

            self._git = Git(self.repository, self.root)
        return self._git

    @property
    def prefix(self) -> str:
        """What stands before a path below the root to make it one below the top: `""` or `forks/verl/`."""
        inner = self.root.relative_to(self.head.top)
        return "" if inner == Path() else f"{inner.as_posix()}/"

    def changed_files(self, paths: Iterable[str] = ()) -> tuple[str, ...]:
        """Files with uncommitted changes, untracked ones included; of `paths` alone if any are given.

        A file of `paths` counts also where git is asked not to look at its changes.

        Raises:
            TreeError: git refuses.
        """
        from patcher.git.running import refuse_pipes

        wanted = [self.prefix + path for path in paths]
        refuse_pipes(self.head.top, wanted or [self.prefix])
        hidden = self._hidden(wanted) if wanted else []
        if not hidden:
            return self._changed(wanted or [self.prefix or "."])
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
        # What the index has deleted and the folder still has comes twice, as `D  file` and `?? file`.
        return tuple(sorted({entry[3:].removeprefix(self.prefix) for entry in names(listing)}))

    def _hidden(self, places: Sequence[str]) -> list[str]:
        listing = names(self.git.run("ls-files", "-v", "-z", "--", *places))
        return [entry[2:] for entry in listing if entry[0] in _HIDING]

    def foreign_changes(
        self, paths: Sequence[str], ledger: Ledger, read: Callable[[str], Source | None]
    ) -> tuple[str, ...]:
        """The files among `paths` with uncommitted changes that are not this tool's.

        A file is this tool's work when it is, to the byte, what the ledger says was written or what it was before.

        Raises:
            TreeError: git refuses, or a file cannot be read.
        """
        foreign = []
        for path in self.changed_files(paths) if paths else ():
            entry = ledger.files.get(path)
            if entry is None or sha256_of(read(path)) not in (entry.patched, entry.original):
                foreign.append(path)
        return tuple(foreign)

    def ignored(self, paths: Iterable[str]) -> frozenset[str]:
        """Those of `paths` that git ignores, whether they are there or not; a folder is written `name/`.

        Raises:
            TreeError: git refuses.
        """
        before = f"./{self.prefix}"  # So that `:top` is a name.
        given = listed(before + path for path in paths)
        env = {"GIT_LITERAL_PATHSPECS": "0"}  # This command refuses it, and takes paths as they are.
        out = self.git.start("check-ignore", "-z", "--stdin", given=given, env=env).end(fine=(0, 1))
        return frozenset(path.removeprefix(before) for path in names(out))

    def remotes(self) -> dict[str, str]:
        """The address of each remote, as the checkout's own configuration has it. Raises TreeError as git does."""
        from patcher.git.settings import remotes

        return remotes(self.git.settings())


def checkout(root: Path) -> Checkout | None:
    """The git checkout that the tree lies in; None when it lies in none."""
    found, where = head(root), repository(root)
    return None if found is None or where is None else Checkout(root, found, where)


def refuse_foreign_changes(tree: Tree, ledger: Ledger, paths: Collection[str]) -> None:
    """Raise TreeError where a file that would change has uncommitted changes that are not the ledger's."""
    place = checkout(tree.root)
    foreign = place.foreign_changes(sorted(paths), ledger, tree.read) if place is not None else ()
    if foreign:
        raise TreeError(
            phrase("uncommitted changes in {files}", files=", ".join(foreign)),
            cause=phrase("apply would write into files that somebody is working on; nothing was written"),
            advice=phrase("Commit or stash them, or say --allow-dirty."),
        )


def names(listing: bytes) -> list[str]:
    """The entries that git prints with `-z`."""
    return [os.fsdecode(entry) for entry in listing.split(b"\0") if entry]


def listed(paths: Iterable[str]) -> bytes:
    """Entries as git reads them with `-z`."""
    return b"".join(os.fsencode(path) + b"\0" for path in paths)
