"""A new branch with commits of its own, made as git objects alone: no index and no file of the work tree changes."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from patcher.errors import TreeError, UsageError
from patcher.git.checkout import names
from patcher.git.series import REMOVED, Commit, index_line, make_commits
from patcher.i18n import phrase

if TYPE_CHECKING:
    from patcher.git.checkout import Checkout


def require_new(checkout: Checkout, name: str) -> None:
    """Raise UsageError for a name that a branch cannot have, or that a branch has already."""
    try:
        checkout.git.run("check-ref-format", "--branch", name)
    except TreeError as error:
        raise UsageError(phrase("{name!r} is no name of a branch", name=name)) from error
    # `refs/heads/a` also lists `a/b`: git keeps no branch `a` beside a branch `a/b`.
    above = [parent.as_posix() for parent in PurePosixPath(name).parents if parent.name]
    patterns = [f"refs/heads/{place}" for place in (name, *above)]
    listing = names(checkout.git.run("for-each-ref", "--format=%(refname)%00", *patterns))
    there = [entry.strip().removeprefix("refs/heads/") for entry in listing if entry.strip()]
    other = phrase("Name another with --branch.")
    if name in there:
        # A checked-out branch is the one that people work on, and no leftover of another rebase.
        kept = phrase("Name another with --branch, or rename that one: git branch -m {name} NEW_NAME", name=name)
        raise UsageError(
            phrase("there is a branch {name} already", name=name),
            cause=phrase("nothing was written"),
            advice=other if name == checkout.head.branch else kept,
        )
    for one in there:
        if one in above or one.startswith(f"{name}/"):
            raise UsageError(
                phrase("{name!r} can be no branch beside the branch {other}", name=name, other=one),
                cause=phrase("git has no branch whose name is the beginning of another's, up to a slash"),
                advice=other,
            )


def branch(checkout: Checkout, name: str, start: str, commits: Sequence[Commit]) -> tuple[str, ...]:
    """Make the branch `name` with these commits on top of the commit `start`, a full hash.

    The bytes are stored as they are: content filters and line-end settings do not apply. Returns the hashes of the
    commits; one that changes nothing is left out.

    Raises:
        TreeError: git fails.
    """
    with tempfile.TemporaryDirectory(prefix="uky-patch-") as scratch:
        env = {"GIT_INDEX_FILE": str(Path(scratch) / "index")}
        lines = ((commit.message, _index_lines(checkout, commit, env, start)) for commit in commits)
        made = make_commits(checkout.git, start, lines, env, sign=False)
    tip, none = (start, *made)[-1], "0" * len(start)
    checkout.git.run("update-ref", "-m", "rebase: a branch made by uky-patch", f"refs/heads/{name}", tip, none)
    return made


def _index_lines(checkout: Checkout, commit: Commit, env: Mapping[str, str], like: str) -> list[str]:
    """The commit's files as `git update-index --index-info` reads them; a file that is in the index keeps its mode."""
    places = {path: f"{checkout.prefix}{path}" for path in commit.files}
    there = names(checkout.git.run("ls-files", "--stage", "-z", "--", *places.values(), env=env))
    modes = {entry.partition("\t")[2]: entry.split(" ")[0] for entry in there}
    lines = []
    for path, content in commit.files.items():
        if content is None:
            entry = REMOVED
        else:
            entry = modes.get(places[path], "100644"), checkout.git.word("hash-object", "-w", "--stdin", given=content)
        lines.append(index_line(places[path], entry, like))
    return lines
