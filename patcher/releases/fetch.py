"""The sources of a release, by name and version, fetched once and kept."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path

from patcher.agent.installed.folders import normalise
from patcher.agent.installed.metadata import is_pep440
from patcher.errors import ReleaseError
from patcher.language import Phrase, phrase
from patcher.releases.cache import Progress, build, cache_root
from patcher.releases.filling import Fill, fill_sources, fill_wheel
from patcher.releases.index import ELSEWHERE, Index
from patcher.releases.pipconfig import read_pip_config
from patcher.releases.request import Request
from patcher.worktree.json_text import parse_json

FRESH_SECONDS = 900
"""For how long a list of versions is taken from the cache."""


def sources(
    name: str, version: str, *, cache: Path | None = None, progress: Progress | None = None, offline: bool = False
) -> Path:
    """A folder with the Python and YAML files and the METADATA of a release; of a pure wheel, all its files.

    The package lies in it as it would in site-packages. Raises `ReleaseError` if the release cannot be had.
    """
    return _cached("sources", fill_sources, name, version, cache, progress, offline)


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
        found = parse_json(path.read_text(encoding="utf-8"))
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
        request = Request(index, name, version, progress or _silent, offline)
        files = request.files()
        return build(place, lambda folder: fill(request, files, folder), request.progress)


def _silent(_message: Phrase | str, _done: int, _total: int | None) -> None:
    return
