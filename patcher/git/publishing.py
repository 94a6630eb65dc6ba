"""Move the branch to new commits, together with the index and the files on the disk.

The order is: lock the branch, replace the files, write the index, move the branch. If the process dies in between, what
the index or the branch has is on the disk too. So `git status` may show an uncommitted change, but none that would
undo the edits. The lock on the branch is held by a `git update-ref --stdin` that waits for input; it ends with us.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from patcher.errors import TreeError
from patcher.git.checkout import Checkout, listed, names
from patcher.git.series import REMOVED, index_line
from patcher.git.under_way import under_way
from patcher.i18n import Phrase, phrase
from patcher.tree.errors import tree_error
from patcher.worktree import files

if TYPE_CHECKING:
    from patcher.git.process import Process
    from patcher.git.series import Series

_PATIENCE = 2.0
"""Seconds to wait for `index.lock`. A guess: a git that a killed run has left behind ends within that."""


class Publication:
    """The branch, locked from `__enter__` until `finish` or `take_back`."""

    def __init__(self, checkout: Checkout, series: Series) -> None:
        self._checkout, self._series = checkout, series
        self._branch: Process | None = None
        self._before: list[str] = []

    def __enter__(self) -> Publication:
        """Lock the branch. Raises TreeError if it is locked, or no longer at the commit that the series starts from."""
        if not self._series.commits:
            return self
        self._before = self._entries()
        self._branch = self._checkout.git.start("update-ref", "-m", "uky-patch apply", "--stdin")
        try:
            self._branch.converse("start", "start: ok")
            change = f"update HEAD {self._series.commits[-1]} {self._series.start}"
            self._branch.converse(f"{change}\nprepare", "prepare: ok")
        except BaseException:
            self._branch.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._branch is not None:
            self._branch.stop()

    def finish(self) -> None:
        """Write the index and move the branch. Raises TreeError if git fails."""
        if self._branch is None:
            return
        self._stage([index_line(path, entry, self._series.start) for path, entry in self._series.blobs.items()])
        with contextlib.suppress(TreeError):  # Only so that the next `git status` need not read the files.
            there = [path for path, entry in self._series.blobs.items() if entry != REMOVED]
            self._checkout.git.run("add", "--refresh", "--", *there)
        self._branch.converse("commit", "commit: ok")

    def is_published(self) -> bool:
        """Whether the branch is at the last of the commits. Raises TreeError if git fails."""
        commits = self._series.commits
        return bool(commits) and self._checkout.git.word("rev-parse", "HEAD") == commits[-1]

    def take_back(self) -> None:
        """Unlock the branch, and restore the index. Raises TreeError if git fails."""
        if self._branch is None:
            return
        self._branch.stop()
        if self._entries() != self._before:
            had = {entry.partition("\t")[2] for entry in self._before}
            new = [path for path in self._series.blobs if path not in had]
            self._stage([*self._before, *(index_line(path, REMOVED, self._series.start) for path in new)])

    def _entries(self) -> list[str]:
        return names(self._checkout.git.run("ls-files", "--stage", "-z", "--", *self._series.blobs))

    def _stage(self, entries: list[str]) -> None:
        """Write these lines into the index. A file that is marked assume-unchanged or skip-worktree keeps its mark."""
        git = self._checkout.git
        marks = [(entry[2:], entry[0]) for entry in names(git.run("ls-files", "-v", "-z", "--", *self._series.blobs))]
        git.run("update-index", "--add", "-z", "--index-info", given=listed(entries))
        for flag, letters in (("--assume-unchanged", "hs"), ("--skip-worktree", "sS")):
            if marked := [path for path, mark in marks if mark in letters]:
                git.run("update-index", flag, "-z", "--stdin", given=listed(marked))


def require_ready(checkout: Checkout) -> None:
    """Check that a commit can be made here, before anything is written.

    Raises:
        TreeError: there is no commit yet; a merge or rebase is under way; the index is locked; the repository cannot be
            written to, has a symlink that git would write through, or belongs to another checkout.
    """
    folder, head = checkout.repository.folder, checkout.head
    _require_own(checkout)
    _require_no_links(checkout)
    if checkout.git.start("rev-parse", "--quiet", "--verify", "HEAD^{commit}").outcome()[0]:
        raise _refused(
            checkout,
            phrase("the branch {branch} has no commit yet", branch=head.branch or "HEAD"),
            phrase("Commit the fork first, or leave out --commit."),
        )
    if (going := under_way(checkout.root)) is not None:
        raise _refused(
            checkout,
            phrase("a merge, a rebase or the like is under way: there is {path}", path=going.note),
            phrase("End it with git, or leave out --commit."),
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise _refused(
            checkout,
            phrase("this user may not write to {path}", path=folder),
            phrase("Run as its owner, or leave out --commit."),
        )
    _await_index(checkout)


def _await_index(checkout: Checkout) -> None:
    lock = checkout.repository.folder / "index.lock"
    deadline = time.monotonic() + _PATIENCE
    while os.path.lexists(lock):
        if time.monotonic() > deadline:
            raise _refused(
                checkout,
                phrase("the index is locked: there is {path}", path=lock),
                phrase("Wait until the other git has ended. If none runs, remove that file."),
            )
        time.sleep(0.05)


def _require_own(checkout: Checkout) -> None:
    """Raise TreeError if `.git` is a file that names a repository which does not name this checkout in turn.

    Such a file (`gitdir: ../other/.git`) may name any repository. The one of a worktree or a submodule names its
    checkout: in its file `gitdir`, or in the setting core.worktree.
    """
    top, folder = checkout.repository.top, checkout.repository.folder
    if (top / ".git").is_dir() and not (top / ".git").is_symlink():
        return
    named = [dict(checkout.git.settings()).get("core.worktree", "")]
    with contextlib.suppress(OSError, ValueError):
        back = files.read_text(folder / "gitdir", files.SETTINGS_BYTES).strip()
        named.append(str(Path(back).parent))
    if not any(name and os.path.realpath(folder / name) == os.path.realpath(top) for name in named):
        raise _refused(
            checkout,
            phrase("{path} is the repository of another checkout, or does not say whose it is", path=folder),
            phrase("If it is this one's: git config core.worktree {top}", top=top),
        )


def _require_no_links(checkout: Checkout) -> None:
    """Raise TreeError for a symlink that git would write through, such as `.git/logs/HEAD -> ~/.bashrc`."""
    folder, common, branch = checkout.repository.folder, checkout.repository.common, checkout.head.branch
    written = [folder / "index", folder / "HEAD", folder / "logs/HEAD", common / "objects/info"]
    if branch is not None:
        written += [common / f"refs/heads/{branch}", common / f"logs/refs/heads/{branch}"]
    try:
        written += [Path(entry.path) for entry in os.scandir(common / "objects") if entry.is_symlink()]
    except OSError as error:
        raise tree_error(error, phrase("{path}: cannot be read", path=common / "objects")) from error
    for place in written:
        base = folder if folder in place.parents else common
        for part in (place, *(above for above in place.parents if base in above.parents)):
            if part.is_symlink():
                raise _refused(
                    checkout,
                    phrase("{path} is a symlink, and git would write through it", path=part),
                    phrase("Replace it by what it points to, or leave out --commit."),
                )


def _refused(checkout: Checkout, cause: Phrase, advice: Phrase) -> TreeError:
    title = phrase("{root}: nothing can be committed here, so nothing was written", root=checkout.head.top)
    return TreeError(title, cause=cause, advice=advice)
