"""The sources of a release, by name and version, fetched once and kept."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

from patcher.environment.folders import normalise
from patcher.environment.metadata import is_pep440
from patcher.environment.model import MODULES
from patcher.errors import ReleaseError
from patcher.language import Phrase, phrase
from patcher.releases.cache import Progress, build, cache_root
from patcher.releases.index import ELSEWHERE, File, Index
from patcher.releases.pipconfig import read_pip_config
from patcher.releases.transfer import RangeFile, RangeRefusedError, download
from patcher.releases.unpack import sdist_sources, unpack_tar, unpack_zip, wheel_sources, whole_wheel

FRESH_SECONDS = 900
"""For how long a list of versions is taken from the cache."""


def sources(
    name: str, version: str, *, cache: Path | None = None, progress: Progress | None = None, offline: bool = False
) -> Path:
    """A folder with the Python and YAML files and the METADATA of a release; of a pure wheel, all its files.

    The package lies in it as it would in site-packages. Raises `ReleaseError` if the release cannot be had.
    """
    return _cached("sources", _fill_sources, name, version, cache, progress, offline)


def wheel(
    name: str, version: str, *, cache: Path | None = None, progress: Progress | None = None, offline: bool = False
) -> Path:
    """A folder with everything in a wheel of the release, laid out as in site-packages. Do not write to it."""
    return _cached("wheel", _fill_wheel, name, version, cache, progress, offline)


def versions(name: str, *, cache: Path | None = None, offline: bool = False) -> list[str]:
    """The versions that the indexes offer, newest first; for a few minutes from the cache.

    Offline, the last list known, else what the cache holds. Raises `ReleaseError` if there is none of these.
    """
    from packaging.version import Version

    folder = cache_root(cache) / "releases" / normalise(name)
    listed = folder / "versions.json"
    known = _read_versions(listed)
    if known is not None and (offline or time.time() - listed.stat().st_mtime < FRESH_SECONDS):
        return known
    with Index(read_pip_config(), offline=offline) as index:
        found = {file.version for file in index.files(name)}
    if offline and folder.is_dir():
        found |= {path.name for path in folder.iterdir() if path.is_dir()}
    if not found:
        raise ReleaseError(phrase("no release of {name} was found", name=name), advice=ELSEWHERE)
    ordered = sorted(filter(is_pep440, found), key=Version, reverse=True)
    if not offline:
        _write_versions(listed, ordered)
    return ordered


def _read_versions(path: Path) -> list[str] | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return [str(version) for version in found] if isinstance(found, list) and found else None


def _write_versions(path: Path, ordered: list[str]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f".versions-{os.getpid()}.json")
        fresh.write_text(json.dumps(ordered), encoding="utf-8")
        fresh.replace(path)
    except OSError:
        return


class _Request:
    """One release asked for, and the means to get it."""

    def __init__(self, index: Index, name: str, version: str, progress: Progress, offline: bool) -> None:
        self.index, self.name, self.version, self.progress, self.offline = index, name, version, progress, offline
        self.module = MODULES.get(name, name.replace("-", "_"))

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
        asked = {"name": self.name, "version": self.version, "places": self.index.places}
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

    def whole(self, file: File, folder: Path) -> Path:
        """The file on this machine: where it lies, or downloaded into `folder`."""
        if file.local is not None:
            return file.local
        path = folder / f".{'wheel' if file.is_wheel else 'archive'}"
        download(self.index.client, file.url, path, file.hashes, file.filename, self.progress)
        return path


Fill: TypeAlias = Callable[[_Request, "list[File]", Path], None]


def _cached(
    kind: str, fill: Fill, name: str, version: str, cache: Path | None, progress: Progress | None, offline: bool
) -> Path:
    name, version = normalise(name), version.strip()
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", name) or not re.fullmatch(r"[A-Za-z0-9][\w.+!-]*", version):
        raise ReleaseError(
            phrase("{name} {version} cannot be a release", name=name, version=version),
            advice=phrase("Give a name and a version, as in vllm 0.20.2."),
        )
    place = cache_root(cache) / "releases" / name / version / kind
    if place.is_dir():
        return place
    with Index(read_pip_config(), offline=offline) as index:
        request = _Request(index, name, version, progress or _silent, offline)
        files = request.files()
        return build(place, lambda folder: fill(request, files, folder), request.progress)


def _fill_sources(request: _Request, files: list[File], folder: Path) -> None:
    """Fill from the cheapest file: a local one, a pure wheel, parts of a wheel, a source archive, a whole wheel."""
    wheels = sorted((file for file in files if file.is_wheel), key=_preference)
    archives = [file for file in files if not file.is_wheel]
    if wheels and (wheels[0].is_pure or wheels[0].local is not None):
        _fill_wheel(request, files, folder, only_sources=not wheels[0].is_pure)
        return
    for file in wheels[:1]:
        try:
            remote = RangeFile(request.index.client, file.url, file.filename, request.progress)
            _expect_some(request, file, unpack_zip(remote, folder, wheel_sources))
        except RangeRefusedError:
            for part in folder.iterdir():
                shutil.rmtree(part)
            break
        return
    for file in archives[:1]:
        path = request.whole(file, folder)
        wanted = sdist_sources(request.module, f"{request.module}-{request.version}")
        unpack = unpack_zip if file.filename.endswith(".zip") else unpack_tar
        _expect_some(request, file, unpack(path, folder, wanted))
        if file.local is None:
            path.unlink()
        return
    _fill_wheel(request, files, folder, only_sources=True)


def _fill_wheel(request: _Request, files: list[File], folder: Path, *, only_sources: bool = False) -> None:
    wheels = sorted((file for file in files if file.is_wheel), key=_preference)
    if not wheels:
        raise ReleaseError(
            phrase("{name} {version} has no wheel", name=request.name, version=request.version),
            cause=phrase("looked in {places}", places=request.index.places),
        )
    path = request.whole(wheels[0], folder)
    _expect_some(request, wheels[0], unpack_zip(path, folder, wheel_sources if only_sources else whole_wheel))
    if wheels[0].local is None:
        path.unlink()


def _expect_some(request: _Request, file: File, count: int) -> None:
    if count == 0:
        raise ReleaseError(
            phrase("{file} holds no sources of {name}", file=file.filename, name=request.name),
            cause=phrase("fetched from {url}", url=file.shown),
        )


def _preference(file: File) -> tuple[bool, bool, bool, str]:
    """Wheels of one release differ in compiled parts alone; a stable choice makes every machine see the same."""
    return (
        not file.is_pure,
        file.local is None,
        "linux" not in file.filename or "x86_64" not in file.filename,
        file.filename,
    )


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


def _silent(_message: Phrase | str, _done: int, _total: int | None) -> None:
    return
