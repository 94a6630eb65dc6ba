"""Names that a module serves on demand, followed to where they are defined."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from patcher.analysis.symbols.definition import Absent, Module, Resolution, Unknown, Variable, behind
from patcher.analysis.symbols.literals import Table, literal_table
from patcher.analysis.symbols.scope import Imported
from patcher.analysis.symbols.served import serve

if TYPE_CHECKING:
    from patcher.analysis.symbols.resolver import Symbols


def served_member(symbols: Symbols, module: Module, node: ast.FunctionDef, name: str) -> Resolution:
    """The attribute `name` as the module's `__getattr__` (`node`) serves it, followed to its definition."""
    served = serve(node, name, lambda table: _table(symbols, module, table))
    if not served.returns:
        return Resolution(Absent(module.name, name))
    for imported in served.imports:
        found = symbols.imported(module.name, imported)
        if not isinstance(found.definition, Absent):
            return behind(module, name, found)
    if served.refuses:
        return Resolution(Unknown(f"{module.name} may serve {name} from its __getattr__"))
    absent = False
    for row in served.rows:
        for where, attribute in _targets(symbols, module, row, name):
            if isinstance(target := symbols.modules.find(where), Module) and target.name != module.name:
                found = symbols.module_member(target, attribute)
                if not isinstance(found.definition, Absent):
                    return behind(module, name, found)
                absent = True
    return Resolution(Absent(module.name, name) if absent else Variable(module.name, name))


def _targets(symbols: Symbols, module: Module, row: str, name: str) -> list[tuple[str, str]]:
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
        found += [tuple(place.rpartition(".")[::2]) for place in places if "." in place]  # type: ignore[misc]
    return found


def _table(symbols: Symbols, module: Module, name: str) -> Table | None:
    tree, scope = symbols.modules.tree(module), symbols.modules.scope(module)
    if isinstance(tree, Unknown) or isinstance(scope, Unknown):
        return None
    if (found := literal_table(tree.body, name)) is not None:
        return found
    for binding in scope.bindings(name):
        if isinstance(binding.made_by, Imported) and binding.made_by.name:
            target = symbols.modules.find(symbols.modules.absolute(module, binding.made_by.module))
            if isinstance(target, Module) and target.name != module.name:
                return _table(symbols, target, binding.made_by.name)
    return None
