"""A new branch with commits of its own, made of git's objects alone: no file of the work tree and no index changes."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from patcher.errors import TreeError, UsageError
from patcher.git.checkout import listed, names
from patcher.i18n import phrase

if TYPE_CHECKING:
    from patcher.git.checkout import Checkout

_NOTHING = "0" * 40


@dataclass(frozen=True, slots=True)
class Commit:
    """A message, and the bytes of files from it on, by path below the tree's root; None takes a file away."""

    message: str
    files: Mapping[str, bytes | None]


def require_new(checkout: Checkout, name: str) -> None:
    """Raises UsageError for a name that no branch can have, or one has already."""
    try:
        checkout.git.run("check-ref-format", "--branch", name)
    except TreeError as error:
        raise UsageError(phrase("{name!r} is no name of a branch", name=name)) from error
    if names(checkout.git.run("for-each-ref", "--format=%(refname)%00", f"refs/heads/{name}")):
        raise UsageError(
            phrase("there is a branch {name} already", name=name),
            cause=phrase("nothing was written"),
            advice=phrase("Name another with --branch, or remove it: git branch -D {name}", name=name),
        )


def branch(checkout: Checkout, name: str, start: str, commits: Sequence[Commit]) -> tuple[str, ...]:
    """Make the branch `name` of these commits on top of `start`. Returns their hashes; an empty one has none.

    Raises TreeError where git refuses.
    """
    git, made, parent = checkout.git, list[str](), start
    with tempfile.TemporaryDirectory(prefix="uky-patch-") as scratch:
        env = {"GIT_INDEX_FILE": str(Path(scratch) / "index")}
        git.run("read-tree", start, env=env)
        before = _word(git.run("rev-parse", "--verify", f"{start}^{{tree}}"))
        for commit in commits:
            lines = _index_lines(checkout, commit, env)
            git.run("update-index", "--add", "-z", "--index-info", given=listed(lines), env=env)
            tree = _word(git.run("write-tree", env=env))
            if tree != before:
                message = commit.message.encode("utf-8", "replace")
                parent = _word(git.run("commit-tree", tree, "-p", parent, "-F", "-", given=message))
                made.append(parent)
                before = tree
    git.run("update-ref", "-m", "rebase: a branch made by uky-patch", f"refs/heads/{name}", parent, _NOTHING)
    return tuple(made)


def _index_lines(checkout: Checkout, commit: Commit, env: Mapping[str, str]) -> list[str]:
    """The commit's files as `git update-index --index-info` reads them; the mode of a file that is there stays."""
    places = {path: f"{checkout.prefix}{path}" for path in commit.files}
    there = names(checkout.git.run("ls-files", "--stage", "-z", "--", *places.values(), env=dict(env)))
    modes = {entry.partition("\t")[2]: entry.split(" ")[0] for entry in there}
    lines = []
    for path, content in commit.files.items():
        if content is None:
            lines.append(f"0 {_NOTHING}\t{places[path]}")
            continue
        blob = _word(checkout.git.run("hash-object", "-w", "--stdin", given=content))
        lines.append(f"{modes.get(places[path], '100644')} {blob}\t{places[path]}")
    return lines


def _word(out: bytes) -> str:
    return out.decode("ascii", "replace").strip()
