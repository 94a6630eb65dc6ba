"""A series of commits, one for each step of a change, made of objects alone: no branch, no index and no file changes.

What is stored is what git itself would store: line ends, `$Id$` and encodings are converted as attributes and settings
say, and the content filters that the user has set up run. A filter that only the tree's own configuration defines does
not run, so a file that needs one is refused. Hooks do not run: one that reformats a patched file would part it from
the ledger.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from patcher.errors import TreeError
from patcher.git.checkout import Checkout, listed, names
from patcher.git.settings import filters, parse
from patcher.i18n import phrase
from patcher.tree import Tree
from patcher.worktree import files

REMOVED = ("0", "")
"""Stands for the mode and blob of a file that a step removes."""


@dataclass(frozen=True, slots=True)
class Step:
    """One commit: its message, and the bytes that its files have from it on; None of one that it removes."""

    message: str
    files: Mapping[str, bytes | None]


@dataclass(frozen=True, slots=True)
class Stored:
    """A step whose files are among git's objects: mode and name of the blob, by path below the checkout's top.

    Of a file that it removes, REMOVED.
    """

    message: str
    blobs: Mapping[str, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Series:
    """Commits that nothing names yet. Empty where the steps change nothing of what `start` holds."""

    start: str
    commits: tuple[str, ...]
    blobs: Mapping[str, tuple[str, str]]
    """What the last commit has of each file."""


def store(checkout: Checkout, steps: Sequence[Step]) -> tuple[Stored, ...]:
    """Put the steps' files among git's objects, as git itself would store them.

    Raises:
        TreeError: git refuses, or a file needs a program of the tree's to be stored.
    """
    places = {path: below_top(checkout, path) for step in steps for path in step.files}
    _refuse_filters(checkout, places.values())
    stored = []
    with _scratch() as (folder, env):
        checkout.git.run("read-tree", "HEAD", env=env)
        for place in places.values():
            _copy_attributes(checkout.head.top, folder, place)
        for step in steps:
            for path, content in step.files.items():
                if content is not None:
                    _write(folder / places[path], content, checkout.head.top / places[path])
            wanted = [places[path] for path, content in step.files.items() if content is not None]
            checkout.git.run("update-index", "--add", "-z", "--stdin", given=listed(wanted), env=env)
            gone = {places[path]: REMOVED for path, content in step.files.items() if content is None}
            stored.append(Stored(step.message, _blobs(checkout, wanted, env) | gone))
    return tuple(stored)


def index_line(path: str, entry: tuple[str, str], like: str) -> str:
    """A file's line for `git update-index --index-info`; `like` is any name of an object of the repository."""
    mode, blob = entry
    return f"{mode} {blob or '0' * len(like)}\t{path}"


def series(checkout: Checkout, steps: Sequence[Stored]) -> Series:
    """Make the commits on top of HEAD. A step that changes nothing makes none.

    Raises:
        TreeError: git refuses; it may not know in whose name to commit.
    """
    git, commits = checkout.git, []
    blobs: dict[str, tuple[str, str]] = {}
    sign = ("-S",) if _user_signs(checkout) else ()
    with _scratch() as (_, env):
        start = _word(git.run("rev-parse", "--verify", "HEAD^{commit}"))
        parent, before = start, _word(git.run("rev-parse", "--verify", "HEAD^{tree}"))
        git.run("read-tree", start, env=env)
        for step in steps:
            lines = [index_line(path, entry, start) for path, entry in step.blobs.items()]
            git.run("update-index", "--add", "-z", "--index-info", given=listed(lines), env=env)
            tree = _word(git.run("write-tree", "--missing-ok", env=env))
            blobs.update(step.blobs)
            if tree != before:
                message = step.message.encode("utf-8", "replace")
                parent = _word(git.run("commit-tree", tree, "-p", parent, *sign, "-F", "-", given=message))
                before = tree
                commits.append(parent)
    return Series(start, tuple(commits), blobs)


def committed(checkout: Checkout, paths: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Mode and blob of those of `paths`, below the checkout's top, that HEAD holds. Raises TreeError as git does."""
    entries = names(checkout.git.run("ls-tree", "-z", "--full-tree", "HEAD", "--", *paths)) if paths else []
    return {place: (words[0], words[2]) for place, words in map(_entry, entries)}


def require_stored(checkout: Checkout, blobs: Sequence[str]) -> None:
    """Raise TreeError unless git has these objects: those that nothing names it throws away after two weeks."""
    lines = "".join(f"{blob}\n" for blob in blobs).encode()
    if b" missing\n" in checkout.git.run("cat-file", "--batch-check", given=lines):
        raise TreeError(
            phrase("{root}: what an interrupted apply was to commit is gone from git's objects", root=checkout.root),
            advice=phrase("See with git status what is not committed, and commit it with git."),
        )


def below_top(checkout: Checkout, path: str) -> str:
    """The file's path below the checkout's top. A symlink's own entry does not change, its target's does."""
    return Tree(checkout.root).resolve(path).relative_to(checkout.head.top).as_posix()


def _blobs(checkout: Checkout, paths: Sequence[str], env: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    entries = names(checkout.git.run("ls-files", "--stage", "-z", "--", *paths, env=env)) if paths else []
    return {place: (words[0], words[1]) for place, words in map(_entry, entries)}


def _entry(entry: str) -> tuple[str, list[str]]:
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
    place.unlink(missing_ok=True)  # Git tells a new file from an old one of the same size by its inode.
    place.write_bytes(content)
    place.chmod(0o755 if like.exists() and like.stat().st_mode & 0o100 else 0o644)


def _copy_attributes(top: Path, folder: Path, place: str) -> None:
    """Attributes count as they are in the work tree, as they do for `git add`."""
    for inner in Path(place).parents:
        with contextlib.suppress(OSError):
            content = files.read(top / inner / ".gitattributes", files.SETTINGS_BYTES)
            (folder / inner).mkdir(parents=True, exist_ok=True)
            (folder / inner / ".gitattributes").write_bytes(content)


def _refuse_filters(checkout: Checkout, places: Iterable[str]) -> None:
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
    """Whether the user's own configuration has every commit signed; the tree's is not asked."""
    return _word(checkout.git.run("config", "--type=bool", "--default=false", "--get", "commit.gpgSign")) == "true"


def _word(out: bytes) -> str:
    return out.decode("ascii", "replace").strip()
