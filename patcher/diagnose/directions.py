"""In which releases of a package a missing name exists: the sources of its releases are searched.

A `Direction` says in which direction the packages are apart: the name was removed in a release, or came with a later
one. The sources are downloaded where they are not in the cache.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.markers import UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from patcher.analysis.meaning.moves import moved_in, spelled_alike
from patcher.analysis.symbols import Symbols
from patcher.diagnose.asking_code import (
    argument_of_model_part,
    asked_symbol,
    field_of_configuration,
    folder_of,
    is_unimported_module,
    lacks_field,
)
from patcher.diagnose.asking_releases import with_asker
from patcher.diagnose.diagnosis import Direction
from patcher.diagnose.exception_message import MessageParts
from patcher.diagnose.fetch_limit import OutOfTimeError
from patcher.diagnose.frame import Frame, distribution, is_installed
from patcher.diagnose.nearest_keys import came_for, keys_of
from patcher.diagnose.parties import is_beside, owner_of, party
from patcher.diagnose.release_search import Has, final, first, negated, release_folder
from patcher.errors import ReleaseError, UkyError, message_of
from patcher.i18n import phrase
from patcher.packages.chosen_interpreter import find_interpreter
from patcher.packages.releases import versions

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

    from patcher.i18n import Phrase, Phrases
    from patcher.session.session import Session

_OF_ONES_OWN = frozenset(
    ("common", "config", "data", "lib", "model", "models", "scripts", "src", "tests", "tools", "utils")
)
"""Modules that people often have in their own trees. Packages of these names on PyPI have nothing to do with them."""
_PLUGIN = re.compile(r"(?:^|/)(?P<name>vllm_(?:ascend|omni|gaudi|spyre|metax|kunlun|rbln|neuron|mlu|musa))/")
"""Packages that change vLLM from outside, each release of which is made for one of vLLM's."""
_CHECKED_OUT = frozenset(("verl", "vllm", "sglang", "transformers", "megatron", "trl", "peft", "accelerate", "ray"))
"""Packages that people install from a checkout. Their files then lie outside of site-packages."""


def direction_at(
    session: Session, parts: MessageParts, known: Mapping[str, str], at: Frame | None = None
) -> Direction | None:
    """As `direction_of`, and also: the first release of the asking package that no longer asks, and which installed
    packages refuse either release.

    Args:
        at: the frame that asks for the name. The imports of its file tell the module of a class or function.
    """
    own = parts.package and (party(at) == distribution(parts.package) or is_beside(at, parts))
    if own and at is not None and (at.installed or parts.package != "verl"):
        return None  # The package lacks its own name: the installation, or what is optional in it, is incomplete.
    plugin = _PLUGIN.search(at.path) if at is not None and parts.package == "vllm" else None
    if plugin is not None:
        text = "{asker} is made for one release of {name}: take the two that go together, and move neither alone"
        name = plugin["name"].replace("_", "-")
        return Direction("vllm", parts.symbol, unknown=phrase(text, asker=name, name="vllm"))
    folders = _installed_folders(session)
    known = {**_installed_versions(folders), **known}
    symbol = ""
    if not parts.package and at is not None and at.package:
        symbol = asked_symbol(parts, _source_of(session, at, folders, known))
    symbol = symbol or argument_of_model_part(parts)
    of_others = owner_of(parts.symbol) not in ("", "transformers")
    field = field_of_configuration(parts) if not symbol and not of_others else ""
    symbol = symbol or field
    if symbol and at is not None and at.installed and party(at) == distribution(symbol.partition(".")[0]):
        return None  # A release that lacks what its own code asks for: no other one tells which ran.
    if symbol:
        parts = replace(parts, matter="missing-name", symbol=symbol)
    found = direction_of(parts, known, moves=not symbol)
    if found is None:
        return None
    if field and not (found.added_in or found.removed_in):
        return None  # The class may be of the model's own code, or may get the field from a file.
    if symbol and found.unknown and at is not None and found.distribution == distribution(at.package):
        return None  # A package and its own class: what is usual says more than that no release tells.
    if at is not None and at.installed and at.package not in ("", parts.package):
        with suppress(OutOfTimeError):
            found = with_asker(found, at, parts, known)
    against = refusals(folders, found.requirement, known)
    return replace(found, against=against, against_asker=refusals(folders, found.asker_requirement, known))


