"""The sources of a release, or its whole wheel, by name and version: fetched the cheapest way, once, and kept.

Sources come from a file of this machine, a pure wheel, the Python files of a wheel by range requests, a source archive,
or a whole wheel that is not too large, whichever is there first. A version with a local part that no index has, such as
`0.9.0+cu129`, counts as that without it. What is kept and damaged is fetched anew.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeAlias

from patcher.errors import ReleaseError
from patcher.i18n import Phrase, Phrases, phrase
from patcher.packages.agent.folders import MODULES, is_pep440, normalise
from patcher.packages.releases.cache import Progress, against_record, build, cache_root, damage
from patcher.packages.releases.index import ELSEWHERE, File, Index, read_pip_config
from patcher.packages.releases.transfer import MOST_WHOLE, RangeFile, RangeRefusedError, TooLargeError, download
from patcher.packages.releases.unpack import Wanted, sdist_sources, unpack_tar, unpack_zip, wheel_sources, whole_wheel
from patcher.worktree import files
from patcher.worktree.json_text import parse_json

FRESH_SECONDS = 900
"""For how long a list of versions is taken from the cache. A guess: several commands in a row ask the index once, and a
new release is seen within the hour."""
_CLOCKS_DIFFER = 5.0
"""Seconds by which the clock of a file server may be ahead. A guess; more than that is a clock that is wrong."""


def sources(name: str, version: str, *, progress: Progress | None = None, offline: bool = False) -> Path:
    """A folder with the Python and YAML files and the METADATA of a release; of a pure wheel, all its files.

    The package lies in it as it would in site-packages. Raises `ReleaseError` if the release cannot be had.
    """
    return _cached("sources", fill_sources, name, version, progress, offline)


def is_cached(name: str, version: str) -> bool:
    """Whether the sources of a release have been fetched before."""
    folder = cache_root() / "releases" / normalise(name)
    return any((folder / written / "sources").is_dir() for written in (version, version.partition("+")[0]))


def may_be_had(name: str, version: str) -> bool:
    """Whether a release is in the cache or in the list of the index, which is asked at most every few minutes.

    `--assume vllm==0.11.0.dev7` names a build of one's own, and each command would ask the index for it again.
    """
    if is_cached(name, version):
        return True
    try:
        listed = versions(name)
    except ReleaseError:
        return False
    from packaging.version import InvalidVersion, Version

    try:
        wanted = Version(version)
    except InvalidVersion:
        return version in listed
    return any(Version(one) in (wanted, Version(wanted.public)) for one in listed)


def wheel(name: str, version: str, *, progress: Progress | None = None, offline: bool = False) -> Path:
    """A folder with everything in a wheel of the release, laid out as in site-packages. Do not write to it."""
    return _cached("wheel", fill_wheel, name, version, progress, offline)


def versions(name: str, *, offline: bool = False) -> list[str]:
    """The versions that the indexes offer, newest first; for a few minutes from the cache.

    Offline, the last list known, else what the cache holds. Raises `ReleaseError` if there is none of these.
    """
    from packaging.version import Version

    folder = cache_root() / "releases" / normalise(name)
    listed = folder / "versions.json"
    known, age = _read_versions(listed)
    if known and (offline or age < FRESH_SECONDS):
        return known
    with Index(read_pip_config(), offline=offline) as index:
        found = {file.version for file in index.files(name)}
    if offline and folder.is_dir():
        found |= {path.name for path in folder.iterdir() if path.is_dir() and not path.is_symlink()}
    if not found:
        raise ReleaseError(phrase("no release of {name} was found", name=name), advice=ELSEWHERE)
    ordered = sorted(filter(is_pep440, found), key=Version, reverse=True)
    if not offline:
        _write_versions(listed, ordered)
    return ordered


def _read_versions(path: Path) -> tuple[list[str], float]:
    """The list that is kept and its age in seconds; none where it is dated in the future, or holds anything else."""
    try:
        content, status = files.read_and_status(path, files.SETTINGS_BYTES)
        found = parse_json(content)
    except (OSError, ValueError):
        return [], 0.0
    age = time.time() - status.st_mtime
    right = isinstance(found, list) and all(isinstance(version, str) and is_pep440(version) for version in found)
    return (found, age) if right and age > -_CLOCKS_DIFFER else ([], 0.0)


def _write_versions(path: Path, ordered: list[str]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_whole_file(path, json.dumps(ordered).encode())
    except OSError:
        return


def _cached(kind: str, fill: Fill, name: str, version: str, progress: Progress | None, offline: bool) -> Path:
    """A release from the cache where it is whole, else fetched into it. `kind`: the folder, `sources` or `wheel`."""
    name, version = normalise(name), version.strip()
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", name) or not re.fullmatch(r"[A-Za-z0-9][\w.+!-]*", version):
        raise ReleaseError(
            phrase("{name} {version} cannot be a release", name=name, version=version),
            advice=phrase("Give a name and a version, as in vllm 0.20.2."),
        )
    place = cache_root() / "releases" / name / version / kind
    wrong = damage(place) if place.is_dir() else None
    # Offline, a folder that nothing can be compared with is better than none.
    if wrong == "" or (wrong is None and offline and place.is_dir()):
        return place
    with Index(read_pip_config(), offline=offline) as index:
        request = ReleaseRequest(index, name, version, progress or _silent, offline)
        if wrong:
            message = phrase("{name} {version} in the cache is damaged and fetched anew", name=name, version=version)
            request.progress(message, 0, None)
        found = _files(request, place, wrong)
        return build(place, lambda folder: fill(request, found, folder), request.progress, f"{name} {version}")


def _files(request: ReleaseRequest, place: Path, wrong: str | None) -> list[File]:
    try:
        return request.files()
    except ReleaseError as error:
        if not wrong:
            raise
        raise ReleaseError(
            phrase("{name} {version} in the cache is damaged", name=request.name, version=request.version),
            cause=Phrases((phrase("{path} is not as it was fetched", path=place / wrong), error.title), ", "),
            advice=phrase(
                "Run the command where it can fetch the release anew, or copy {folder} from another machine.",
                folder=place,
            ),
        ) from error


def _silent(_message: Phrase | str, _done: int, _total: int | None) -> None:
    return


class ReleaseRequest:
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
            # Withdrawn releases are still installed somewhere, so they can be checked against; the user is informed.
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
        near = ", ".join(nearest_versions(self.version, [file.version for file in every]))
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
    # `0.9.0+cu129` is on no index; its Python files are those of 0.9.0.
    return exact or [file for number, file in numbered if str(number) == wanted.public]


def nearest_versions(version: str, known: Iterable[str]) -> list[str]:
    """The four releases just below and above a version that is not there, in order."""
    from packaging.version import InvalidVersion, Version

    ordered = sorted({Version(text) for text in known})
    try:
        wanted = Version(version)
    except InvalidVersion:
        return [str(number) for number in ordered[-4:]]
    below = [number for number in ordered if number < wanted]
    above = [number for number in ordered if number > wanted]
    chosen = below[-max(2, 4 - len(above)) :]
    return [str(number) for number in (*chosen, *above[: 4 - len(chosen)])]


Fill: TypeAlias = Callable[[ReleaseRequest, "list[File]", Path], None]
Attempt: TypeAlias = Callable[[ReleaseRequest, File, Path], None]
"""Unpacks what is wanted of one file into a folder. Raises RangeRefusedError or TooLargeError where another may do."""


def fill_sources(request: ReleaseRequest, files: list[File], folder: Path) -> None:
    """Fill from the cheapest file: a local one, a pure wheel, parts of a wheel, a source archive, a whole wheel.

    Of what is not on this machine, at most `MOST_WHOLE` bytes are fetched of a file as a whole.
    """
    wheels = sorted((file for file in files if file.is_wheel), key=_preference)
    archives = [file for file in files if not file.is_wheel]
    attempts: list[tuple[File, Attempt]] = [(file, _archive) for file in archives[:1]]
    if wheels:
        # A pure wheel is small and holds what is wanted. Of a wheel with compiled parts (vLLM: hundreds of MB) only the
        # Python files are read, by range requests, if the index answers them.
        best = wheels[0]
        wanted = whole_wheel if best.is_pure else wheel_sources
        whole: Attempt = partial(_unpack_wheel, wanted=wanted, most=MOST_WHOLE)
        if best.local is None:
            attempts.insert(0, (best, _parts_of_wheel))
        attempts.insert(0 if best.is_pure or best.local is not None else len(attempts), (best, whole))
    refused: dict[str, int | None] = {}
    for file, attempt in attempts:
        try:
            attempt(request, file, folder)
        except RangeRefusedError:
            _empty(folder)
        except TooLargeError as error:
            refused[file.filename] = error.size
            _empty(folder)
        else:
            return
    raise _too_large(request, refused)


def _too_large(request: ReleaseRequest, refused: Mapping[str, int | None]) -> ReleaseError:
    """Nothing small enough is offered: the wheel would have to come whole."""
    name, size = list(refused.items())[-1]
    most = MOST_WHOLE / 1e6
    sizes = {"file": name, "size": f"{size / 1e6:.0f}" if size is not None else f"> {most:.0f}", "most": f"{most:.0f}"}
    whole = "{file} has {size} MB, and files are fetched whole up to {most} MB"
    no_parts = "{places} sends no parts of files, {file} has {size} MB, and files are fetched whole up to {most} MB"
    cause = phrase(no_parts if name.endswith(".whl") else whole, places=request.index.places, **sizes)
    return ReleaseError(
        phrase("the sources of {name} {version} cannot be had in a small download", **request.asked),
        cause=cause,
        advice=phrase(
            "Use an index that answers range requests, put the wheel or the source archive into a folder named in "
            "PIP_FIND_LINKS, or give the folder of an installed {name} or of a checkout in place of the version.",
            name=request.name,
        ),
    )


def _parts_of_wheel(request: ReleaseRequest, file: File, folder: Path) -> None:
    remote = RangeFile(request.index.client, file.url, file.filename, request.progress)
    _expect_some(request, file, unpack_zip(remote, folder, wheel_sources, remote.expect))
    _expect_record(file, folder)


def _archive(request: ReleaseRequest, file: File, folder: Path) -> None:
    path = request.whole(file, folder, MOST_WHOLE)
    wanted = sdist_sources(request.module, f"{request.module}-{request.version}")
    unpack = unpack_zip if file.filename.endswith(".zip") else unpack_tar
    _expect_some(request, file, unpack(path, folder, wanted))
    if file.local is None:
        path.unlink()


def fill_wheel(request: ReleaseRequest, files: list[File], folder: Path) -> None:
    """Fill with everything in a wheel, however large it is."""
    wheels = sorted((file for file in files if file.is_wheel), key=_preference)
    if not wheels:
        raise ReleaseError(
            phrase("{name} {version} has no wheel", name=request.name, version=request.version),
            cause=phrase("looked in {places}", places=request.index.places),
        )
    _unpack_wheel(request, wheels[0], folder, whole_wheel, None)


def _unpack_wheel(request: ReleaseRequest, file: File, folder: Path, wanted: Wanted, most: int | None) -> None:
    path = request.whole(file, folder, most)
    _expect_some(request, file, unpack_zip(path, folder, wanted))
    _expect_record(file, folder)
    if file.local is None:
        path.unlink()


def _expect_record(file: File, folder: Path) -> None:
    """What was unpacked is what the wheel's own list says."""
    if wrong := against_record(folder):
        raise ReleaseError(
            phrase("{file} is damaged", file=file.filename),
            cause=phrase("{path} is not what its RECORD says", path=wrong),
            advice="Run the command again; if it stays so, report it to whoever runs the index.",
        )


def _empty(folder: Path) -> None:
    """Remove what a failed attempt has left."""
    for part in folder.iterdir():
        if part.is_dir():
            shutil.rmtree(part)
        else:
            part.unlink()


def _expect_some(request: ReleaseRequest, file: File, count: int) -> None:
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
