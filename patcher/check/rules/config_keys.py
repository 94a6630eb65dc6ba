"""Whether a hydra override is one that the config of the tree's entry point takes: key-removed, with the place where
the key is now.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from patcher.analysis.configuration import Composition, below, compose, group_key, load
from patcher.analysis.findings import Broken, FindingKind, Fine, Problem, Undecided, Unrelated, Verdict
from patcher.analysis.meaning import Program
from patcher.analysis.project import Project
from patcher.analysis.symbols import Class, Symbols
from patcher.analysis.symbols.classes import body_of_class, linearise
from patcher.analysis.uses import ConfigKey, Use
from patcher.i18n import Phrase, phrase
from patcher.worktree.python import UnreadableError, parse

_SHIPPED = "verl/trainer/config"
_USUAL = "ppo_trainer"


@dataclass(frozen=True, slots=True)
class NoEntry:
    """There is no such module in the tree."""

    entry: str


@dataclass(frozen=True, slots=True)
class NoConfig:
    """The entry point is no hydra program, or its config is not in the tree."""

    name: str


_Configured: TypeAlias = Composition | NoEntry | NoConfig


def _composed(project: Project, entry: str, config: str, groups: tuple[tuple[str, str], ...]) -> _Configured:
    """The config that an entry point of the tree takes with these choices of groups."""
    key = ("config", entry, config, groups)
    return project.answers.once(key, lambda: _compose(project, entry, config, dict(groups)))


def _compose(project: Project, entry: str, config: str, groups: Mapping[str, str]) -> _Configured:
    root = project.root
    shipped = root / project.renamed(_SHIPPED)
    folder, name = shipped, _USUAL
    if entry:
        path = entry.replace(".", "/") + ".py"
        content = project.content(path)
        # The script runs a module that this tree does not have.
        if content is None:
            return NoEntry(entry)
        main_config = hydra_main(content)
        if main_config is None:
            return NoConfig(entry)
        folder, name = (root / path).parent / main_config[0], main_config[1]
    name = (config or name).removesuffix(".yaml")
    made = compose(below(folder, shipped), name, groups)
    return made if made is not None else NoConfig(name)


def _fields_of(project: Project, dotted: str) -> frozenset[str] | None:
    """The fields of a config class of the tree; None if they are not all known."""
    symbols = project.answers.once("symbols of verl", lambda: Symbols(project.root / project.top))
    found = symbols.resolve(dotted).definition
    if not isinstance(found, Class):
        return None
    names: set[str] = set()
    for base in linearise(symbols, found):
        if isinstance(base, Class):
            # A constructor written by hand may take anything.
            body = body_of_class(symbols, base)
            if any(method.name == "__init__" for method in body.methods):
                return None
            names.update(field.name for field in body.fields)
        elif not getattr(base, "name", "").startswith(("collections.", "typing.", "abc.", "builtins.")):
            return None
    return frozenset(names)


def hydra_main(content: bytes) -> tuple[Path, str] | None:
    """What `@hydra.main(config_path=…, config_name=…)` says in a file."""
    try:
        tree = parse(content)
    except UnreadableError:
        return None
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="hydra"), attr="main"), keywords=keywords):
                arguments = {
                    keyword.arg: keyword.value.value for keyword in keywords if isinstance(keyword.value, ast.Constant)
                }
                name = arguments.get("config_name")
                if isinstance(name, str):
                    return Path(str(arguments.get("config_path") or ".")), name
    return None


@dataclass(frozen=True, slots=True)
class _Present:
    value: Any


@dataclass(frozen=True, slots=True)
class _Missing:
    """`parent` is the longest part of the key that is there, `value` what it holds, `name` what it lacks."""

    parent: str
    value: Any
    name: str


def judge_key(use: Use, program: Program) -> Verdict:
    """Whether the config of the entry point has the key, or can be given it with the sign that is written."""
    assert isinstance(use.need, ConfigKey)
    need = use.need
    project = program.project
    made = _composed(project, need.entry, need.config, need.groups)
    if not need.dotted:
        return _entry(use, need, made, project)
    if need.dotted.partition(".")[0].partition("/")[0] == "hydra":
        return Unrelated()
    if "$" in need.dotted:
        return Undecided(need.dotted, "the script's variables are not all known")
    match made:
        case NoEntry() | NoConfig():
            return _of_foreign_program(need, project)
        case Composition():
            return _judge(use, need, made, project)


def _entry(use: Use, need: ConfigKey, made: _Configured, project: Project) -> Verdict:
    match made:
        case NoEntry(entry=entry) if entry.partition(".")[0] == project.top:
            detail = phrase("{entry} is not in this tree", entry=entry)
            return _broken(use, entry, detail, kind="module-removed")
        # `--config-name "$1"`
        case NoConfig(name=name) if need.config and "$" not in name:
            return _broken(use, name, phrase("there is no config {name}", name=name))
        case Composition():
            return Fine(need.entry)
        case _:
            return Undecided(need.entry or need.config, "its config is not in this tree")


def _of_foreign_program(need: ConfigKey, project: Project) -> Verdict:
    """A key of a program outside of the tree, whose config most likely builds on verl's."""
    if need.entry.partition(".")[0] == project.top:
        return Unrelated()
    usual = _composed(project, "", "", need.groups)
    if isinstance(usual, Composition) and isinstance(_find(usual.config, need.dotted), _Present):
        return Fine(need.dotted)
    return Undecided(need.dotted, f"the config of {need.entry or need.config} is not in this tree")


