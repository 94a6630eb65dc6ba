"""What git has begun in a checkout and not ended: a merge, a rebase, a cherry-pick, conflicts of a `stash pop`.

Until then the files hold what git tries to make of two states of verl. The ledger's pre-images are of one of the two,
so that a pre-image in such a file's place would take the other out, and the commit that ends the merge would record it.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from patcher.errors import TreeError
from patcher.git.checkout import checkout, names
from patcher.git.head import repository
from patcher.i18n import Phrase, phrase

_NOTES: Mapping[str, tuple[str, str]] = {
    "MERGE_HEAD": ("merge", "merge"),
    "CHERRY_PICK_HEAD": ("cherry-pick", "cherry-pick"),
    "REVERT_HEAD": ("revert", "revert"),
    "rebase-merge": ("rebase", "rebase"),
    "rebase-apply/applying": ("git am", "am"),
    "rebase-apply": ("rebase", "rebase"),
    "sequencer": ("cherry-pick", "cherry-pick"),
}
"""What git notes in its folder as long as something is under way, with the name of that and git's command for it."""


@dataclass(frozen=True, slots=True)
class UnderWay:
    """Something that git has begun and not ended."""

    title: Phrase
    end: Phrase
    """How it is ended."""
    note: Path | None = None
    """What git has noted about it; None of conflicts alone."""


def under_way(root: Path) -> UnderWay | None:
    """What is under way in the checkout that `root` lies in, by git's own notes: git is not started."""
    found = repository(root)
    for name, (what, command) in _NOTES.items() if found is not None else ():
        if found is not None and os.path.lexists(found.folder / name):
            end = phrase("git {command} --continue, or git {command} --abort", command=command)
            return UnderWay(phrase("git is in the middle of a {what} here", what=what), end, found.folder / name)
    return None


def under_way_in(root: Path, paths: Collection[str]) -> UnderWay | None:
    """As `under_way`; and where nothing is noted, conflicts in `paths`, as a `git stash pop` leaves them."""
    place = checkout(root)
    found = under_way(root) if place is not None else None
    if found is not None or place is None or not paths:
        return found
    try:
        listing = names(place.git.run("ls-files", "-u", "-z", "--", *(place.prefix + path for path in sorted(paths))))
    except TreeError:  # A repository that git refuses: no evidence.
        return None
    files = dict.fromkeys(entry.partition("\t")[2].removeprefix(place.prefix) for entry in listing)
    if not files:
        return None
    title = phrase("git has left conflicts here, in {files}", files=", ".join(files))
    return UnderWay(title, phrase("solve the conflicts, and tell git so with git add"))
