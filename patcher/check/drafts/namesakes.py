"""Where else in a package a name is: definitions of it, and modules that re-export them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from patcher.analysis.symbols import Class, Definition, Function, Module, Symbols, Variable, full_name
from patcher.analysis.symbols.literals import literal_table
from patcher.worktree import files

_ASIDE = {"tests", "test", "examples", "benchmarks", "third_party", "_vendor"}


@dataclass(frozen=True, slots=True, eq=False)
class Namesake:
    """One definition and the dotted paths by which the package offers it, that of its own module first."""

    definition: Definition
    paths: tuple[str, ...]


class Namesakes:
    """A search through one package's sources; each file is read once, for all names."""

    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols
        self._found: dict[str, tuple[Namesake, ...]] = {}

    def of(self, name: str) -> tuple[Namesake, ...]:
        """The classes, functions and variables of that name at the top level of modules."""
        if name not in self._found:
            self._found[name] = tuple(self._search(name))
        return self._found[name]

    def modules(self, name: str) -> tuple[str, ...]:
        """The modules whose last part is `name`."""
        return tuple(module for module in self._texts if module.rpartition(".")[2] == name)

    def _search(self, name: str) -> Iterator[Namesake]:
        word = name.encode()
        bound = re.compile(rb"^(?:class|def|async def)\s+%b\b|^%b\s*[:=]" % (word, word), re.MULTILINE)
        mentioning = [module for module, text in self._texts.items() if word in text]
        for module in mentioning:
            if not bound.search(self._texts[module]):
                continue
            definition = self.symbols.resolve(f"{module}.{name}").definition
            if isinstance(definition, Class | Function | Variable) and definition.module == module:
                yield Namesake(definition, (f"{module}.{name}", *self._exports(definition, name, mentioning)))

    def _exports(self, definition: Definition, name: str, modules: Iterable[str]) -> Iterator[str]:
        """The packages that mean to offer it: those above its module, and those that list it in `__all__`."""
        home = full_name(definition).rpartition(".")[0]
        parts = home.split(".")
        above = [".".join(parts[:length]) for length in range(1, len(parts))]
        for module in dict.fromkeys((*above, *modules)):
            found = self.symbols.modules.find(module)
            if module == home or not isinstance(found, Module) or found.folder is None:
                continue
            if (home.startswith(f"{module}.") or self._lists(found, name)) and full_name(
                self.symbols.resolve(f"{module}.{name}").definition
            ) == full_name(definition):
                yield f"{module}.{name}"

    def _lists(self, module: Module, name: str) -> bool:
        tree = self.symbols.modules.tree(module)
        listed = literal_table(tree.body, "__all__") if isinstance(tree, ast.Module) else None
        return listed is not None and name in listed.entries

    @cached_property
    def _texts(self) -> dict[str, bytes]:
        """The modules' texts by dotted name."""
        root = self.symbols.modules.find(self.symbols.modules.name)
        folder = root.folder if isinstance(root, Module) else None
        return dict(_read(folder)) if folder is not None else {}


def _read(package: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        if _ASIDE & set(parts):
            continue
        module = parts[:-1] if parts[-1] == "__init__" else parts
        try:
            yield ".".join(module), files.read(path, files.SOURCE_BYTES, follow=True)
        except OSError:
            continue
