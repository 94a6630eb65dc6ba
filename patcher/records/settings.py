"""Environment variables and hydra overrides as records: where one counts, what it is set to and why.

Parsed as strictly as patches are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from patcher.data import shipped
from patcher.errors import RecordError
from patcher.i18n import Phrases, phrase
from patcher.records.parse import DISTRIBUTIONS
from patcher.tables.mistakes import Checker, Mistake
from patcher.tables.toml import decode
from patcher.worktree import files

Profile = Literal["standard", "debug", "fast-load", "fault"]
"""The run scripts that set a variable; `fault` is for the time that a fault is being looked for."""
Reader = Literal["vllm", "torch", "triton", "ray", "nccl", "cuda", "blas", "tokenizers", "loader", "verl", "nothing"]
"""Who reads a variable; `blas` stands for OpenMP, OpenBLAS and MKL, `loader` for the dynamic loader."""

_KEYS = ("id", "variable", "value", "profiles", "reader", "reason", "instead", "zh", "when", "override")
_OVERRIDE_KEYS = ("key", "value", "add", "profiles", "when")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEY = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+", re.ASCII)
_VALUE = re.compile(r"[A-Za-z0-9_./-]+")
PLACES = ("{ray_cpus}",)
"""Values of overrides that the host decides. ray_cpus: the CPUs that Ray is told of."""


@dataclass(frozen=True, slots=True)
class Reasons:
    """Why a variable is or is not set, and what takes its place where it is not read."""

    reason: str
    instead: str = ""


@dataclass(frozen=True, slots=True)
class Override:
    """One hydra override of run scripts, under one condition."""

    key: str
    value: str
    """As hydra reads it, or one of `PLACES`."""
    add: bool = False
    """Whether the key is none of the config's own, and is added with `+`."""
    profiles: tuple[Profile, ...] = ()
    when: Mapping[str, str] = field(default_factory=dict)
    """PEP 440 specifiers by distribution."""
    absent: tuple[str, ...] = ()
    """Distributions that must not be installed."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One environment variable under one condition, or what run scripts override in its place, or both."""

    id: str
    variable: str
    """Empty where there are only overrides."""
    reader: Reader
    reasons: Reasons
    value: str | None = None
    """What run scripts set it to; None where they leave it alone."""
    profiles: tuple[Profile, ...] = ()
    when: Mapping[str, str] = field(default_factory=dict)
    """PEP 440 specifiers by distribution: the releases that read it. Empty is all, but for the reader `nothing`."""
    overrides: tuple[Override, ...] = ()
    """Each under its own condition, whether or not the variable is read."""
    zh: Reasons | None = None
    path: Path | None = None


def load_settings(folder: Path | None = None) -> tuple[Setting, ...]:
    """The settings of `folder`, by default the shipped ones, by id. Raises RecordError with all mistakes of all."""
    paths = sorted((folder or shipped("settings")).glob("*.toml"))
    settings: list[Setting] = []
    mistakes: list[Mistake] = []
    for path in paths:
        match parse_setting(files.read_text(path, files.SETTINGS_BYTES, follow=True), path):
            case Setting() as setting:
                settings.append(setting)
            case found:
                mistakes.extend(found)
    if mistakes:
        title = (
            "1 mistake in the settings" if len(mistakes) == 1 else "{count} {count:mistake|mistakes} in the settings"
        )
        cause = Phrases(tuple(mistake.told for mistake in mistakes), "\n  ")
        raise RecordError(phrase(title, count=len(mistakes)), cause=cause)
    return tuple(settings)


def parse_setting(text: str, path: Path) -> Setting | Iterable[Mistake]:
    """One file's setting, or all of its mistakes."""
    data = decode(text, path)
    if isinstance(data, Mistake):
        return [data]
    check = Checker(str(path), text)
    check.table(data, (), _KEYS)
    alone = bool(data.get("override"))
    setting = Setting(
        id=check.string(data, (), "id") or "",
        variable=(check.string(data, (), "variable") or "") if "variable" in data or not alone else "",
        reader=check.choice(data, (), "reader", get_args(Reader)) or "nothing",  # type: ignore[arg-type]
        reasons=_reasons(check, data, ()),
        value=check.string(data, (), "value") if "value" in data else None,
        profiles=_profiles(check, data),
        when=_when(check, data, ()),
        overrides=tuple(_override(check, table, path) for path, table in check.tables(data, "override")),
        zh=_reasons(check, check.table(data["zh"], ("zh",), ("reason", "instead")), ("zh",)) if "zh" in data else None,
        path=path,
    )
    if setting.id and setting.id != path.stem:
        check.note(("id",), phrase("{id!r} must be the file's name, {stem!r}", id=setting.id, stem=path.stem))
    if setting.variable and not _VARIABLE.fullmatch(setting.variable):
        check.note(("variable",), phrase("{name!r} is no name of a variable", name=setting.variable))
    if not setting.variable and alone and setting.value is not None:
        check.note(("value",), "goes with a variable")
    if (setting.value is None) != (not setting.profiles):
        check.note(("profiles",), "goes with a value: the profiles that set it")
    if data.get("reader") == "nothing" and (setting.value is not None or setting.when):
        check.note(("reader",), "'nothing' leaves neither value nor [when] to say")
    return check.mistakes or setting


def _reasons(check: Checker, table: Mapping[str, Any], path: tuple[str, ...]) -> Reasons:
    instead = check.string(table, path, "instead") if "instead" in table else None
    return Reasons(check.string(table, path, "reason") or "", instead or "")


def _override(check: Checker, item: Any, path: tuple[str | int, ...]) -> Override:
    table = check.table(item, path, _OVERRIDE_KEYS)
    key, value = check.string(table, path, "key") or "", check.string(table, path, "value") or ""
    if key and not _KEY.fullmatch(key):
        check.note((*path, "key"), phrase("{name!r} is no key of a config", name=key))
    if value and value not in PLACES and not _VALUE.fullmatch(value):
        allowed = ", ".join(PLACES)
        check.note(
            (*path, "value"),
            phrase("{value!r} is neither a plain word nor one of: {names}", value=value, names=allowed),
        )
    when = table.get("when", {})
    inner = {name: item for name, item in when.items() if name != "absent"} if isinstance(when, dict) else when
    absent = check.strings(when, (*path, "when"), "absent") if isinstance(when, dict) else ()
    return Override(
        key,
        value,
        check.boolean(table, path, "add", default=False),
        _profiles(check, table, path, required=True),
        _when(check, {"when": inner}, path),
        absent,
    )


def _profiles(
    check: Checker, data: Mapping[str, Any], path: tuple[str | int, ...] = (), *, required: bool = False
) -> tuple[Profile, ...]:
    profiles = check.strings(data, path, "profiles")
    if required and not profiles:
        check.note((*path, "profiles"), "is missing")
    for profile in profiles:
        if profile not in get_args(Profile):
            names = ", ".join(get_args(Profile))
            check.note((*path, "profiles"), phrase("{value!r} is none of: {names}", value=profile, names=names))
    return profiles  # type: ignore[return-value]


def _when(check: Checker, data: Mapping[str, Any], path: tuple[str | int, ...]) -> Mapping[str, str]:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    table = check.table(data.get("when", {}), (*path, "when"), DISTRIBUTIONS)
    versions = {name: value for name in table if (value := check.string(table, (*path, "when"), name)) is not None}
    for name, value in versions.items():
        try:
            SpecifierSet(value)
        except InvalidSpecifier:
            wrong = "{value!r} is no version specifier; write for example '>=0.11.1,<0.14'"
            check.note((*path, "when", name), phrase(wrong, value=value))
    return versions
