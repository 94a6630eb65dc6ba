"""Which verl the tree is, where its version file and git's history disagree."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from patcher.i18n import Phrase, phrase


@dataclass(frozen=True, slots=True)
class OtherVerl:
    """A verl that the tree may be, though its version file says another."""

    version: str
    text: Phrase

    @property
    def assumed(self) -> tuple[str, str]:
        """The option that takes it for the tree's."""
        return "--assume", f"verl=={self.version}"


def other_verl(root: Path, package: str, stated: str) -> OtherVerl | None:
    """What a merge has made of the tree at `root` that its version file, which says `stated`, does not say."""
    from patcher.session.merged_version import merged_version

    file = f"{package}/version/version"
    found = merged_version(root, file, stated)
    if found is None:
        return None
    text = phrase(
        "{file} says {stated}, and the merge {commit} has brought in verl {version}. Which records are needed hangs on "
        "that: if the tree is {version} now, write that into the file, or say --assume verl=={version} each time",
        file=file,
        stated=stated,
        commit=found.commit[:9],
        version=found.version,
    )
    return OtherVerl(found.version, text)
