"""Break a release on purpose: one change of its sources, and the kinds of finding that name it."""

from __future__ import annotations

import ast
import copy
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.injected.sites import Site
from patcher.analysis.symbols import Class, Definition, External, Function, Module, Symbols
from patcher.analysis.symbols.classes import body_of_class, linearise

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Break:
    """`changes`: a file's path -> its new text, None for a file that goes. `lines`: where it shows in the tree."""

    kind: str
    site: Site
    changes: Mapping[Path, str | None]
    lines: tuple[int, int]
    expected: frozenset[str]

    @property
    def name(self) -> str:
        return f"{self.kind} {self.site.symbol} for {self.site.file}:{self.lines[0]}"


def breaks(site: Site, symbols: Symbols) -> Iterator[Break]:
    """Every break of this release that the site must feel."""
    for make in _MAKERS:
        yield from make(site, symbols)


def _renamed(site: Site, symbols: Symbols) -> Iterator[Break]:
    home = _home(symbols, site)
    if not site.is_import or home is None:
        return
    changes: dict[Path, str | None] = {
        path: re.sub(rf"\b{site.name}\b", f"{site.name}Renamed", path.read_text(encoding="utf-8"))
        for path in _on_the_way(symbols, site)
    }
    if home.path in changes:
        yield Break("symbol renamed", site, changes, site.lines, frozenset({"symbol-removed", "symbol-moved"}))


def _moved(site: Site, symbols: Symbols) -> Iterator[Break]:
    home = _home(symbols, site)
    if not site.is_import or home is None or home.node is None:
        return
    text = home.path.read_text(encoding="utf-8")
    first, last = _extent(home.node)
    lines = text.splitlines(keepends=True)
    piece = textwrap.dedent("".join(lines[first - 1 : last]))
    changes: dict[Path, str | None] = {
        path: re.sub(rf"\b{site.name}\b", f"_{site.name}_gone", path.read_text(encoding="utf-8"))
        for path in _on_the_way(symbols, site)
    }
    rest = [*lines[: first - 1], *lines[last:]]
    changes[home.path] = re.sub(rf"\b{site.name}\b", f"_{site.name}_gone", "".join(rest))
    changes[home.path.with_name("relocated.py")] = "from __future__ import annotations\n\n" + piece
    yield Break("symbol moved", site, changes, site.lines, frozenset({"symbol-moved"}))


def _module_gone(site: Site, symbols: Symbols) -> Iterator[Break]:
    home = _home(symbols, site)
    if not site.is_import or home is None or home.module != site.module or home.path.name == "__init__.py":
        return
    text = home.path.read_text(encoding="utf-8")
    there = home.path.with_name(f"{home.path.stem}_relocated.py")
    yield Break("module removed", site, {home.path: None}, site.lines, frozenset({"module-removed", "module-moved"}))
    yield Break("module moved", site, {home.path: None, there: text}, site.lines, frozenset({"module-moved"}))


def _argument_gone(site: Site, symbols: Symbols) -> Iterator[Break]:
    for keyword, line in site.keywords:
        for path, node in _takers(symbols, site, keyword):
            text = _spliced(path, node, partial(_without, keyword=keyword))
            if text is not None:
                kinds = frozenset({"argument-removed"})
                yield Break("argument removed", site, {path: text}, (site.lines[0], line), kinds)


def _argument_added(site: Site, symbols: Symbols) -> Iterator[Break]:
    if (site.keywords or site.positional) and (found := _function(symbols, site)) is not None:
        path, node = found
        text = _spliced(path, node, _demanding)
        if text is not None:
            yield Break("argument required", site, {path: text}, site.lines, frozenset({"argument-required"}))


def _arguments_swapped(site: Site, symbols: Symbols) -> Iterator[Break]:
    if site.positional >= 2 and (found := _function(symbols, site)) is not None:
        path, node = found
        text = _spliced(path, node, _swapped)
        if text is not None:
            yield Break("arguments swapped", site, {path: text}, site.lines, frozenset({"argument-shifted"}))


def _attribute_gone(site: Site, symbols: Symbols) -> Iterator[Break]:
    if not site.member or site.keywords or site.positional:
        return
    definition = symbols.resolve(site.symbol).definition
    if isinstance(definition, Function) and (path := _path(symbols, definition)) is not None:
        text = _spliced(path, symbols.syntax(definition), lambda n: _called(n, f"{n.name}_renamed"))
        if text is not None:
            kinds = frozenset({"attribute-removed", "symbol-removed", "symbol-moved"})
            yield Break("attribute renamed", site, {path: text}, site.lines, kinds)


def _base_asks_more(site: Site, symbols: Symbols) -> Iterator[Break]:
    owner = symbols.resolve(f"{site.module}.{site.name}").definition
    for method, line in site.methods:
        if method.startswith("__") or not isinstance(owner, Class):
            continue
        definition = symbols.member(owner, method).definition
        if isinstance(definition, Function) and (path := _path(symbols, definition)) is not None:
            text = _spliced(path, symbols.syntax(definition), _demanding)
            if text is not None:
                yield Break("base asks more", site, {path: text}, (line, line), frozenset({"override-mismatch"}))