def direction_of(parts: MessageParts, known: Mapping[str, str], *, moves: bool = True) -> Direction | None:
    """Which releases of the package have the name; None where no name is missing, or the known version has it.

    If the version is unknown, the newest release stands in for it; the run may then have had an older one.

    Args:
        known: versions by distribution.
        moves: whether to search the same release for the name in another module.
    """
    if not parts.package or (parts.matter == "missing-module" and "." not in parts.symbol):
        return None
    if parts.file and not is_installed(parts.file) and parts.package not in _CHECKED_OUT:
        return None  # The user's own package may have a name that exists on PyPI.
    name = distribution(parts.package)
    if name in _OF_ONES_OWN and name not in known:
        return None
    try:
        releases = final(versions(name))
    except ReleaseError as error:
        return Direction(name, parts.symbol, unknown=message_of(error)) if name in known else None
    version = known.get(name) or next(reversed(releases), None)
    if version is None:
        return None

    def symbols(release: str) -> Symbols | None:
        try:
            folder = folder_of(release_folder(name, release), parts.package)
        except ReleaseError:
            return None
        return Symbols(folder) if folder is not None else None

    owner = re.split(r"\.\w+$|\(", parts.symbol)[0] if not moves else ""
    field = not moves and name == "transformers" and owner.endswith("Config")

    looked: dict[str, bool | None] = {}

    def has(release: str) -> bool | None:
        if release not in looked:
            looked[release] = ask(release)
        return looked[release]

    def ask(release: str) -> bool | None:
        found = symbols(release)
        # If the class itself is missing from a release, its attribute says nothing of that release.
        if found is None or (owner and found.has(owner) is False):
            return None
        known = found.has(parts.symbol)
        folder = folder_of(release_folder(name, release), parts.package) if known is None and field else None
        return False if folder is not None and lacks_field(folder, parts.symbol) else known

    @cache
    def has_near(release: str) -> bool | None:
        found = symbols(release) if parts.near else None
        return found.has(parts.near) if found is not None else None

    found = _direction(name, parts.symbol, version, releases, has)
    if name not in known:
        found = _of_unknown_release(name, parts.symbol, found, releases, has)
        if found is not None and _never_without(found, releases, has_near):
            found = Direction(name, parts.symbol, unknown=_hidden(name, parts))
    if parts.cut and found is not None and not found.requirement:
        return None
    if found is not None and found.added_in in releases and not found.removed_in:
        found = replace(found, again=any(map(looked.get, releases[: releases.index(found.added_in)])))
    # `from package import name` imports a module of that name; `package.name` does not.
    if found is None and moves and not parts.file and is_unimported_module(symbols(version), parts.symbol):
        text = "{symbol} is a module of {name} that nothing has imported by then: write import {symbol} before"
        return Direction(name, parts.symbol, unknown=phrase(text, symbol=parts.symbol, name=name))
    if found is None and moves and not parts.cut and has(version):
        return Direction(name, parts.symbol, unknown=_there(name, parts, version, known=name in known))
    if found is not None and found.unknown and not parts.near and (here := symbols(version)) is not None:
        near = spelled_alike(here, parts.symbol) if here.has(parts.symbol) is False else ""
        if near:
            text = "no release of {name} that was looked at has {symbol}; it may be a misspelling of {near}"
            found = replace(found, unknown=phrase(text, name=name, symbol=parts.symbol, near=near))
    if found is None or not found.removed_in or not moves or (here := symbols(version)) is None:
        return found
    module, _, last = parts.symbol.rpartition(".")
    return replace(found, moved_to=moved_in(here, module, last) if parts.matter == "missing-name" else "")


_MODELS = ("configuration_auto.py", "auto_mappings.py")
"""The files of `transformers/models/auto` that list the types of models."""


