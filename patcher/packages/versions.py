"""Whether a version satisfies a specifier (a version range), where it may be a nightly or a fork's development version.

0.12.1          >=0.12,<0.14        Yes
0.9.2.dev12     >=0.9.2             Yes, of vLLM: a nightly counts as the release it leads to
0.8.0.dev0      >=0.8               Undecided, of verl: its files may be those of 0.7, of 0.8 or of 0.9
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from patcher.i18n import Phrase, phrase

if TYPE_CHECKING:
    from packaging.specifiers import Specifier
    from packaging.version import Version

Kind: TypeAlias = Literal["dependency", "tree"]
"""`tree` is verl's own version, as a fork's files state it; `dependency` is anything that is installed."""

_BEYOND = 999_999
"""A last part that is higher than that of any release. Set by hand."""
_PLAIN_VERSION = re.compile(r"(\d+(?:\.\d+)*)(?:\+[a-z0-9.]+)?")
_PLAIN_CLAUSE = re.compile(r"(>=|<=|==|!=|<|>)\s*(\d+(?:\.\d+)*)")
_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge, "<=": operator.le, "==": operator.eq, "!=": operator.ne, "<": operator.lt, ">": operator.gt,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Yes:
    """The specifier holds. `reason` is "" unless the version had to be read as another."""

    reason: Phrase | str = ""


@dataclass(frozen=True, slots=True)
class No:
    """The specifier does not hold."""

    reason: Phrase | str = ""


@dataclass(frozen=True, slots=True)
class Undecided:
    """The version alone cannot tell; the sources have to."""

    reason: Phrase | str


Verdict: TypeAlias = Yes | No | Undecided


def satisfies(version: str, specifier: str, *, kind: Kind) -> Verdict:
    """Hold `version` to a PEP 440 `specifier`; pre-releases always count, and local parts (`+cu129`) do not.

    A pre-release or nightly counts as the release it leads to, as a nightly of a dependency is cut after the change. A
    `.dev` version of verl may look like the release before, like its own, or like the next: it is undecided where they
    differ. A specifier that itself names a pre-release or a local part is compared exactly.
    Raises packaging's `InvalidSpecifier`.
    """
    if (plainly := _plainly(version, specifier)) is not None:
        return Yes() if plainly else No()
    from packaging.version import InvalidVersion, Version

    clauses = _clauses(specifier)
    try:
        found = Version(version)
    except InvalidVersion:
        return Undecided(phrase("{version} is no PEP 440 version", version=version)) if clauses else Yes()
    release = _release(found)
    holds = _holds(found, release, clauses)
    if not found.is_prerelease:
        return Yes() if holds else No()
    fields = {"version": version, "release": str(release), "spec": specifier}
    # A nightly of vLLM, 0.9.2.dev12, is cut after the change that the record is about, so it counts as 0.9.2.
    if kind == "dependency" or found.dev is None:
        reason = phrase("{version} is a pre-release and counts as {release}", **fields)
        return Yes(reason) if holds else No(reason)
    # verl's main says 0.8.0.dev from the day that 0.7 branched off until shortly before 0.9.0.
    below, above = _just_below(release), _just_above(release)
    beside = [_holds(found, candidate, clauses) for candidate in (_first_of(below), below, release, *above)]
    if all(beside):
        return Yes(phrase("{version} is like a release beside {release}, and all of these are in {spec}", **fields))
    if any(beside) or any(_holds(found, candidate, clauses) for candidate in _named_in(clauses, below)):
        some = "{version} is like a release beside {release}, and not all of these are in {spec}"
        return Undecided(phrase(some, **fields))
    return No(phrase("{version} is like a release beside {release}, and none of these is in {spec}", **fields))


def is_prerelease(version: str) -> bool:
    """Whether the version is a pre-release, a nightly, or none by PEP 440: its number then says little."""
    if _PLAIN_VERSION.fullmatch(version):
        return False
    from packaging.version import InvalidVersion, Version

    try:
        return Version(version).is_prerelease
    except InvalidVersion:
        return True


def _plainly(version: str, specifier: str) -> bool | None:
    """Numbers held to numbers, the common case, without importing packaging; None for anything else."""
    found = _PLAIN_VERSION.fullmatch(version)
    clauses = [_PLAIN_CLAUSE.fullmatch(clause.strip()) for clause in specifier.split(",")]
    if found is None or not all(clauses):
        return None
    return all(_COMPARE[clause[1]](_numbers(found[1]), _numbers(clause[2])) for clause in clauses if clause)


def _numbers(release: str) -> tuple[int, ...]:
    """The numbers of a release, without zeros at the end: 0.7.0 and 0.7 are the same."""
    numbers = [int(part) for part in release.split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


@lru_cache(maxsize=512)
def _clauses(specifier: str) -> tuple[Specifier, ...]:
    from packaging.specifiers import SpecifierSet

    return tuple(SpecifierSet(specifier))


def _holds(found: Version, read_as: Version, clauses: tuple[Specifier, ...]) -> bool:
    return all(clause.contains(found if _is_exact(clause) else read_as, prereleases=True) for clause in clauses)


def _is_exact(clause: Specifier) -> bool:
    """Whether the clause names a pre-release or a local part, and so holds to the letter."""
    from packaging.version import InvalidVersion, Version

    if clause.operator == "===":
        return True
    try:
        named = Version(clause.version.removesuffix(".*"))
    except InvalidVersion:
        return False
    return named.is_prerelease or named.local is not None


def _release(version: Version) -> Version:
    from packaging.version import Version

    return Version(version.base_version + (f".post{version.post}" if version.post is not None else ""))


def _just_below(version: Version) -> Version:
    """A version below `version` and above every release before it: 0.6.999999 for 0.7.0."""
    from packaging.version import Version

    *parts, last = _numbers(".".join(map(str, version.release))) or (0,)
    return Version(".".join(map(str, (*parts, max(last - 1, 0), _BEYOND))))


def _first_of(version: Version) -> Version:
    """The first release of a series: 0.6 for 0.6.999999."""
    from packaging.version import Version

    return Version(".".join(map(str, version.release[:-1])))


def _just_above(version: Version) -> tuple[Version, Version]:
    """A version above every other of the same series, and the next series' first: 0.7.999999 and 0.8 for 0.7.0."""
    from packaging.version import Version

    major, minor = (*version.release, 0)[:2]
    return Version(f"{major}.{minor}.{_BEYOND}"), Version(f"{major}.{minor + 1}")


def _named_in(clauses: tuple[Specifier, ...], below: Version) -> list[Version]:
    """Releases of the series just below that the specifier names: a fork may well look like one of them."""
    from packaging.version import InvalidVersion, Version

    found = []
    for clause in clauses:
        try:
            named = Version(clause.version.removesuffix(".*"))
        except InvalidVersion:
            continue
        if named.release[: len(below.release) - 1] == below.release[:-1] and named < below:
            found.append(named)
    return found