_MAKERS: tuple[Callable[[Site, Symbols], Iterator[Break]], ...] = (
    _renamed,
    _moved,
    _module_gone,
    _argument_gone,
    _argument_added,
    _arguments_swapped,
    _attribute_gone,
    _base_asks_more,
)


@dataclass(frozen=True, slots=True)
class _Home:
    module: str
    path: Path
    node: ast.ClassDef | FunctionNode | None


def _home(symbols: Symbols, site: Site) -> _Home | None:
    definition = symbols.resolve(f"{site.module}.{site.name}").definition
    if not isinstance(definition, Class | Function) or definition.qualname != site.name:
        return None
    path = _path(symbols, definition)
    return _Home(definition.module, path, symbols.syntax(definition)) if path is not None else None


def _path(symbols: Symbols, definition: Definition) -> Path | None:
    if not isinstance(definition, Class | Function):
        return None
    found = symbols.modules.find(definition.module)
    return found.path if isinstance(found, Module) else None


def _on_the_way(symbols: Symbols, site: Site) -> list[Path]:
    """The files that define the name or hand it on to where it is imported from."""
    found = symbols.resolve(f"{site.module}.{site.name}")
    modules = {site.module, *(step.rpartition(".")[0] for step in found.chain)}
    if isinstance(found.definition, Class | Function):
        modules.add(found.definition.module)
    every = [symbols.modules.find(name) for name in sorted(modules)]
    return [module.path for module in every if isinstance(module, Module) and module.path is not None]


def _function(symbols: Symbols, site: Site) -> tuple[Path, FunctionNode] | None:
    definition = symbols.resolve(site.symbol).definition
    if isinstance(definition, Class):
        definition = symbols.member(definition, "__init__").definition
    if not isinstance(definition, Function) or (path := _path(symbols, definition)) is None:
        return None
    return path, symbols.syntax(definition)


def _takers(symbols: Symbols, site: Site, keyword: str) -> Iterator[tuple[Path, ast.ClassDef | FunctionNode]]:
    """What has the parameter: a function, or a class of which it is a field."""
    found = _function(symbols, site)
    if found is not None and keyword in {a.arg for a in (*found[1].args.args, *found[1].args.kwonlyargs)}:
        if found[1].args.kwarg is None:
            yield found
        return
    owner = symbols.resolve(site.symbol).definition
    path = _path(symbols, owner)
    if found is None and isinstance(owner, Class) and path is not None and not _is_typed_dict(symbols, owner):
        fields = {field.name for field in body_of_class(symbols, owner).fields}
        if keyword in fields:
            yield path, symbols.syntax(owner)


def _is_typed_dict(symbols: Symbols, owner: Class) -> bool:
    """Whether it is a plain dict when it runs, which takes any keyword."""
    every = linearise(symbols, owner)
    return any(isinstance(base, External) and base.name.endswith(".TypedDict") for base in every)


def _without(node: ast.ClassDef | FunctionNode, keyword: str) -> bool:
    if isinstance(node, ast.ClassDef):
        for field in node.body:
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and field.target.id == keyword:
                field.target.id = f"{keyword}_renamed"
        return True
    for argument in (*node.args.args, *node.args.kwonlyargs):
        if argument.arg == keyword:
            argument.arg = f"{keyword}_renamed"
    return True


def _demanding(node: ast.ClassDef | FunctionNode) -> bool:
    if isinstance(node, ast.ClassDef):
        return False
    node.args.kwonlyargs.append(ast.arg("demanded"))
    node.args.kw_defaults.append(None)
    return True


def _swapped(node: ast.ClassDef | FunctionNode) -> bool:
    if isinstance(node, ast.ClassDef):
        return False
    own = node.args.args
    first = 1 if own and own[0].arg in ("self", "cls") else 0
    if len(own) - first < 2:
        return False
    own[first].arg, own[first + 1].arg = own[first + 1].arg, own[first].arg
    own[first].annotation, own[first + 1].annotation = own[first + 1].annotation, own[first].annotation
    return True


def _called(node: ast.ClassDef | FunctionNode, name: str) -> bool:
    node.name = name
    return True


def _spliced(
    path: Path, node: ast.ClassDef | FunctionNode, change: Callable[[ast.ClassDef | FunctionNode], bool]
) -> str | None:
    """The file's text with the changed definition in the place of the old one; None if there is nothing to change."""
    changed = copy.deepcopy(node)
    if not change(changed):
        return None
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    first, last = _extent(node)
    indent = lines[node.lineno - 1][: node.col_offset]
    lines[first - 1 : last] = [textwrap.indent(ast.unparse(changed), indent) + "\n"]
    return "".join(lines)


def _extent(node: ast.ClassDef | FunctionNode) -> tuple[int, int]:
    first = min([node.lineno, *(mark.lineno for mark in node.decorator_list)])
    return first, node.end_lineno or node.lineno
