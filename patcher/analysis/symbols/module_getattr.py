"""Names that a module offers through a `__getattr__(name)` of its own, followed to where they are defined.

The function is followed path by path for one name and is never run:

    def __getattr__(name):
        if name in _LAZY:
            return getattr(import_module(_LAZY[name]), name)
        raise AttributeError(name)
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from patcher.analysis.bindings import FunctionHeader, FunctionNode, Imported, imports
from patcher.analysis.symbols.definition import Absent, Module, Resolution, Unknown, Variable, reexported
from patcher.analysis.symbols.lookup import Lookup
from patcher.analysis.symbols.scope import Table, module_table, table_of

TableOf: TypeAlias = Callable[[str], "Table | None"]


@dataclass(slots=True)
class _GetattrWalk:
    """What has come of the paths: does one return, does one raise AttributeError, and where may the name come from?"""

    parameter: str
    name: str
    table: TableOf
    """The module's literal containers by name."""
    returns: bool = False
    refuses: bool = False
    rows: list[str] = field(default_factory=list)
    """What the tables that were consulted map the name to."""
    imports: list[Imported] = field(default_factory=list)
    """Imports on a returning path whose name, or an attribute by the name asked for, is returned."""
    local: dict[str, bool | Imported | None] = field(default_factory=dict)
    """Local names: an import, or whether the value is known to be there (None: not known)."""


def _follow(node: FunctionNode, name: str, table: TableOf) -> _GetattrWalk:
    """Follow `__getattr__` for one `name`."""
    arguments = [*node.args.posonlyargs, *node.args.args]
    walk = _GetattrWalk(arguments[0].arg if arguments else "", name, table)
    # A path that runs off the end returns None: the name is there.
    if not _ends(node.body, walk):
        walk.returns = True
    return walk


def _ends(body: Iterable[ast.stmt], walk: _GetattrWalk) -> bool:
    """Run through `body`; True if no path goes on behind it."""
    for node in body:
        match node:
            case ast.Return(value=value):
                walk.returns = True
                _note_import(value, walk)
                return True
            case ast.Raise():
                walk.refuses = True
                return True
            case ast.If(test=test, body=inner, orelse=orelse):
                # A test that can be decided for this name closes one branch; otherwise both are followed.
                holds = _holds(test, walk)
                through = [
                    _ends(part, walk) for part, when in ((inner, True), (orelse, False)) if holds in (when, None)
                ]
                if all(through):
                    return True
            case ast.ImportFrom():
                walk.local |= {one.local: one for one in imports(node)}
            case (
                ast.Assign(targets=[ast.Name(id=target)], value=value)
                | ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value)
            ):
                walk.local[target] = _looked_up(value, walk)
            case ast.Assign(value=value):
                _looked_up(value, walk)
            case ast.Try(body=inner, orelse=orelse, handlers=handlers):
                ended = _ends([*inner, *orelse], walk)
                others = [_ends(handler.body, walk) for handler in handlers]
                if ended and all(others):
                    return True
            case ast.With(body=inner):
                if _ends(inner, walk):
                    return True
            case ast.For(body=inner) | ast.While(body=inner):
                _ends(inner, walk)
            case _:
                pass
    return False


def _holds(test: ast.expr, walk: _GetattrWalk) -> bool | None:
    match test:
        case ast.Compare(left=left, ops=[ast.In() | ast.NotIn() as operator], comparators=[container]):
            if not _is_parameter(left, walk) or (found := _container(container, walk)) is None:
                return None
            # `if name in _TABLE:` — the row says where the name comes from.
            if walk.name in found.entries:
                walk.rows += [row] if (row := found.entries[walk.name]) else []
                return isinstance(operator, ast.In)
            return isinstance(operator, ast.NotIn) if found.complete else None
        case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq() as operator], comparators=[ast.Constant(value=value)]):
            return (walk.name == value) is isinstance(operator, ast.Eq) if _is_parameter(left, walk) else None
        case ast.Compare(
            left=ast.Name(id=local), ops=[ast.Is() | ast.IsNot() as operator], comparators=[ast.Constant(value=None)]
        ):
            # `if target is None:` after `target = _TABLE.get(name)`
            known = walk.local.get(local)
            return known is isinstance(operator, ast.IsNot) if isinstance(known, bool) else None
        case ast.NamedExpr(target=ast.Name(id=local), value=value):
            known = walk.local[local] = _looked_up(value, walk)
            return known if isinstance(known, bool) else None
        case ast.Name(id=local):
            known = walk.local.get(local)
            return known if isinstance(known, bool) else None
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return None if (inner := _holds(operand, walk)) is None else not inner
        case ast.BoolOp(op=operator, values=values):
            answers = [_holds(value, walk) for value in values]
            decisive = isinstance(operator, ast.Or)
            return decisive if decisive in answers else None if None in answers else not decisive
        case ast.Call(
            func=ast.Attribute(value=owner, attr="startswith" | "endswith" as how), args=[ast.Constant(value=part)]
        ):
            if not _is_parameter(owner, walk) or not isinstance(part, str):
                return None
            return walk.name.startswith(part) if how == "startswith" else walk.name.endswith(part)
        case _:
            return None


