"""What lies in a checkout and no command writes over: work that is in no commit, and a merge that git has not ended."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from patcher.errors import TreeError
from patcher.git.checkout import checkout
from patcher.git.delivered import as_committed
from patcher.git.under_way import under_way_in
from patcher.i18n import phrase

if TYPE_CHECKING:
    from patcher.tree import Tree
    from patcher.worktree.ledger import Ledger


def refuse_foreign_changes(tree: Tree, ledger: Ledger, written: Mapping[str, bytes | None]) -> None:
    """Raise TreeError if a file that is to be written has uncommitted changes that this tool has not made.

    `written`: what each is to hold. One that will be as HEAD has it lacks the records' edits and nothing else, as after
    a revert of committed records.
    """
    place = checkout(tree.root)
    foreign = place.foreign_changes(sorted(written), ledger, tree.read) if place is not None else ()
    if foreign:
        again = as_committed(tree.root, {path: written[path] for path in foreign})
        foreign = tuple(path for path in foreign if path not in again)
    if foreign:
        raise TreeError(
            phrase("uncommitted changes in {files}", files=", ".join(foreign)),
            cause=phrase("apply would write into files that somebody is working on; nothing was written"),
            advice=phrase("Commit or stash them, or say --allow-dirty."),
        )


def refuse_under_way(tree: Tree, ledger: Ledger, paths: Collection[str]) -> None:
    """Raise TreeError if git is in the middle of a merge or the like, and one of `paths` holds what it has put there.

    A file that is as HEAD has it, or as the records made it, is none of these: `git rebase --exec` may run an apply.
    """
    found = under_way_in(tree.root, paths)
    place = checkout(tree.root) if found is not None else None
    files = place.foreign_changes(sorted(paths), ledger, tree.read) if place is not None and paths else ()
    if found is not None and files:
        raise TreeError(
            phrase("{what}; nothing was written", what=found.title),
            cause=phrase("{files}: git has changed them, and not committed that", files=", ".join(files)),
            advice=phrase("End that first: {end}.", end=found.end),
        )
