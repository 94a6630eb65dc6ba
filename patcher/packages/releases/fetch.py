"""The sources of a release, by name and version, fetched once and kept."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

from patcher.errors import ReleaseError
from patcher.i18n import Phrase, Phrases, phrase
from patcher.packages.agent.installed.folders import normalise
from patcher.packages.agent.installed.metadata import is_pep440
from patcher.packages.releases import contents
from patcher.packages.releases.cache import Progress, build, cache_root
from patcher.packages.releases.filling import Fill, fill_sources, fill_wheel
from patcher.packages.releases.index import ELSEWHERE, File, Index
from patcher.packages.releases.pipconfig import read_pip_config
from patcher.packages.releases.request import Request
from patcher.worktree import files
from patcher.worktree.json_text import parse_json

FRESH_SECONDS = 900
"""For how long a list of versions is taken from the cache."""
_CLOCKS_DIFFER = 5.0
"""Seconds by which the clock of a file server may be ahead."""


def sources(
    name: str, version: str, *, cache: Path | None = None, progress: Progress | None = None, offline: bool = False
) -> Path:
    """A folder with the Python and YAML files and the METADATA of a release; of a pure wheel, all its files.

    The package lies in it as it would in site-packages. Raises `ReleaseError` if the release cannot be had.
    """
    return _cached("sources", fill_sources, name, version, cache, progress, offline)


def is_cached(name: str, version: str) -> bool:
    """Whether the sources of a release have been fetched before."""
    folder = cache_root(None) / "releases" / normalise(name)
    return any((folder / written / "sources").is_dir() for written in (version, version.partition("+")[0]))


def wheel(
    name: str, version: str, *, cache: Path | None = None, progress: Progress | None = None, offline: bool = False
) -> Path:
    """A folder with everything in a wheel of the release, laid out as in site-packages. Do not write to it."""
    return _cached("wheel", fill_wheel, name, version, cache, progress, offline)


def versions(name: str, *, cache: Path | None = None, offline: bool = False) -> list[str]:
    """The versions that the indexes offer, newest first; for a few minutes from the cache.

    Offline, the last list known, else what the cache holds. Raises `ReleaseError` if there is none of these.
    """
    from packaging.version import Version

    folder = cache_root(cache) / "releases" / normalise(name)
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
        files.replace(path, json.dumps(ordered).encode())
    except OSError:
        return


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
    wrong = contents.damage(place) if place.is_dir() else None
    if wrong == "" or (wrong is None and offline and place.is_dir()):
        return place
    with Index(read_pip_config(), offline=offline) as index:
        request = Request(index, name, version, progress or _silent, offline)
        if wrong:
            told = phrase("{name} {version} in the cache is damaged and fetched anew", name=name, version=version)
            request.progress(told, 0, None)
        found = _files(request, place, wrong)
        return build(place, lambda folder: fill(request, found, folder), request.progress, f"{name} {version}")


def _files(request: Request, place: Path, wrong: str | None) -> list[File]:
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
