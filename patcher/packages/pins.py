"""Which versions a file asks for: requirements, freeze lists, pyproject.toml, a uv lock, `[pins]`, setup.py.

vllm>=0.12,<0.14; python_version >= "3.10"          {"vllm": "<0.14,>=0.12"}
-e git+https://…/verl#egg=verl                      {"verl": "@"}, installed and not told in which version
-r base.txt, -c limits.txt                          what these files ask for as well
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patcher.errors import UsageError, message_of
from patcher.i18n import Phrase, Phrases, phrase
from patcher.packages.agent.folders import normalise
from patcher.worktree import files
from patcher.worktree.python import UnreadableError, parse

if TYPE_CHECKING:
    from packaging.requirements import Requirement

_ADVICE = "Give requirements, a list by pip freeze or uv pip freeze, pyproject.toml, uv.lock or a [pins] table."
_OPTION = re.compile(r"\s+--[a-z-]+(?:[=\s]\S+)?")
_EDITABLE = re.compile(r"(?:-e|--editable)[ =]\S+#(?:\S*&)?egg=([A-Za-z0-9][\w.-]*)")
_INCLUDED = re.compile(r"(?:-[rc]\s*=?\s*|--(?:requirement|constraint)(?:\s*=\s*|\s+))(\S.*)")
"""`-r base.txt`, `-cbase.txt`, `--requirement=base.txt`."""
_WHEEL = re.compile(r"/([A-Za-z0-9_.]+)-([^-/]+)(?:-[^/]+)?-[^-/]+-[^-/]+-[^-/]+\.whl")


UNTOLD = "@"
"""What stands for a version that a place has and does not tell: `-e git+https://…#egg=verl`, `vllm @ file:///src`."""


def read_pins(file: Path) -> dict[str, str]:
    """Specifiers by normalised name; "" where any version will do, or `UNTOLD`.

    Raises UsageError for a file that cannot be read, and for requirements that contradict each other.
    """
    text = _text(file, file)
    if file.suffix in (".toml", ".lock"):
        return _of_toml(text, file)
    if file.suffix == ".py":
        return _of_setup(text)
    return _gathered(_agreeing(_of_lines(text, file, {file.resolve()})))


def _text(file: Path, place: object) -> str:
    """What the file says. Raises UsageError, about the place that names it."""
    try:
        return files.read_stream(file, files.SOURCE_BYTES).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise _broken(place, message_of(error)) from error


def _of_lines(text: str, file: Path, seen: set[Path]) -> Iterator[tuple[Requirement, str]]:
    """The requirements, each with its place, and those of the files that `-r` and `-c` name, each file once."""
    joined, start = "", 0
    for number, line in enumerate(text.splitlines(), start=1):
        start = start if joined else number
        joined += line.removesuffix("\\") + " "
        if line.endswith("\\"):
            continue
        written, joined = re.sub(r"(^|\s)#.*", "", joined).strip(), ""
        place = f"{file}:{start}"
        if editable := _EDITABLE.match(written):
            yield _requirement(f"{editable[1]} @ {written.split()[-1]}", place), place
        elif included := _INCLUDED.fullmatch(written):
            yield from _of_included(included[1].strip("\"'"), file, place, seen)
        elif written and not written.startswith("-"):
            yield _requirement(_OPTION.sub("", written), place), place


def _of_included(name: str, file: Path, place: str, seen: set[Path]) -> Iterator[tuple[Requirement, str]]:
    if "://" in name:
        raise UsageError(
            phrase("{place}: {name} lies on the network, and is not fetched", place=place, name=name),
            advice=phrase("Download that file, and name it there in its place."),
        )
    other = file.parent / name
    if other.resolve() not in seen:
        seen.add(other.resolve())
        yield from _of_lines(_text(other, f"{place}: {name}"), other, seen)


def _agreeing(listed: Iterable[tuple[Requirement, str]]) -> Iterator[Requirement]:
    """The requirements. Raises UsageError where one pins a version that another one rules out."""
    known: dict[str, list[tuple[str, str]]] = {}
    for one, place in listed:
        yield one
        if not _applies(one) or (specifier := _specifier_of(one)) in ("", UNTOLD):
            continue
        earlier = known.setdefault(normalise(one.name), [])
        for other, there in earlier:
            if _contradict(specifier, other):
                text = "{name} is {one} at {there}, and {other} at {place}"
                raise UsageError(
                    phrase(text, name=one.name, one=other, there=there, other=specifier, place=place),
                    advice=phrase("No version is both: correct one of the lines."),
                )
        earlier.append((specifier, place))


def _contradict(specifier: str, other: str) -> bool:
    """Whether the version that one of them pins is none that the other allows. `==2.9` allows 2.9+cu130."""
    from packaging.specifiers import SpecifierSet
    from packaging.version import InvalidVersion

    pairs = ((exact_version(specifier), other), (exact_version(other), specifier))
    try:
        allowed = [SpecifierSet(limits).contains(version, prereleases=True) for version, limits in pairs if version]
    except InvalidVersion:  # `===2.9-ours` is compared as text.
        return False
    return bool(allowed) and not any(allowed)


def exact_version(specifier: str) -> str | None:
    """The one version that a specifier names; None for a range. `==0.9.*` names no single release."""
    from packaging.specifiers import SpecifierSet

    clauses = SpecifierSet(specifier)
    exact = [one.version for one in clauses if one.operator in ("==", "===") and not one.version.endswith(".*")]
    return exact[0] if exact else None


def _requirement(written: str, place: object) -> Requirement:
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        return Requirement(written)
    except InvalidRequirement as error:
        why = str(error).partition("\n")[0]
        raise _broken(place, phrase("{text!r} is no requirement: {why}", text=written, why=why)) from error


def _broken(place: object, why: Phrase | Phrases | str) -> UsageError:
    return UsageError(
        phrase("{path}: cannot be read", path=place),
        cause=why,
        advice=_ADVICE,
    )


def _of_toml(text: str, file: Path) -> dict[str, str]:
    """Of a `[pins]` table, a lock of uv or poetry, or a pyproject.toml, told apart by their tables."""
    from patcher.tables.mistakes import Mistake
    from patcher.tables.toml import decode

    data = decode(text, file)
    if isinstance(data, Mistake):
        raise _broken(file, data.sentence)
    match data:
        # A table of `uky-patch.toml`, where a bare version means exactly that one.
        case {"pins": dict(pins)}:
            return {normalise(name): _specifier(version, file) for name, version in pins.items()}
        # uv.lock and poetry.lock.
        case {"package": list(packages)}:
            named = (one for one in packages if isinstance(one, dict) and "name" in one and "version" in one)
            return {normalise(str(one["name"])): f"=={one['version']}" for one in named}
        case _:
            return _gathered(_requirement(written, file) for written in _dependencies(data))


def _specifier(version: object, file: Path) -> str:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    written = str(version).strip()
    exact = written if written == "none" or written[:1] in "<>=!~" else f"=={written}"
    try:
        return exact if exact == "none" else str(SpecifierSet(exact))
    except InvalidSpecifier as error:
        raise _broken(file, phrase("{version} is no PEP 440 version", version=repr(written))) from error


def _dependencies(data: Mapping[str, Any]) -> Iterator[str]:
    """What pyproject.toml asks for: dependencies, extras and groups."""
    project = data.get("project")
    found: list[Any] = []
    if isinstance(project, dict):
        found.append(project.get("dependencies"))
        found += _values(project.get("optional-dependencies"))
    found += _values(data.get("dependency-groups"))
    for listed in found:
        yield from (one for one in listed or () if isinstance(one, str))


def _values(table: object) -> list[Any]:
    return list(table.values()) if isinstance(table, dict) else []


def _of_setup(text: str) -> dict[str, str]:
    """Requirements written as literals; what is computed does not count, and a file that is no Python says nothing."""
    from packaging.requirements import InvalidRequirement, Requirement

    found = []
    try:
        nodes = ast.walk(parse(text))
    except UnreadableError:
        return {}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.search(r"[<>=~]=?\s*\d", node.value):
            try:
                found.append(Requirement(node.value))
            except InvalidRequirement:
                continue
    return _gathered(found)


def _gathered(requirements: Iterable[Requirement]) -> dict[str, str]:
    """By name, with what several say of one put together; those for other machines left out."""
    found: dict[str, list[str]] = {}
    for one in requirements:
        if _applies(one):
            found.setdefault(normalise(one.name), []).append(_specifier_of(one))
    known = {name: [part for part in dict.fromkeys(parts) if part != UNTOLD] for name, parts in found.items()}
    return {name: ",".join(filter(None, parts)) if parts else UNTOLD for name, parts in known.items()}


def _applies(one: Requirement) -> bool:
    """Whether it is for this machine: `; sys_platform == "darwin"` is for another one."""
    # A marker of an extra says nothing of the machine.
    return one.marker is None or "extra" in str(one.marker) or one.marker.evaluate()


def _specifier_of(one: Requirement) -> str:
    return _of_wheel(one.url) if one.url else str(one.specifier)


def _of_wheel(url: str) -> str:
    """What the name of a wheel says of its version; `UNTOLD` for any other place, and for `vllm-nightly-….whl`."""
    from urllib.parse import unquote

    from packaging.version import InvalidVersion, Version

    # pip freeze writes `+` of a local version as `%2B`: `flash_attn-2.7.4%2Bcu12torch2.6-….whl`.
    wheel = _WHEEL.search(unquote(url))
    if not wheel:
        return UNTOLD
    try:
        Version(wheel[2])
    except InvalidVersion:
        return UNTOLD
    return f"=={wheel[2]}"