def direction_of_model(session: Session, kind: str, known: Mapping[str, str]) -> Direction | None:
    """Which releases of transformers know a type of model, as `model_type` of its config.json names it; None where the
    known version knows it, or the releases do not tell."""
    name = "transformers"
    try:
        releases = final(versions(name))
    except ReleaseError:
        return None

    @cache
    def knows(release: str) -> bool | None:
        try:
            folder = folder_of(release_folder(name, release), name)
        except ReleaseError:
            return None
        files = [folder / "models" / "auto" / one for one in _MODELS] if folder is not None else []
        texts = [one.read_text(encoding="utf-8", errors="replace") for one in files if one.is_file()]
        return any(f'"{kind}"' in text for text in texts) if texts else None

    folders = _installed_folders(session)
    known = {**_installed_versions(folders), **known}
    version = known.get(name) or next(reversed(releases), None)
    if version is None:
        return None
    found = _direction(name, kind, version, releases, knows)
    if name not in known:
        found = _of_unknown_release(name, kind, found, releases, knows)
    if found is None or found.requirement:
        return replace(found, against=refusals(folders, found.requirement, known)) if found is not None else None
    if knows(releases[-1]) is not False:
        return None
    text = (
        "no release of {name} that was looked at knows {kind}: such a model comes with code of its own, which has "
        "to be allowed (trust_remote_code), or imported first where it registers itself (AutoConfig.register); "
        "some are known to an engine (vLLM, SGLang) alone"
    )
    return replace(found, unknown=phrase(text, name=name, kind=kind))


def direction_of_key(key: str, tree: str) -> tuple[Direction | None, tuple[str, ...]]:
    """Which releases of verl have a configuration key, and the keys that replaced it.

    Args:
        tree: the release of verl that the tree is of.
    """
    try:
        releases = final(versions("verl"))
    except ReleaseError as error:
        return Direction("verl", key, unknown=message_of(error)), ()

    @cache
    def keys(release: str) -> frozenset[str]:
        try:
            return keys_of(release_folder("verl", release) / "verl")
        except ReleaseError:
            return frozenset()

    try:
        at = max((one for one in releases if Version(one) <= Version(tree)), key=Version, default="")
    except InvalidVersion:  # A tree may have a version of its own form.
        at = ""
    if not at:
        return None, ()
    found = _direction("verl", key, at, releases, lambda release: key in keys(release) if keys(release) else None)
    if found is None or not found.removed_in:
        return found, ()
    before = next(one for one in reversed(releases[: releases.index(found.removed_in)]) if keys(one))
    if before != releases[releases.index(found.removed_in) - 1]:  # A wheel without the YAML files.
        text = "{name} {before} has {symbol}, {version} does not; the releases between them do not tell"
        between = phrase(text, name="verl", before=before, symbol=key, version=found.removed_in)
        found = replace(found, removed_in="", unknown=between)
        return found, ()
    return found, came_for(key, keys(before), keys(found.removed_in))


def _direction(name: str, symbol: str, version: str, releases: Sequence[str], release_has: Has) -> Direction | None:
    """The direction from the release at hand, `version`, to one that has the name; None where that release has it."""
    seen: dict[str, bool | None] = {}

    def has(release: str) -> bool | None:
        if release not in seen:
            seen[release] = release_has(release)
        return seen[release]

    here = has(version)
    if here is None:
        text = "the sources of {name} {version} do not tell, or cannot be had"
        return Direction(name, symbol, unknown=phrase(text, name=name, version=version))
    if here:
        return None
    at = Version(version)
    earlier = [one for one in releases if Version(one) < at]
    later = [one for one in releases if Version(one) > at]
    removed = first(earlier, version, lambda release: negated(has(release)))
    if removed is not None:
        return Direction(name, symbol, removed_in=removed)
    added = first([version, *later[:-1]], later[-1], has) if later and has(later[-1]) else None
    if added is not None:
        return Direction(name, symbol, added_in=added)
    return Direction(name, symbol, unknown=_between(name, symbol, earlier, seen))


def _of_unknown_release(
    name: str, symbol: str, found: Direction | None, releases: Sequence[str], has: Has
) -> Direction | None:
    """The direction, completed with the first release that has the name, unless the oldest release has it already.

    `found` was made for the newest release, because the installed one is unknown. It is None where the newest one has
    the name; then the installed release is an older one that lacks it.
    """
    if found is not None and not found.removed_in:
        return found
    having = releases[: releases.index(found.removed_in)] if found is not None else releases
    if not having or not has(having[-1]):
        return found
    added = first(having[:-1], having[-1], has)
    if added is None:
        return found
    return replace(found, added_in=added) if found is not None else Direction(name, symbol, added_in=added)


def _never_without(found: Direction, releases: Sequence[str], has_near: Has) -> bool:
    """Whether the releases that lack the name also lack `MessageParts.near`, the similar name that Python suggested.

    The installed release has the suggested name, so in that case it is none of these releases.
    """
    lacking = releases[releases.index(found.added_in) - 1 :][:1] if found.added_in in releases else []
    lacking = [*lacking, *([found.removed_in] if found.removed_in else [])]
    return bool(lacking) and all(has_near(release) is False for release in lacking)


