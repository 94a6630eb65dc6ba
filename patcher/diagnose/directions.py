"""Since when a name is gone, or from when on it is there: the sources of the package's releases are asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib.metadata import distributions
from typing import TYPE_CHECKING

from packaging.markers import UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from patcher.analysis.symbols import Symbols
from patcher.check.history import Bisection
from patcher.check.rules.imports import moved_in
from patcher.check.targets import release_folder
from patcher.diagnose.diagnosis import Direction
from patcher.diagnose.exception_message import MessageParts
from patcher.diagnose.explaining import distribution
from patcher.errors import ReleaseError, UkyError, message_of
from patcher.i18n import phrase
from patcher.packages.agent.folders import package_in
from patcher.packages.chosen_interpreter import find_interpreter
from patcher.packages.releases import versions

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

    from patcher.i18n import Phrase, Phrases
    from patcher.session.session import Session

_MOST_LOOKS = 10
"""Releases that are looked at for one name: halving a thousand takes as many."""
Has = Callable[[str], "bool | None"]
"""Whether a release has the name; None where that cannot be decided, or the release cannot be had."""


def direction_at(session: Session, parts: MessageParts, known: Mapping[str, str]) -> Direction | None:
    """As `direction_of`, with what is installed here and refuses the release that has the name."""
    found = direction_of(parts, known)
    return replace(found, against=refusals(_installed_folders(session), found, known)) if found is not None else None


def direction_of(parts: MessageParts, known: Mapping[str, str]) -> Direction | None:
    """Where the package's releases have the name; None where none is missing, or the version at hand has it."""
    if not parts.package or (parts.matter == "missing-module" and "." not in parts.symbol):
        return None
    name = distribution(parts.package)
    version = known.get(name)
    if version is None:
        return None
    try:
        releases = _final(versions(name))
    except ReleaseError as error:
        return Direction(name, parts.symbol, unknown=message_of(error))

    def symbols(release: str) -> Symbols | None:
        try:
            folder = package_in(release_folder(name, release), parts.package)
        except ReleaseError:
            return None
        return Symbols(folder) if folder is not None else None

    @cache
    def has(release: str) -> bool | None:
        found = symbols(release)
        return found.has(parts.symbol) if found is not None else None

    found = _direction(name, parts.symbol, version, releases, has)
    if found is None or not found.removed_in or (here := symbols(version)) is None:
        return found
    module, _, last = parts.symbol.rpartition(".")
    return replace(found, moved_to=moved_in(here, module, last) if parts.matter == "missing-name" else "")


def _direction(name: str, symbol: str, version: str, releases: Sequence[str], has: Has) -> Direction | None:
    here = has(version)
    if here is None:
        return Direction(name, symbol, unknown=_undecided(name, version))
    if here:
        return None
    at = Version(version)
    earlier = [one for one in releases if Version(one) < at]
    later = [one for one in releases if Version(one) > at]
    removed = _first(earlier, version, lambda release: _not(has(release)))
    if removed is not None:
        return Direction(name, symbol, removed_in=removed)
    added = _first([version, *later[:-1]], later[-1], has) if later and has(later[-1]) else None
    if added is not None:
        return Direction(name, symbol, added_in=added)
    return Direction(name, symbol, unknown=phrase("no release of {name} that was looked at has it", name=name))


def refusals(folders: Sequence[str], direction: Direction, known: Mapping[str, str]) -> tuple[str, ...]:
    """Installed packages that would not take any of the releases that have the name. Those of another environment than
    the log's say nothing of it."""
    if not direction.requirement:
        return ()
    wanted, edge = Requirement(direction.requirement), direction.removed_in or direction.added_in
    found: list[str] = []
    for one in distributions(path=list(folders)):
        name = canonicalize_name(one.metadata["Name"] or "")
        if known.get(name, one.version) != one.version:
            return ()
        for text in one.requires or ():
            with suppress(InvalidRequirement, InvalidVersion, UndefinedEnvironmentName):  # What pip cannot read either.
                required = Requirement(text)
                if canonicalize_name(required.name) != canonicalize_name(wanted.name):
                    continue
                applies = required.marker is None or required.marker.evaluate({"extra": ""})
                if applies and not _overlap(required.specifier, edge, below=bool(direction.removed_in)):
                    found.append(f"{name} {one.version}: {required.name}{required.specifier}")
    return tuple(sorted(set(found)))


def _overlap(specifier: SpecifierSet, edge: str, *, below: bool) -> bool:
    """Whether the specifier takes a release on the right side of the edge: by its own bounds, as far as they tell."""
    at = Version(edge)
    for part in specifier:
        if part.operator in ("==", "==="):
            return (Version(part.version.removesuffix(".*")) < at) is below
        bound = Version(part.version)
        if below and part.operator in (">=", ">", "~=") and bound >= at:
            return False
        if not below and part.operator in ("<", "<=") and (bound < at or (bound == at and part.operator == "<")):
            return False
    return True


def _installed_folders(session: Session) -> list[str]:
    try:
        interpreter, _ = find_interpreter(session.environment.python)
    except UkyError:
        return []
    return [str(folder) for folder in (*interpreter.extra, *interpreter.site)]


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


def _first(releases: Sequence[str], target: str, shows: Has) -> str | None:
    """The first release of the last run of those that show it up to the target; None where all of them do."""

    def look(release: str, wanted: AbstractSet[str]) -> AbstractSet[str] | None:
        found = shows(release)
        return None if found is None else wanted if found else frozenset()

    return Bisection(releases, {"it"}, look, target, most=_MOST_LOOKS).run()["it"]


def _undecided(name: str, version: str) -> Phrase | Phrases:
    return phrase("the sources of {name} {version} do not tell, or cannot be had", name=name, version=version)


def _final(releases: Sequence[str]) -> list[str]:
    found = []
    for one in releases:
        try:
            version = Version(one)
        except InvalidVersion:
            continue
        if not version.is_prerelease:
            found.append((version, one))
    return [one for _, one in sorted(found)]