def _judge(use: Use, need: ConfigKey, made: Composition, project: Project) -> Verdict:
    if (group := made.groups.get(group_key(need.dotted))) is not None:
        # `model=unknown`: hydra finds no such file in the group.
        missing = [path for path in made.missing if path.endswith(f"/{group}")]
        if missing and need.value == group:
            return _broken(use, need.dotted, phrase("there is no config {name}", name=missing[0]))
        return Fine(need.dotted)
    # `+model@actor.model=small` adds a group.
    if "@" in need.dotted or "/" in need.dotted:
        return Undecided(need.dotted, "whether a config group is added is not followed")
    found = _find(made.config, need.dotted)
    match need.sign, found:
        case _, _Missing(parent=parent, value=str(value)) if "${" in value:
            return Undecided(need.dotted, f"{parent} is computed")
        case "+", _Present(value=value):
            # `+key=value` overwrites a null, and merges a dict or list.
            if value is None or (need.value or "").startswith(("{", "[")):
                return Fine(need.dotted)
            if (isinstance(value, str) and "${" in value) or "$" in (need.value or ""):
                return Undecided(need.dotted, "its value is computed")
            return _broken(
                use,
                need.dotted,
                phrase("{key} is already in the config, and + may only add", key=need.dotted),
                phrase("write {key} without the +", key=need.dotted),
            )
        case ("+", _Missing()) | ("++", _):
            return _new_field(use, need, made, project) or Fine(need.dotted)
        case "~", _Present(value=None):
            detail = phrase("{key} has no value, and ~ takes out only what has one", key=need.dotted)
            return _broken(use, need.dotted, detail)
        # `key={a: 1}` merges into the dict that is there; a key that it lacks is refused.
        case "", _Present(value=dict() as there) if (need.value or "").startswith("{"):
            return _merged(use, need, there)
        case _, _Present():
            return Fine(need.dotted)
        case _, _Missing() as lacking:
            return _missing_key(use, need, lacking, made)
    return Fine(need.dotted)


def _merged(use: Use, need: ConfigKey, there: Mapping[str, Any]) -> Verdict:
    """A dict given for one that is there may only hold keys that it has."""
    given = load(need.value or "")
    if not isinstance(given, dict):
        return Undecided(need.dotted, "its value is not understood")
    lacking = [str(name) for name in given if str(name) not in there]
    if not lacking:
        return Fine(need.dotted)
    detail = phrase("{parent} has no {name} in the config", parent=need.dotted, name=lacking[0])
    return _broken(use, f"{need.dotted}.{lacking[0]}", detail)


def _missing_key(use: Use, need: ConfigKey, lacking: _Missing, made: Composition) -> Verdict:
    place = _moved(made.config, need.dotted)
    if place is not None:
        suggestion: Phrase | None = phrase("it is now {place}", place=place)
    elif need.sign == "" and lacking.value in ({}, None) and lacking.parent:
        suggestion = phrase("a key that is not in the config is added with +{key}", key=need.dotted)
    else:
        suggestion = None
    if lacking.parent:
        detail = phrase("{parent} has no {name} in the config", parent=lacking.parent, name=lacking.name)
    else:
        detail = phrase("the config has no {name}", name=lacking.name)
    return _broken(use, need.dotted, detail, suggestion, moved_to=place or "")


def _new_field(use: Use, need: ConfigKey, made: Composition, project: Project) -> Verdict | None:
    """The verdict about a key that is added to a group with a `_target_`: that class must have such a field."""
    above, _, name = need.dotted.rpartition(".")
    parent = _find(made.config, above) if above else None
    if not isinstance(parent, _Present) or not isinstance(parent.value, dict) or name in parent.value:
        return None
    target = parent.value.get("_target_")
    fields = _fields_of(project, target) if isinstance(target, str) else None
    if fields is None or name in fields:
        return None
    place = _moved(made.config, need.dotted)
    suggestion = phrase("it is now {place}", place=place) if place else None
    detail = phrase("{target} has no {name}", target=target, name=name)
    return _broken(use, need.dotted, detail, suggestion, moved_to=place or "")


def _broken(
    use: Use,
    symbol: str,
    detail: Phrase,
    suggestion: Phrase | None = None,
    *,
    kind: FindingKind = "key-removed",
    moved_to: str = "",
) -> Verdict:
    return Broken((Problem(kind, symbol, use.line, detail, suggestion, moved_to),))


def _find(config: Any, dotted: str) -> _Present | _Missing:
    walked: list[str] = []
    here = config
    for part in dotted.split("."):
        if isinstance(here, dict) and part in here:
            here = here[part]
        elif isinstance(here, list) and part.isdigit():
            here = here[int(part)] if int(part) < len(here) else None
        else:
            return _Missing(".".join(walked), here, part)
        walked.append(part)
    return _Present(here)


def _moved(config: Mapping[str, Any], dotted: str) -> str | None:
    """The one key elsewhere that ends as this one does, by as many parts as possible."""
    parts = dotted.split(".")
    places = [key for key in _keys(config, "") if key.rpartition(".")[2] == parts[-1]]
    for length in range(len(parts), 0, -1):
        ending = parts[-length:]
        alike = [key for key in places if key.split(".")[-length:] == ending]
        if alike:
            # Of several places the one in the same group; if that is not one alone, none is suggested.
            close = [key for key in alike if key.startswith(".".join(parts[:-1]) + ".")] or alike
            return close[0] if len(close) == 1 else None
    return None


def _keys(config: Mapping[str, Any], prefix: str) -> Iterator[str]:
    for name, value in config.items():
        yield f"{prefix}{name}"
        if isinstance(value, dict):
            yield from _keys(value, f"{prefix}{name}.")
