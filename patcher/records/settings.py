"""Environment variables and hydra overrides as records: where one counts, what it is set to and why.

Parsed as strictly as patches are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from patcher.data import shipped
from patcher.i18n import phrase
from patcher.records.rules import VERSION_FIELDS, VERSIONS, given_versions, identifier, is_variable
from patcher.tables.mistakes import KeyPath, Mistake, mistakes_error
from patcher.tables.shapes import (
    Matching,
    Mistakes,
    Shape,
    choice,
    flag,
    one_of,
    read_file,
    table,
    tables,
    text,
    texts,
)
from patcher.worktree import files

Profile = Literal["standard", "debug", "fast-load", "fault"]
"""The run scripts that set a variable; `fault` is for the time that a fault is being looked for."""
Reader = Literal["vllm", "torch", "triton", "ray", "nccl", "cuda", "blas", "tokenizers", "loader", "verl", "nothing"]
"""Who reads a variable; `blas` stands for OpenMP, OpenBLAS and MKL, `loader` for the dynamic loader."""

PLACES = ("{ray_cpus}",)
"""Values of overrides that the host decides. ray_cpus: the CPUs that Ray is given."""


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
        title = phrase("{count} {count:mistake|mistakes} in the settings", count=len(mistakes))
        raise mistakes_error(title, mistakes)
    return tuple(settings)


def parse_setting(source: str, path: Path) -> Setting | list[Mistake]:
    """One file's setting, or all of its mistakes."""
    found = read_file(source, path, SETTING)
    return replace(found, path=path) if isinstance(found, Setting) else found


def _is_value(value: str) -> None:
    """A plain word, as it goes into a shell script, or what the host decides."""
    if value not in PLACES and not re.fullmatch(r"[A-Za-z0-9_./-]+", value):
        wrong = "{value!r} is neither a plain word nor one of: {names}"
        raise ValueError(phrase(wrong, value=value, names=", ".join(PLACES)))


def _make_override(when: tuple[dict[str, str], tuple[str, ...]], **others: Any) -> Override:
    return Override(when=when[0], absent=when[1], **others)


def _check_override(mistakes: Mistakes, path: KeyPath, override: Override, _: Mapping[str, Any]) -> None:
    if not override.profiles:
        mistakes.note((*path, "profiles"), "is missing")


def _make_setting(reason: str, instead: str, **others: Any) -> Setting:
    return Setting(reasons=Reasons(reason, instead), **others)


def _check_setting(mistakes: Mistakes, _: KeyPath, setting: Setting, written: Mapping[str, Any]) -> None:
    alone = bool(written.get("override"))
    if not alone and "variable" not in written:
        mistakes.note(("variable",), "is missing")
    if not setting.variable and alone and setting.value is not None:
        mistakes.note(("value",), "goes with a variable")
    if (setting.value is None) != (not setting.profiles):
        mistakes.note(("profiles",), "goes with a value: the profiles that set it")
    if setting.reader == "nothing" and (setting.value is not None or setting.when):
        mistakes.note(("reader",), "'nothing' leaves neither value nor [when] to say")


_PROFILES = texts(one_of(get_args(Profile)))
_REASON = {"reason": text(), "instead": text(default="")}
_IS_KEY = Matching(re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+", re.ASCII), "{name!r} is no key of a config", "name")
_WHERE = Shape(lambda absent, **versions: (given_versions(**versions), absent), {**VERSION_FIELDS, "absent": texts()})
_OVERRIDE = Shape(
    _make_override,
    {
        "key": text(_IS_KEY),
        "value": text(_is_value),
        "add": flag(False),
        "profiles": _PROFILES,
        "when": table(_WHERE),
    },
    _check_override,
)
SETTING = Shape(
    _make_setting,
    {
        "id": identifier(),
        "variable": text(is_variable, default=""),
        "value": text(default=None),
        "profiles": _PROFILES,
        "reader": choice(get_args(Reader)),
        **_REASON,
        "zh": table(Shape(Reasons, _REASON), default=None),
        "when": table(VERSIONS),
        "override": tables(_OVERRIDE, attribute="overrides"),
    },
    _check_setting,
)