def _hidden(name: str, parts: MessageParts) -> Phrase | Phrases:
    """The explanation for a name that exists and still cannot be imported.

    `from package import name` hides an AttributeError that a lazily loading package raises while it imports `name`.
    """
    text = (
        "where {name} lacks {symbol}, it lacks {near} too: loading what holds it failed, "
        "of which Python tells nothing here, or the installation is incomplete"
    )
    return phrase(text, name=name, symbol=parts.symbol, near=parts.near)


def _there(name: str, parts: MessageParts, version: str, *, known: bool) -> Phrase:
    """The explanation for a name that the release at hand has, or every release where that is not known."""
    text = (
        "{name} {version} has {symbol}: its files are of several releases or incomplete, another {module}, a file, a "
        "folder or a package, is imported in its place, or it is defined only under a condition"
    )
    if not known:
        text = (
            "the releases of {name} that were looked at have {symbol}: the files are incomplete, another {module}, a "
            "file, a folder or a package, is imported in their place, or it is defined only under a condition"
        )
    return phrase(text, name=name, version=version, symbol=parts.symbol, module=parts.package)


def _between(name: str, symbol: str, earlier: Sequence[str], seen: Mapping[str, bool | None]) -> Phrase | Phrases:
    """What the searched releases show where they name no single release."""
    old = next((one for one in reversed(earlier) if seen.get(one)), None)
    if old is not None:
        new = next(one for one in (*earlier[earlier.index(old) :], *seen) if seen.get(one) is False)
        return phrase("{name} {old} has {symbol}, {new} does not", name=name, old=old, symbol=symbol, new=new)
    if None in seen.values():
        text = "no release of {name} that was looked at has it, and some cannot be had here"
        return phrase(text, name=name)
    return phrase("no release of {name} that was looked at has it", name=name)


def _source_of(session: Session, at: Frame, folders: Sequence[str], known: Mapping[str, str]) -> str:
    """The source text of a frame's file: from the tree, the installed packages, or a release; "" where it is not
    found."""
    places = [Path(folder) / at.path for folder in folders]
    if not at.installed and session.has_tree_at_hand:
        places = [session.tree.root / at.path]
    with suppress(ReleaseError, OutOfTimeError):
        if at.installed and not any(place.is_file() for place in places):
            name = distribution(at.package)
            version = known.get(name) or next(reversed(final(versions(name))), "")
            package = folder_of(release_folder(name, version), at.package) if version else None
            places += [package.parent / at.path] if package is not None else []
    return next((place.read_text(encoding="utf-8", errors="replace") for place in places if place.is_file()), "")


def _installed_versions(folders: Sequence[str]) -> dict[str, str]:
    return {canonicalize_name(one.metadata["Name"] or ""): one.version for one in distributions(path=list(folders))}


def refusals(folders: Sequence[str], requirement: str, known: Mapping[str, str]) -> tuple[str, ...]:
    """Installed packages whose requirements exclude every release that is required.

    Empty if the packages here are not those of the log's environment.
    """
    if not requirement:
        return ()
    wanted = Requirement(requirement)
    found: list[str] = []
    for one in distributions(path=list(folders)):
        name = canonicalize_name(one.metadata["Name"] or "")
        if known.get(name, one.version) != one.version:
            return ()
        for text in one.requires or ():
            with suppress(
                InvalidRequirement, InvalidVersion, UndefinedEnvironmentName
            ):  # pip cannot read those either.
                required = Requirement(text)
                if canonicalize_name(required.name) != canonicalize_name(wanted.name):
                    continue
                applies = required.marker is None or required.marker.evaluate({"extra": ""})
                if applies and not all(
                    _overlap(required.specifier, bound.version, below=bound.operator == "<")
                    for bound in wanted.specifier
                ):
                    found.append(f"{name} {one.version}: {required.name}{required.specifier}")
    return tuple(sorted(set(found)))


def _overlap(specifier: SpecifierSet, edge: str, *, below: bool) -> bool:
    """Whether the specifier allows a release on the required side of `edge`, judged by its own bounds.

    The judgement is rough: exclusions such as `!=1.2` are ignored.
    """
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
