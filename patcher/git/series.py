"""A series of commits, made as git objects alone: no branch moves, and no index or file of the work tree changes.

`store` writes the files as blobs, `series` makes the commits. Files are stored as `git add` would store them: line
ends, `$Id$` and encodings are converted by the attributes and settings, and the user's own content filters run. A
filter that only the checkout's configuration defines is not run, and a file that needs it is refused. Hooks do not run:
a hook that reformats a patched file would leave it with another digest than the ledger has.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from patcher.errors import TreeError
from patcher.git.checkout import Checkout, listed, names
from patcher.git.settings import filters, parse
from patcher.i18n import phrase
from patcher.tree import Tree
from patcher.worktree import files

if TYPE_CHECKING:
    from patcher.git.running import Git

REMOVED = ("0", "")
"""Stands for the mode and blob of a file that a commit removes."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit to make."""

    message: str
    files: Mapping[str, bytes | None]
    """The new bytes of each file that changes, by its path below the tree's root; None for a file that is removed."""


@dataclass(frozen=True, slots=True)
class StoredCommit:
    """A commit to make whose files are git objects already."""

    message: str
    blobs: Mapping[str, tuple[str, str]]
    """Mode and blob hash of each file, by its path below the checkout's top; REMOVED for a file that is removed."""


@dataclass(frozen=True, slots=True)
class Series:
    """Commits that no branch points to yet."""

    start: str
    """The hash of the commit that they are made on."""
    commits: tuple[str, ...]
    """Their hashes, oldest first. Empty if nothing differs from `start`."""
    blobs: Mapping[str, tuple[str, str]]
    """Mode and blob hash of each file after the last commit, as in `StoredCommit`."""


def store(checkout: Checkout, commits: Sequence[Commit]) -> tuple[StoredCommit, ...]:
    """Write the files of the commits as git objects, the way `git add` would.

    Raises:
        TreeError: git fails, or a file needs a content filter that only the checkout's configuration defines.
    """
    places = {path: below_top(checkout, path) for commit in commits for path in commit.files}
    _refuse_filters(checkout, places.values())
    stored = []
    with _scratch() as (folder, env):
        checkout.git.run("read-tree", "HEAD", env=env)
        for place in places.values():
            _copy_attributes(checkout.head.top, folder, place)
        for commit in commits:
            for path, content in commit.files.items():
                if content is not None:
                    _write(folder / places[path], content, checkout.head.top / places[path])
            wanted = [places[path] for path, content in commit.files.items() if content is not None]
            checkout.git.run("update-index", "--add", "-z", "--stdin", given=listed(wanted), env=env)
            gone = {places[path]: REMOVED for path, content in commit.files.items() if content is None}
            stored.append(StoredCommit(commit.message, _blobs(checkout, wanted, env) | gone))
    return tuple(stored)


def index_line(path: str, entry: tuple[str, str], like: str) -> str:
    """A file's line for `git update-index --index-info`.

    `entry` is its mode and blob hash, or REMOVED. `like` is any object hash of the repository: for a removed file git
    wants a hash of zeros, which has 40 digits in a SHA-1 repository and 64 in a SHA-256 one.
    """
    mode, blob = entry
    return f"{mode} {blob or '0' * len(like)}\t{path}"


def series(checkout: Checkout, commits: Sequence[StoredCommit]) -> Series:
    """Make the commits on top of HEAD. One that changes nothing is left out.

    Raises:
        TreeError: git fails, for example because it has no name and e-mail address for the author.
    """
    start = checkout.git.word("rev-parse", "--verify", "HEAD^{commit}")
    with _scratch() as (_, env):
        lines = (
            (commit.message, [index_line(path, entry, start) for path, entry in commit.blobs.items()])
            for commit in commits
        )
        made = make_commits(checkout.git, start, lines, env, sign=_user_signs(checkout))
    return Series(start, made, {path: entry for commit in commits for path, entry in commit.blobs.items()})


def make_commits(
    git: Git, start: str, commits: Iterable[tuple[str, list[str]]], env: Mapping[str, str], *, sign: bool
) -> tuple[str, ...]:
    """Make commits on top of the commit `start`, and return their hashes. One that changes nothing is left out.

    Each commit is a message and lines for `git update-index --index-info`. They are taken one by one: the lines of the
    second are asked for when the index holds the first. `env` names that index with GIT_INDEX_FILE.

    Raises:
        TreeError: git fails.
    """
    parent, before = start, git.word("rev-parse", "--verify", f"{start}^{{tree}}")
    made = []
    git.run("read-tree", start, env=env)
    for text, lines in commits:
        git.run("update-index", "--add", "-z", "--index-info", given=listed(lines), env=env)
        # In a partial clone, objects of files that do not change may be missing here.
        tree = git.word("write-tree", "--missing-ok", env=env)
        if tree != before:
            options = ("-p", parent, *(("-S",) if sign else ()), "-F", "-")
            parent = git.word("commit-tree", tree, *options, given=text.encode("utf-8", "replace"))
            before = tree
            made.append(parent)
    return tuple(made)