def _looked_up(value: ast.expr, walk: _GetattrWalk) -> bool | None:
    """Whether `TABLE.get(name)` or `TABLE[name]` finds something; None for any other expression."""
    match value:
        case ast.Call(func=ast.Attribute(value=owner, attr="get" | "pop"), args=[key, *default]):
            found = _container(owner, walk) if _is_parameter(key, walk) and not default else None
        case ast.Subscript(value=owner, slice=key):
            found = _container(owner, walk) if _is_parameter(key, walk) else None
        case ast.Call(func=ast.Attribute(value=inner, attr="split" | "rsplit" | "partition" | "rpartition")):
            return _looked_up(inner, walk)
        case _:
            return None
    if found is None:
        return None
    if walk.name in found.entries:
        walk.rows += [row] if (row := found.entries[walk.name]) else []
        return True
    return False if found.complete else None


def _container(node: ast.expr, walk: _GetattrWalk) -> Table | None:
    match node:
        case ast.Name(id=name):
            return walk.table(name)
        # `if name in globals():` — a name that is bound would not have come to `__getattr__`.
        case ast.Call(func=ast.Name(id="globals")):
            return Table({}, True)
        case ast.Call(func=ast.Attribute(value=inner, attr="keys")):
            return _container(inner, walk)
        case ast.List() | ast.Tuple() | ast.Set() | ast.Dict():
            return table_of(node)
        case _:
            return None


def _note_import(value: ast.expr | None, walk: _GetattrWalk) -> None:
    match value:
        case ast.Name(id=local) if isinstance(found := walk.local.get(local), Imported):
            walk.imports.append(found)
        # `from . import models` and `return getattr(models, name)`
        case ast.Call(func=ast.Name(id="getattr"), args=[ast.Name(id=local), key, *_]) if _is_parameter(key, walk):
            _note_attribute(local, walk.name, walk)
        case ast.Attribute(value=ast.Name(id=local), attr=attribute):
            _note_attribute(local, attribute, walk)
        case _:
            pass


def _note_attribute(local: str, attribute: str, walk: _GetattrWalk) -> None:
    if isinstance(found := walk.local.get(local), Imported):
        separator = "" if found.module.endswith(".") else "."
        walk.imports.append(Imported(attribute, f"{found.module}{separator}{found.name}", attribute, found.line))


def _is_parameter(node: ast.expr, walk: _GetattrWalk) -> bool:
    return isinstance(node, ast.Name) and node.id == walk.parameter


def module_getattr_member(symbols: Lookup, module: Module, header: FunctionHeader, name: str) -> Resolution:
    """The attribute `name` as the module's `__getattr__` serves it, followed to its definition."""
    node = symbols.modules.holding(module.name).syntax(header)
    outcome = _follow(node, name, lambda table: _table(symbols, module, table))
    if not outcome.returns:
        return Resolution(Absent(module.name, name))
    for imported in outcome.imports:
        found = symbols.imported(module.name, imported)
        if not isinstance(found.definition, Absent):
            return reexported(module, name, found)
    # Some path raises and some path returns, and nothing says which is taken for this name.
    if outcome.refuses:
        return Resolution(Unknown(f"{module.name} may serve {name} from its __getattr__"))
    absent = False
    for row in outcome.rows:
        for where, attribute in _targets(symbols, module, row, name):
            if isinstance(target := symbols.modules.find(where), Module) and target.name != module.name:
                found = symbols.module_member(target, attribute)
                if not isinstance(found.definition, Absent):
                    return reexported(module, name, found)
                absent = True
    return Resolution(Absent(module.name, name) if absent else Variable(module.name, name))


def _targets(symbols: Lookup, module: Module, row: str, name: str) -> list[tuple[str, str]]:
    """Where a table's row may point: a module, or a module and a name in it, in the spellings in use."""
    where, colon, attribute = row.partition(":")
    attribute = attribute if colon else name
    places = [where] if symbols.modules.inside(where) else []
    if where.startswith("."):
        places.append(symbols.modules.absolute(module, where))
    elif module.folder is not None:
        places.append(f"{module.name}.{where}")
    found = [(place, attribute) for place in places]
    if not colon:
        # "models.llama.Llama" may be a module, or a module and a name in it.
        found += [tuple(place.rpartition(".")[::2]) for place in places if "." in place]  # type: ignore[misc]
    return found


def _table(symbols: Lookup, module: Module, name: str) -> Table | None:
    summary = symbols.modules.summary(module)
    if isinstance(summary, Unknown):
        return None
    if (found := summary.asked(module_table, name)) is not None:
        return found
    for binding in summary.scope.bindings(name):
        if isinstance(binding.value, Imported) and binding.value.name:
            target = symbols.modules.find(symbols.modules.absolute(module, binding.value.module))
            if isinstance(target, Module) and target.name != module.name:
                return _table(symbols, target, binding.value.name)
    return None
