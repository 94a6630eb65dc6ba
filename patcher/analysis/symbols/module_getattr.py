"""Names that a module offers through a `__getattr__(name)` of its own, followed to where they are defined.

The function is followed path by path for one name and is never run:

    def __getattr__(name):
        if name in _LAZY:
            return getattr(import_module(_LAZY[name]), name)
        raise AttributeError(name)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from patcher.analysis import expressions as ex
from patcher.analysis.bindings import FunctionHeader, Imported
from patcher.analysis.expressions import Expression
from patcher.analysis.steps import Assign, If, Raise, Return, Steps, Stop, Try, Unfollowed, With, steps_of
from patcher.analysis.symbols.definition import Absent, Module, Resolution, Unknown, Variable, reexported
from patcher.analysis.symbols.lookup import Lookup
from patcher.analysis.symbols.scope import Table, literal_table, table_of

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


def _ends(steps: Steps, walk: _GetattrWalk) -> bool:
    """Run through the steps; True if no path goes on behind them."""
    for step in steps:
        match step:
            case Return(value=value):
                walk.returns = True
                _note_import(value, walk)
                return True
            case Raise():
                walk.refuses = True
                return True
            # A loop or the like is not followed: it may do either.
            case Stop():
                walk.returns = walk.refuses = True
                return True
            case If(test=test, body=body, orelse=orelse):
                # A test that can be decided for this name closes one branch; otherwise both are followed.
                holds = _holds(test, walk)
                through = [_ends(part, walk) for part, when in ((body, True), (orelse, False)) if holds in (when, None)]
                if all(through):
                    return True
            case Imported(local=local):
                walk.local[local] = step
            case Assign(name=name, value=value):
                walk.local[name] = _looked_up(value, walk)
            case Unfollowed(value=value):
                _looked_up(value, walk)
            case Try(body=body, orelse=orelse, handlers=handlers):
                ended = _ends((*body, *orelse), walk)
                others = [_ends(inner, walk) for _, inner in handlers]
                if ended and all(others):
                    return True
            case With(body=body):
                if _ends(body, walk):
                    return True
    return False


def _holds(test: Expression, walk: _GetattrWalk) -> bool | None:
    match test:
        case ex.Compare(left=left, operators=("in" | "not in" as operator,), rights=(container,)):
            # `if name in _TABLE:`
            answer = _is_in(_container(container, walk), walk) if _is_parameter(left, walk) else None
            return None if answer is None else answer is (operator == "in")
        case ex.Compare(left=left, operators=("==" | "!=" as operator,), rights=(ex.Constant(value=value),)):
            return (walk.name == value) is (operator == "==") if _is_parameter(left, walk) else None
        case ex.Compare(
            left=ex.Name(id=local), operators=("is" | "is not" as operator,), rights=(ex.Constant(value=None),)
        ):
            # `if target is None:` after `target = _TABLE.get(name)`
            known = walk.local.get(local)
            return known is (operator == "is not") if isinstance(known, bool) else None
        case ex.Name(id=local):
            known = walk.local.get(local)
            return known if isinstance(known, bool) else None
        case ex.Not(of=inner):
            return None if (answer := _holds(inner, walk)) is None else not answer
        case ex.BoolOp(every=every, values=values):
            answers = [_holds(value, walk) for value in values]
            decisive = not every
            return decisive if decisive in answers else None if None in answers else not decisive
        case ex.Call(
            of=ex.Attribute(of=owner, name="startswith" | "endswith" as how),
            positional=(ex.Constant(value=str() as part),),
        ):
            if not _is_parameter(owner, walk):
                return None
            return walk.name.startswith(part) if how == "startswith" else walk.name.endswith(part)
        # `if target := _TABLE.get(name):`
        case _:
            return _looked_up(test, walk)


def _looked_up(value: Expression, walk: _GetattrWalk) -> bool | None:
    """Whether `TABLE.get(name)` or `TABLE[name]` finds something; None for any other expression."""
    match value:
        case ex.Call(of=ex.Attribute(of=owner, name="get" | "pop"), positional=(key,)) if _is_parameter(key, walk):
            return _is_in(_container(owner, walk), walk)
        case ex.Subscript(of=owner, key=key) if _is_parameter(key, walk):
            return _is_in(_container(owner, walk), walk)
        case ex.Call(of=ex.Attribute(of=inner, name="split" | "rsplit" | "partition" | "rpartition")):
            return _looked_up(inner, walk)
        case _:
            return None


def _is_in(table: Table | None, walk: _GetattrWalk) -> bool | None:
    """Whether the table has the name; its row says where the name comes from."""
    if table is None:
        return None
    if walk.name in table.entries:
        walk.rows += [row] if (row := table.entries[walk.name]) else []
        return True
    return False if table.complete else None


def _container(of: Expression, walk: _GetattrWalk) -> Table | None:
    match of:
        case ex.Name(id=name):
            return walk.table(name)
        # `if name in globals():` — a name that is bound would not have come to `__getattr__`.
        case ex.Call(of=ex.Name(id="globals")):
            return Table({}, True)
        case ex.Call(of=ex.Attribute(of=inner, name="keys")):
            return _container(inner, walk)
        case ex.Elements() | ex.Table():
            return table_of(of)
        case _:
            return None


def _note_import(value: Expression | None, walk: _GetattrWalk) -> None:
    match value:
        case ex.Name(id=local) if isinstance(found := walk.local.get(local), Imported):
            walk.imports.append(found)
        # `from . import models` and `return getattr(models, name)`
        case ex.Call(of=ex.Name(id="getattr"), positional=(ex.Name(id=local), key, *_)) if _is_parameter(key, walk):
            _note_attribute(local, walk.name, walk)
        case ex.Attribute(of=ex.Name(id=local), name=attribute):
            _note_attribute(local, attribute, walk)


def _note_attribute(local: str, attribute: str, walk: _GetattrWalk) -> None:
    if isinstance(found := walk.local.get(local), Imported):
        walk.imports.append(Imported(attribute, found.dotted, attribute, found.line))


def _is_parameter(of: Expression, walk: _GetattrWalk) -> bool:
    return isinstance(of, ex.Name) and of.id == walk.parameter


def module_getattr_member(symbols: Lookup, module: Module, header: FunctionHeader, name: str) -> Resolution:
    """The attribute `name` as the module's `__getattr__` serves it, followed to its definition."""
    outcome = _GetattrWalk(header.signature.first, name, lambda table: _table(symbols, module, table))
    # A path that runs off the end returns None: the name is there.
    if not _ends(symbols.modules.holding(module.name).asked_of(header, steps_of), outcome):
        outcome.returns = True
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
    if (found := summary.asked(literal_table, name)) is not None:
        return found
    for binding in summary.scope.bindings(name):
        if isinstance(binding.value, Imported) and binding.value.name:
            target = symbols.modules.find(symbols.modules.absolute(module, binding.value.module))
            if isinstance(target, Module) and target.name != module.name:
                return _table(symbols, target, binding.value.name)
    return None
