"""The configs of a verl tree by the entry point that is run: each composed once for a choice of groups."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from weakref import WeakKeyDictionary

from patcher.analysis.composition import Composition, compose
from patcher.analysis.forest import Forest
from patcher.analysis.symbols import Class, Symbols
from patcher.analysis.symbols.classes import linearise
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


@dataclass(slots=True)
class Configs:
    """What a tree's entry points can be configured with."""

    forest: Forest
    _made: dict[tuple[str, str, tuple[tuple[str, str], ...]], Composition | NoEntry | NoConfig] = field(
        default_factory=dict
    )
    _symbols: Symbols | None = None

    def composed(
        self, entry: str, config: str, groups: tuple[tuple[str, str], ...]
    ) -> Composition | NoEntry | NoConfig:
        key = (entry, config, groups)
        if key not in self._made:
            self._made[key] = self._compose(entry, config, dict(groups))
        return self._made[key]

    def _compose(self, entry: str, config: str, groups: Mapping[str, str]) -> Composition | NoEntry | NoConfig:
        root = self.forest.root
        folder, name = root / _SHIPPED, _USUAL
        if entry:
            path = entry.replace(".", "/") + ".py"
            content = self.forest.content(path)
            if content is None:
                return NoEntry(entry)
            told = _hydra_main(content)
            if told is None:
                return NoConfig(entry)
            folder, name = (root / path).parent / told[0], told[1]
        name = (config or name).removesuffix(".yaml")
        made = compose((folder, root / _SHIPPED), name, groups)
        return made if made is not None else NoConfig(name)

    def fields(self, dotted: str) -> frozenset[str] | None:
        """The fields of a config class of the tree; None if they are not all known."""
        if self._symbols is None:
            self._symbols = Symbols(self.forest.root / "verl")
        found = self._symbols.resolve(dotted).definition
        if not isinstance(found, Class):
            return None
        names: set[str] = set()
        for base in linearise(self._symbols, found):
            if not isinstance(base, Class):
                if getattr(base, "name", "").startswith(("collections.", "typing.", "abc.", "builtins.")):
                    continue
                return None
            for node in base.node.body:
                if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                    names.add(node.target.id)
                elif isinstance(node, ast.FunctionDef) and node.name == "__init__":
                    return None
        return frozenset(names)


_configs: WeakKeyDictionary[Forest, Configs] = WeakKeyDictionary()


def configs_of(forest: Forest) -> Configs:
    if forest not in _configs:
        _configs[forest] = Configs(forest)
    return _configs[forest]


def _hydra_main(content: bytes) -> tuple[Path, str] | None:
    """What `@hydra.main(config_path=…, config_name=…)` says in a file."""
    try:
        tree = parse(content)
    except UnreadableError:
        return None
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="hydra"), attr="main"), keywords=keywords):
                said = {
                    keyword.arg: keyword.value.value for keyword in keywords if isinstance(keyword.value, ast.Constant)
                }
                name = said.get("config_name")
                if isinstance(name, str):
                    return Path(str(said.get("config_path") or ".")), name
            case _:
                pass
    return None
