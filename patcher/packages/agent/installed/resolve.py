"""Which installation of a package Python would import first, and what else of it lies about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from patcher.messages import Message, phrase
from patcher.packages.agent.installed.folders import Folder, Metadata, editable_mappings, normalise
from patcher.packages.agent.installed.metadata import (
    editable_source,
    is_pep440,
    literal_version,
    naming,
    package_in,
    provides,
    stated_version,
)
from patcher.packages.agent.installed.model import MODULES, Installed, Origin


@dataclass(frozen=True)
class _Place:
    """A package's folder, the import folder that it is found through, and the distributions that claim it there."""

    package: Path
    folder: Folder
    editable: bool
    claims: tuple[Metadata, ...]


def resolve(name: str, folders: Sequence[Folder]) -> tuple[Installed | None, list[Message]]:
    """The installation of `name` (one of `MODULES`) that an import finds, and sentences on what is odd about it."""
    module = MODULES[name]
    claims = {id(folder): _claims(name, module, folder) for folder in folders}
    places = [*_on_path(module, folders, claims), *_by_finder(module, folders, claims)]
    if not places:
        leftovers = [claim.path for folder in folders for claim in claims[id(folder)]]
        gone = "{path} is a leftover: the package {module} that it describes is not there"
        problems = [phrase(gone, path=path, module=module) for path in leftovers]
        return None, problems + _half_removed(name, folders)
    chosen, problems = places[0], _half_removed(name, folders)
    twice = "{name} is installed twice: {first} is imported, {second} is not"
    problems += [phrase(twice, name=name, first=chosen.package, second=other.package) for other in places[1:]]
    named = any(normalise(found.distribution) == name for folder in folders for _, found in folder.metadata)
    installed, odd = _installed(name, chosen, named)
    return installed, problems + odd


def _claims(name: str, module: str, folder: Folder) -> tuple[Metadata, ...]:
    candidates = [found for wanted, found in folder.metadata if wanted == name]
    exact = [found for found in candidates if normalise(found.distribution) == name]
    if exact and name != "vllm":
        return tuple(exact)
    return (*exact, *(found for found in candidates if found not in exact and provides(found, module)))


def _on_path(module: str, folders: Sequence[Folder], claims: dict[int, tuple[Metadata, ...]]) -> list[_Place]:
    by_path = {folder.path: folder for folder in folders}
    places = []
    for folder in folders:
        if module not in folder.modules:
            continue
        own = claims[id(folder)]
        if folder.via is not None and folder.via in by_path and not folder.path.name.endswith(".egg"):
            own = claims[id(by_path[folder.via])] or own
        if not own and (found := naming(folder.others, module)) is not None:
            own = (found,)
        places.append(_Place(folder.path / module, folder, folder.via is not None, own))
    return places


def _by_finder(module: str, folders: Sequence[Folder], claims: dict[int, tuple[Metadata, ...]]) -> list[_Place]:
    """Editable installs that no folder of the path shows: setuptools' finders, else the recorded source folder."""
    places = []
    for folder in folders:
        package = editable_mappings(folder).get(module) if folder.finders else None
        if package is not None and (package / "__init__.py").is_file():
            places.append(_Place(package, folder, True, claims[id(folder)]))
            continue
        for claim in claims[id(folder)] if module not in folder.modules else ():
            source = editable_source(claim)
            package = package_in(source, module) if source is not None else None
            if package is not None and not any(folder.path == package.parent for folder in folders):
                places.append(_Place(package, folder, True, (claim,)))
    return places


def _installed(name: str, place: _Place, named: bool) -> tuple[Installed, list[Message]]:
    literal = literal_version(place.package)
    claim, problems = _choose(name, place, literal)
    version, problem = stated_version(claim) if claim else (literal or "", None)
    problems += [problem] if problem else []
    origin: Origin = "editable" if place.editable else "wheel" if claim else "folder"
    note = ""
    if claim is None:
        note = "no metadata; the version is the one its own files state" if literal else ""
    elif origin == "editable":
        note = "an editable install: the version is that of its last build, the files may be newer"
    if not version:
        version = literal or "unknown"
    if version.partition("+")[2].split(".")[0] == "empty":
        note = "built without device code (+empty)"
    if not is_pep440(version):
        odd = "{name} {version} at {place} is no PEP 440 version, so no specifier can be held to it"
        problems.append(phrase(odd, name=name, version=version, place=place.package))
    distribution = claim.distribution if claim else None
    renamed = distribution is not None and not named
    return Installed(name, version, distribution, place.package, origin, note, renamed), problems


def _choose(name: str, place: _Place, literal: str | None) -> tuple[Metadata | None, list[Message]]:
    """The distribution that the files belong to: of several, the one whose version the files themselves state."""
    if len(place.claims) <= 1:
        return next(iter(place.claims), None), []
    agreeing = [claim for claim in place.claims if literal is not None and stated_version(claim)[0] == literal]
    chosen = (agreeing or place.claims)[0]
    others = ", ".join(claim.path.name for claim in place.claims)
    why = phrase("its version is the one that the files state" if agreeing else "it is the first that Python finds")
    several = "{name} has several metadata folders for one package ({folders}): {chosen} counts, {why}"
    return chosen, [phrase(several, name=name, folders=others, chosen=chosen.path.name, why=why)]


def _half_removed(name: str, folders: Sequence[Folder]) -> list[Message]:
    tail = MODULES[name][1:]
    return [
        phrase("{path} is what an interrupted uninstall of {name} left behind", path=folder.path / broken, name=name)
        for folder in folders
        for broken in folder.broken
        if normalise(broken[1:].partition("-")[0]) == normalise(tail)
    ]
