"""Environment variables as records: where one is read, what it is set to and why. Parsed as strictly as patches are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from patcher.data import shipped
from patcher.errors import RecordError
from patcher.language import Phrases, phrase
from patcher.records.mistakes import Checker, Mistake
from patcher.records.parse import DISTRIBUTIONS
from patcher.records.toml import decode

Profile = Literal["standard", "debug", "fast-load", "fault"]
"""The run scripts that set a variable; `fault` is for the time that a fault is being looked for."""
Reader = Literal["vllm", "torch", "triton", "ray", "nccl", "cuda", "blas", "tokenizers", "loader", "nothing"]
"""Who reads a variable; `blas` stands for OpenMP, OpenBLAS and MKL, `loader` for the dynamic loader."""

_KEYS = ("id", "variable", "value", "profiles", "reader", "reason", "instead", "zh", "when")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Reasons:
    """Why a variable is or is not set, and what takes its place where it is not read."""

    reason: str
    instead: str = ""


@dataclass(frozen=True, slots=True)
class Setting:
    """One environment variable under one condition."""

    id: str
    variable: str
    reader: Reader
    reasons: Reasons
    value: str | None = None
    """What run scripts set it to; None where they leave it alone."""
    profiles: tuple[Profile, ...] = ()
    when: Mapping[str, str] = field(default_factory=dict)
    """PEP 440 specifiers by distribution: the releases that read it. Empty is all, but for the reader `nothing`."""
    zh: Reasons | None = None
    path: Path | None = None


def load_settings(folder: Path | None = None) -> tuple[Setting, ...]:
    """The settings of `folder`, by default the shipped ones, by id. Raises RecordError with all mistakes of all."""
    paths = sorted((folder or shipped("settings")).glob("*.toml"))
    settings: list[Setting] = []
    mistakes: list[Mistake] = []
    for path in paths:
        match parse_setting(path.read_text(encoding="utf-8"), path):
            case Setting() as setting:
                settings.append(setting)
            case found:
                mistakes.extend(found)
    if mistakes:
        title = "1 mistake in the settings" if len(mistakes) == 1 else "{count} mistakes in the settings"
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
    setting = Setting(
        id=check.string(data, (), "id") or "",
        variable=check.string(data, (), "variable") or "",
        reader=check.choice(data, (), "reader", get_args(Reader)) or "nothing",  # type: ignore[arg-type]
        reasons=_reasons(check, data, ()),
        value=check.string(data, (), "value") if "value" in data else None,
        profiles=_profiles(check, data),
        when=_when(check, data),
        zh=_reasons(check, check.table(data["zh"], ("zh",), ("reason", "instead")), ("zh",)) if "zh" in data else None,
        path=path,
    )
    if setting.id and setting.id != path.stem:
        check.note(("id",), phrase("{id!r} must be the file's name, {stem!r}", id=setting.id, stem=path.stem))
    if setting.variable and not _VARIABLE.fullmatch(setting.variable):
        check.note(("variable",), phrase("{name!r} is no name of a variable", name=setting.variable))
    if (setting.value is None) != (not setting.profiles):
        check.note(("profiles",), "goes with a value: the profiles that set it")
    if data.get("reader") == "nothing" and (setting.value is not None or setting.when):
        check.note(("reader",), "'nothing' leaves neither value nor [when] to say")
    return check.mistakes or setting


def _reasons(check: Checker, table: Mapping[str, Any], path: tuple[str, ...]) -> Reasons:
    instead = check.string(table, path, "instead") if "instead" in table else None
    return Reasons(check.string(table, path, "reason") or "", instead or "")


def _profiles(check: Checker, data: Mapping[str, Any]) -> tuple[Profile, ...]:
    profiles = check.strings(data, (), "profiles")
    for profile in profiles:
        if profile not in get_args(Profile):
            names = ", ".join(get_args(Profile))
            check.note(("profiles",), phrase("{value!r} is none of: {names}", value=profile, names=names))
    return profiles  # type: ignore[return-value]


def _when(check: Checker, data: Mapping[str, Any]) -> Mapping[str, str]:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    table = check.table(data.get("when", {}), ("when",), DISTRIBUTIONS)
    versions = {name: value for name in table if (value := check.string(table, ("when",), name)) is not None}
    for name, value in versions.items():
        try:
            SpecifierSet(value)
        except InvalidSpecifier:
            wrong = "{value!r} is no version specifier; write for example '>=0.11.1,<0.14'"
            check.note(("when", name), phrase(wrong, value=value))
    return versions
