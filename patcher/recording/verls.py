"""A verl that texts can be read from: a commit of the fork's checkout, or a release."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from patcher.errors import UsageError
from patcher.git.checkout import Checkout, names
from patcher.git.history import commit_of, contents, upstream_commit
from patcher.i18n import Phrase, phrase
from patcher.packages.releases import wheel
from patcher.recording.base import closest_release, package_files
from patcher.terminal.progress import progress
from patcher.tree.source import Source, Undecodable, decode
from patcher.worktree import verl_tree

if TYPE_CHECKING:
    from patcher.session.session import Session


@dataclass(frozen=True, slots=True)
class Verl:
    """`commit` of a `checkout`, or `folder`, an unpacked release, says where it is; the other is not given."""

    name: Phrase
    version: str
    """What its version file states; "" where there is none."""
    checkout: Checkout | None = None
    commit: str = ""
    folder: Path | None = None

    def contents(self, paths: Iterable[str]) -> Mapping[str, bytes]:
        """The files that it has, as bytes."""
        if self.checkout is not None:
            return contents(self.checkout, self.commit, paths)
        assert self.folder is not None
        return {path: (self.folder / path).read_bytes() for path in paths if (self.folder / path).is_file()}

    def texts(self, paths: Iterable[str]) -> dict[str, str]:
        """The files that it has and that are text."""
        return texts_of(self.contents(paths))

    def everything(self) -> list[str]:
        """All of its files; of a release, those of the package."""
        return self.package() if self.checkout is None else self._committed(self.checkout)

    def package(self) -> list[str]:
        """The files of the package verl."""
        if self.checkout is not None:
            return self._committed(self.checkout, "--", f"{self.checkout.prefix}{verl_tree.PACKAGE}")
        assert self.folder is not None
        return list(package_files(self.folder))

    def _committed(self, checkout: Checkout, *only: str) -> list[str]:
        listing = checkout.git.run("ls-tree", "-r", "-z", "--full-tree", "--name-only", self.commit, *only)
        return [path.removeprefix(checkout.prefix) for path in names(listing)]


def texts_of(contents: Mapping[str, bytes]) -> dict[str, str]:
    """The contents that are text."""
    found = {path: decode(Source(path, content, "", 0)) for path, content in contents.items()}
    return {path: read[0] for path, read in found.items() if not isinstance(read, Undecodable)}


def find_verl(checkout: Checkout, named: str) -> Verl:
    """`named`: a version, whose tag in the checkout counts before the release, or a commit.

    Raises:
        UsageError: there is no such commit.
        ReleaseError: the release cannot be had.
    """
    version = named.removeprefix("verl==")
    if version[:1].isdigit():
        for tag in (f"v{version}", version):
            try:
                return _of_commit(checkout, commit_of(checkout, f"refs/tags/{tag}"), tag)
            except UsageError:
                continue
        if version != named or not _is_commit(checkout, named):  # `0123abc` begins with a digit as well.
            folder = wheel("verl", version, progress=progress)
            return Verl(phrase("verl {version}", version=version), version, folder=folder)
    return _of_commit(checkout, commit_of(checkout, named), named)


def upstream_verl(session: Session, checkout: Checkout) -> Verl:
    """The verl that the fork was made from: see `patcher.recording.base`."""
    found = upstream_commit(checkout)
    if found is not None:
        return _of_commit(checkout, *found)
    version = closest_release(session)
    return Verl(phrase("verl {version}", version=version), version, folder=wheel("verl", version, progress=progress))


def _is_commit(checkout: Checkout, named: str) -> bool:
    try:
        return bool(commit_of(checkout, named))
    except UsageError:
        return False


def _of_commit(checkout: Checkout, commit: str, name: str) -> Verl:
    place = f"{verl_tree.PACKAGE}/version/version"
    stated = contents(checkout, commit, (place,)).get(place, b"").decode("utf-8", "replace").strip()
    shown = phrase("{name} ({commit})", name=name, commit=commit[:9])
    return Verl(shown, stated, checkout, commit)
