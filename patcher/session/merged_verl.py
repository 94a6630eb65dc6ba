"""Which verl was merged where the version file did not go along.

    main       0.6.1's branch leaves here ── 0.7.0.dev ── v0.7.0
    release    └── 0.6.1 ── the fork ──────────────────── merge: 0.6.1

Only the fork's side has changed the file since, so git takes that side's, and says nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from patcher.errors import TreeError
from patcher.git.checkout import Checkout, checkout
from patcher.git.history import blobs
from patcher.i18n import Phrase, phrase

if TYPE_CHECKING:
    from packaging.version import Version

_MERGES = 500
"""How many merges are looked at, the newest first. verl itself has few: its pull requests are squashed. A guess."""


class MergedVerl(NamedTuple):
    """A verl of a newer version than the version file states, and the commit that has merged it."""

    version: str
    commit: str
    file: str
    stated: str

    @property
    def text(self) -> Phrase:
        return phrase(
            "{file} says {stated}, and the merge {commit} has brought in verl {version}. Which records are needed "
            "hangs on that: if the tree is {version} now, write that into the file, or say --assume verl=={version} "
            "each time",
            file=self.file,
            stated=self.stated,
            commit=self.commit[:9],
            version=self.version,
        )

    @property
    def assumed(self) -> tuple[str, str]:
        """The option that takes it for the tree's."""
        return "--assume", f"verl=={self.version}"


def merged_verl(root: Path, package: str, stated: str) -> MergedVerl | None:
    """What the newest merge has merged that left `stated` in the version file, where that was a newer verl.

    None too where git cannot be asked. A file that was set right since states something else than the merge left.
    """
    file = f"{package}/version/version"
    place, here = checkout(root), _version(stated)
    if place is None or here is None:
        return None
    try:
        listing = place.git.run("rev-list", "--merges", "--parents", f"--max-count={_MERGES}", "HEAD")
        merges = [line.split() for line in listing.decode().splitlines()]
        commits = list(dict.fromkeys(commit for merge in merges for commit in merge))
        texts = blobs(place, [f"{commit}:{place.prefix}{file}" for commit in commits])
        states = {
            commit: text.decode("utf-8", "replace").strip() for commit, text in zip(commits, texts, strict=True) if text
        }
        for commit, *parents in merges:
            if states.get(commit) != stated:
                continue
            newer = {one: parent for parent in parents if (one := _version(states.get(parent, ""))) and one > here}
            if newer:
                highest = max(newer)
                version = _released(place, newer[highest], highest) or states[newer[highest]]
                return MergedVerl(version, commit, file, stated)
    except TreeError:
        return None
    return None


def _released(place: Checkout, commit: str, stated: Version) -> str:
    """The release that a commit has, where that is what its file leads to: v0.7.0 for a file that says 0.7.0.dev."""
    try:
        tag = place.git.word("describe", "--tags", "--abbrev=0", "--match", "v[0-9]*", commit)
    except TreeError:
        return ""
    found = _version(tag.removeprefix("v"))
    return tag.removeprefix("v") if found is not None and found >= stated else ""


def _version(text: str) -> Version | None:
    from packaging.version import InvalidVersion, Version

    try:
        return Version(text)
    except InvalidVersion:
        return None
