"""One release asked for: its files on the indexes, and the means to get them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from patcher.errors import ReleaseError
from patcher.i18n import Phrase, phrase
from patcher.packages.model import MODULES
from patcher.packages.releases.cache import Progress
from patcher.packages.releases.index import ELSEWHERE, File, Index
from patcher.packages.releases.transfer import download


class Request:
    """One release asked for, and the means to get it."""

    def __init__(self, index: Index, name: str, version: str, progress: Progress, offline: bool) -> None:
        self.index, self.name, self.version, self.progress, self.offline = index, name, version, progress, offline
        self.module = MODULES.get(name, name.replace("-", "_"))

    @property
    def asked(self) -> dict[str, Phrase | str]:
        """What messages say of the request."""
        return {"name": self.name, "version": self.version, "places": self.index.places}

    def files(self) -> list[File]:
        """The files of the version asked for, local ones first. Raises `ReleaseError` if there are none."""
        every = self.index.files(self.name)
        found = _of_version(every, self.version)
        if found:
            if all(file.yanked is not None for file in found):
                text = "{name} {version} was withdrawn from the index: {why}"
                why = found[0].yanked or phrase("no reason given")
                self.progress(phrase(text, name=self.name, version=self.version, why=why), 0, None)
            return sorted(found, key=lambda file: file.local is None)
        asked = self.asked
        if self.offline:
            raise ReleaseError(
                phrase("{name} {version} is not in the cache, and the network is not to be used", **asked),
                cause=phrase("also looked in {places}", **asked),
                advice=ELSEWHERE,
            )
        if not every:
            raise ReleaseError(phrase("no release of {name} was found in {places}", **asked), advice=ELSEWHERE)
        near = ", ".join(nearest(self.version, [file.version for file in every]))
        raise ReleaseError(
            phrase("there is no {name} {version} in {places}", **asked),
            advice=phrase("The nearest releases are {versions}.", versions=near) if near else ELSEWHERE,
        )

    def whole(self, file: File, folder: Path, most: int | None = None) -> Path:
        """The file on this machine: where it lies, or downloaded into `folder`, if it has at most `most` bytes."""
        if file.local is not None:
            return file.local
        path = folder / f".{'wheel' if file.is_wheel else 'archive'}"
        download(self.index.client, file.url, path, file.hashes, file.filename, self.progress, most)
        return path


def _of_version(files: Iterable[File], version: str) -> list[File]:
    """The files of a version, however it is spelled; if none has its local part (`+cu129`), those without one."""
    from packaging.version import InvalidVersion, Version

    try:
        wanted = Version(version)
    except InvalidVersion:
        return [file for file in files if file.version == version]
    numbered = [(Version(file.version), file) for file in files]
    exact = [file for number, file in numbered if number == wanted]
    return exact or [file for number, file in numbered if str(number) == wanted.public]


def nearest(version: str, known: Iterable[str], count: int = 4) -> list[str]:
    """The releases just below and above a version that is not there, in order."""
    from packaging.version import InvalidVersion, Version

    ordered = sorted({Version(text) for text in known})
    try:
        wanted = Version(version)
    except InvalidVersion:
        return [str(number) for number in ordered[-count:]]
    below = [number for number in ordered if number < wanted]
    above = [number for number in ordered if number > wanted]
    half = max(count // 2, count - len(above))
    chosen = below[-half:]
    return [str(number) for number in (*chosen, *above[: count - len(chosen)])]
