"""Which releases are meant by what people write: `>=0.6`, `0.7.0`, `vllm>=0.9`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from patcher.errors import UsageError
from patcher.i18n import phrase

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

    from patcher.records.model import Record

FIRST = {"vllm": "0.9.0"}
"""The oldest release of a package that a matrix has a column for, unless told otherwise."""


def wanted_releases(package: str, specifier: str, known: Iterable[str]) -> tuple[str, ...]:
    """The final releases among `known` that the specifier takes, oldest first; pre-releases where it names one.

    Raises UsageError where it cannot be read or takes none.
    """
    from packaging.version import Version

    asked = _specifier(package, specifier)
    found = sorted(asked.filter(set(known), prereleases=asked.prereleases or False), key=Version)
    if not found:
        near = ", ".join(sorted(known, key=Version, reverse=True)[:4])
        raise UsageError(
            phrase("no release of {name} is in {spec}", name=package, spec=specifier),
            advice=phrase("The newest releases are {versions}.", versions=near),
        )
    return tuple(found)


def parse_against(texts: Sequence[str]) -> tuple[tuple[str, str], dict[str, str]]:
    """The package whose releases vary, with its specifier, and the packages that stay at one version.

    Raises UsageError where an item cannot be read, or where more than one package varies.
    """
    from packaging.requirements import InvalidRequirement, Requirement

    varying: list[tuple[str, str]] = []
    fixed: dict[str, str] = {}
    for text in texts:
        try:
            asked = Requirement(text)
        except InvalidRequirement as error:
            raise UsageError(
                phrase("--against {item!r} cannot be read", item=text),
                advice=phrase('Write it as "vllm>=0.9" or transformers==4.57.6.'),
            ) from error
        pins = [part.version for part in asked.specifier if part.operator in ("==", "===") and "*" not in part.version]
        if len(texts) > 1 and len(pins) == len(asked.specifier) == 1:
            fixed[asked.name] = pins[0]
        else:
            varying.append((asked.name, str(asked.specifier) or f">={FIRST.get(asked.name, '0')}"))
    if not varying:
        names = list(fixed)
        varying.append((names[0], f"=={fixed.pop(names[0])}") if names else ("vllm", f">={FIRST['vllm']}"))
    if len(varying) > 1:
        raise UsageError(
            phrase("a matrix has the releases of one package: {names}", names=", ".join(name for name, _ in varying)),
            advice=phrase("Pin the others with ==, for example transformers==4.57.6."),
        )
    return varying[0], fixed


def known_to_records(records: Iterable[Record]) -> str:
    """The specifier of the verl releases that the records speak of: from the oldest that one of them names."""
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

    named = [
        Version(part.version)
        for record in records
        for part in SpecifierSet(record.when.versions.get("verl", ""))
        if part.operator in (">=", "==", "~=")
    ]
    return f">={min(named)}" if named else ""


def _specifier(package: str, text: str) -> SpecifierSet:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import InvalidVersion, Version

    try:
        return SpecifierSet(f"=={Version(text)}", prereleases=Version(text).is_prerelease)
    except InvalidVersion:
        pass
    try:
        return SpecifierSet(text.removeprefix(package))
    except InvalidSpecifier as error:
        raise UsageError(
            phrase("{text!r} is no version range", text=text), advice=phrase('Write it as ">=0.6,<0.9" or 0.7.0.')
        ) from error
