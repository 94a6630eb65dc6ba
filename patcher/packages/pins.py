"""Which versions a file asks for: requirements, freeze lists, pyproject.toml, a uv lock, `[pins]`, setup.py.

vllm>=0.12,<0.14; python_version >= "3.10"          {"vllm": "<0.14,>=0.12"}
-e git+https://…/verl#egg=verl                      {"verl": "@"}, installed and not told in which version
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patcher.errors import UsageError, message_of
from patcher.i18n import Phrase, phrase
from patcher.packages.agent.folders import normalise
from patcher.worktree import files
from patcher.worktree.python import UnreadableError, parse

if TYPE_CHECKING:
    from packaging.requirements import Requirement

_ADVICE = "Give requirements, a list by pip freeze or uv pip freeze, pyproject.toml, uv.lock or a [pins] table."
_OPTION = re.compile(r"\s+--[a-z-]+(?:[=\s]\S+)?")
_EDITABLE = re.compile(r"(?:-e|--editable)[ =]\S+#(?:\S*&)?egg=([A-Za-z0-9][\w.-]*)")
_WHEEL = re.compile(r"/([A-Za-z0-9_.]+)-([^-/]+)(?:-[^/]+)?-[^-/]+-[^-/]+-[^-/]+\.whl")


UNTOLD = "@"
"""What stands for a version that a place has and does not tell: `-e git+https://…#egg=verl`, `vllm @ file:///src`."""


def read_pins(file: Path) -> dict[str, str]:
    """Specifiers by normalised name; "" where any version will do, or `UNTOLD`.

    Raises UsageError for a file that cannot be read.
    """
    try:
        text = files.read_stream(file, files.SOURCE_BYTES).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            phrase("{path}: cannot be read", path=file),
            cause=message_of(error),
            advice=_ADVICE,
        ) from error
    if file.suffix in (".toml", ".lock"):
        return _of_toml(text, file)
    if file.suffix == ".py":
        return _of_setup(text)
    return _gathered(_of_lines(text, file))


def _of_lines(text: str, file: Path) -> Iterator[Requirement]:
    joined, start = "", 0
    for number, line in enumerate(text.splitlines(), start=1):
        start = start if joined else number
        joined += line.removesuffix("\\") + " "
        if line.endswith("\\"):
            continue
        written, joined = re.sub(r"(^|\s)#.*", "", joined).strip(), ""
        if editable := _EDITABLE.match(written):
            yield _requirement(f"{editable[1]} @ {written.split()[-1]}", file, start)
        elif written and not written.startswith("-"):
            yield _requirement(_OPTION.sub("", written), file, start)


def _requirement(written: str, file: Path, line: int = 0) -> Requirement:
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        return Requirement(written)
    except InvalidRequirement as error:
        place = f"{file}:{line}" if line else str(file)
        why = str(error).partition("\n")[0]
        raise _broken(place, phrase("{text!r} is no requirement: {why}", text=written, why=why)) from error


def _broken(place: object, why: Phrase) -> UsageError:
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
        marker = one.marker
        # `; sys_platform == "darwin"` is for another machine. A marker of an extra says nothing of the machine.
        if marker is not None and "extra" not in str(marker) and not marker.evaluate():
            continue
        specifier = _of_wheel(one.url) if one.url else str(one.specifier)
        found.setdefault(normalise(one.name), []).append(specifier)
    known = {name: [part for part in dict.fromkeys(parts) if part != UNTOLD] for name, parts in found.items()}
    return {name: ",".join(filter(None, parts)) if parts else UNTOLD for name, parts in known.items()}


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
