"""Attributes of meanings."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING

from patcher.analysis.meaning.classes import class_member, instance_member, super_member
from patcher.analysis.meaning.definitions import meaning_of
from patcher.analysis.meaning.meanings import (
    Container,
    InstanceOf,
    Meaning,
    Meanings,
    Method,
    Outside,
    SuperOf,
    TreeClass,
    TreeFunction,
    TreeModule,
    TypeOf,
    united,
)
from patcher.analysis.symbols import Absent, Class, Definition, Function, Module, Unknown, Variable, full_name
from patcher.analysis.symbols.scope import Assigned

if TYPE_CHECKING:
    from patcher.analysis.meaning.universe import Universe


def lookup(universe: Universe, of: Meaning, name: str) -> Meanings:
    """What the attribute can be; `Absent` if it is not there, `Unknown` with a symbol if that cannot be told."""
    match of:
        case Module():
            return _of_module(universe, of, name)
        case Class() | TreeClass():
            return class_member(universe, of, name, of)
        case TypeOf(of=kind):
            return class_member(universe, kind, name, of)
        case InstanceOf():
            return instance_member(universe, of, name)
        case SuperOf():
            return super_member(universe, of, name)
        case Function() | Method():
            function = of if isinstance(of, Function) else of.function
            if hasattr(_plain, name) or universe.symbols(function.module).set_from_outside(function, name) is not None:
                return (Outside(f"{full_name(function)}.{name}"),)
            if function.node.decorator_list:
                return (Unknown(f"{function.qualname} is decorated", f"{full_name(function)}.{name}"),)
            return (Absent(full_name(function), name),)
        case TreeModule(name=module):
            from patcher.analysis.meaning.evaluation import tree_member

            return tree_member(universe, module, name)
        case Outside(name=owner):
            return (Outside(f"{owner}.{name}"),)
        case Variable():
            symbol = full_name(of)
            return (Unknown(f"the class of {symbol} is not known", f"{symbol}.{name}"),)
        case Container():
            return (Outside(f"builtins.{name}"),)
        case Absent():
            return (of,)
        case Unknown() | TreeFunction():
            return (Unknown("its owner is not known"),)


def _plain() -> None: ...


def _of_module(universe: Universe, module: Module, name: str) -> Meanings:
    found = universe.symbols(module.name).module_member(module, name)
    asked = f"{module.name}.{name}"
    if isinstance(found.definition, Absent) and hasattr(builtins.__class__, name):
        return (Outside(f"types.ModuleType.{name}"),)
    if isinstance(found.definition, Absent):
        return (Absent(module.name, name),)
    definition = _for_checkers(universe, module, name, found.definition)
    return united(*(meaning_of(universe, one, asked) for one in (definition, *found.alternatives)))


def _for_checkers(universe: Universe, module: Module, name: str, found: Definition) -> Definition:
    """For a name that is served on demand, the variable that the module declares for type checkers."""
    scope = universe.symbols(module.name).modules.scope(module)
    if (
        isinstance(found, Variable | Unknown)
        and not isinstance(scope, Unknown)
        and getattr(found, "value", None) is None
    ):
        for binding in scope.for_checkers.get(name, ()):
            if isinstance(binding.made_by, Assigned) and binding.made_by.annotation is not None:
                return Variable(module.name, name, None, binding.made_by.annotation)
    return found