def committed(checkout: Checkout, paths: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Mode and blob hash in HEAD of those of `paths`, below the checkout's top, that it has. Raises TreeError."""
    entries = names(checkout.git.run("ls-tree", "-z", "--full-tree", "HEAD", "--", *paths)) if paths else []
    return {place: (words[0], words[2]) for place, words in map(_entry, entries)}


def require_stored(checkout: Checkout, blobs: Sequence[str]) -> None:
    """Raise TreeError unless git still has these objects: it deletes unreferenced ones after two weeks."""
    lines = "".join(f"{blob}\n" for blob in blobs).encode()
    if b" missing\n" in checkout.git.run("cat-file", "--batch-check", given=lines):
        raise TreeError(
            phrase("{root}: what an interrupted apply was to commit is gone from git's objects", root=checkout.root),
            advice=phrase("See with git status what is not committed, and commit it with git."),
        )


def below_top(checkout: Checkout, path: str) -> str:
    """The path below the checkout's top of the file that `path`, below the tree's root, means.

    Symlinks are followed: an edit changes the target's entry in git, not the link's.
    """
    return Tree(checkout.root).resolve(path).relative_to(checkout.head.top).as_posix()


def _blobs(checkout: Checkout, paths: Sequence[str], env: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    entries = names(checkout.git.run("ls-files", "--stage", "-z", "--", *paths, env=env)) if paths else []
    return {place: (words[0], words[1]) for place, words in map(_entry, entries)}


def _entry(entry: str) -> tuple[str, list[str]]:
    """The path of a line and the words before it, `100644 <hash> 0` of ls-files or `100644 blob <hash>` of ls-tree."""
    facts, _, place = entry.partition("\t")
    return place, facts.split()


@contextlib.contextmanager
def _scratch() -> Iterator[tuple[Path, dict[str, str]]]:
    """An empty work tree with an index of its own, and the variables that show them to git."""
    with tempfile.TemporaryDirectory(prefix="uky-patch-") as scratch:
        folder = Path(os.path.realpath(scratch)) / "tree"
        folder.mkdir()
        yield folder, {"GIT_WORK_TREE": str(folder), "GIT_INDEX_FILE": str(folder.parent / "index")}


def _write(place: Path, content: bytes, like: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)  # For a new inode: git takes a file of the same size, time and inode for unchanged.
    place.write_bytes(content)
    place.chmod(0o755 if like.exists() and like.stat().st_mode & 0o100 else 0o644)


def _copy_attributes(top: Path, folder: Path, place: str) -> None:
    """Copy the `.gitattributes` that apply to `place`, as they are in the work tree: `git add` reads those too."""
    for inner in Path(place).parents:
        with contextlib.suppress(OSError):
            content = files.read(top / inner / ".gitattributes", files.SETTINGS_BYTES)
            (folder / inner).mkdir(parents=True, exist_ok=True)
            (folder / inner / ".gitattributes").write_bytes(content)


def _refuse_filters(checkout: Checkout, places: Iterable[str]) -> None:
    """Raise TreeError for a file whose content filter is defined by the checkout's configuration and not by the user.

    For example `.gitattributes` has `*.ipynb filter=strip`, and `.git/config` has `[filter "strip"] clean = ...`.
    """
    foreign = filters(checkout.git.settings()) - filters(parse(checkout.git.run("config", "--list", "--null")))
    fields = names(checkout.git.run("check-attr", "-z", "--stdin", "filter", given=listed(places)))
    for place, name in zip(fields[::3], fields[2::3], strict=True):
        if name in foreign:
            raise TreeError(
                phrase("{file}: cannot be committed", file=place),
                cause=phrase(
                    "git stores it through the filter {name}, a program that the checkout's own configuration names; "
                    "such programs are not run",
                    name=name,
                ),
                advice=phrase("Set the filter up for yourself (git config --global), or leave out --commit."),
            )


def _user_signs(checkout: Checkout) -> bool:
    """Whether the user's own configuration signs every commit. The checkout's is not asked: it could name a program."""
    return checkout.git.word("config", "--type=bool", "--default=false", "--get", "commit.gpgSign") == "true"
