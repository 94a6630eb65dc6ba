"""Members of a package's classes: own, inherited, fields, and attributes that methods set on `self`.

A class with a `__getattr__`, a metaclass, a decorator from outside or attributes of computed names is open: nothing is
certainly absent there.
"""

from __future__ import annotations

import builtins
import importlib
import sys
from typing import TypeAlias

from patcher.analysis.bindings import Binding, ClassHeader, FunctionHeader, Imported
from patcher.analysis.expressions import Name, dotted_or_called, last_name, shown
from patcher.analysis.symbols.class_bodies import ClassBody, read_class
from patcher.analysis.symbols.computed_names import sets_by_computed_names
from patcher.analysis.symbols.definition import Absent, Class, External, Function, Resolution, Unknown, Variable
from patcher.analysis.symbols.lookup import Lookup

Base: TypeAlias = Class | External | Unknown


# Modules of the standard library that base classes come from and that cost nothing to look into.
_STANDARD = frozenset(
    {"abc", "builtins", "collections", "collections.abc", "contextlib", "enum", "threading", "typing"}
)
# Their decorators give the class itself, with methods more: `@dataclass`, `@final`, `@attrs.define`.
_KEEPING = frozenset({*sys.stdlib_module_names, "attr", "attrs", "pydantic", "typing_extensions"})
# Others, whose instances may have more than their classes show.
_HARMLESS = frozenset(
    {"argparse", "asyncio", "concurrent", "json", "logging", "multiprocessing", "queue", "socketserver"}
)
# What pydantic's BaseModel has besides `model_…`.
_MODEL_NAMES = frozenset(
    {"construct", "copy", "dict", "from_orm", "json", "parse_obj", "parse_raw", "schema", "validate"}
)
_CLASS_NAMES = frozenset({*dir(type), "__dataclass_fields__", "__annotations__", "__slots__"})


def member_of_class(symbols: Lookup, owner: Class, name: str) -> Resolution:
    """Look `name` up on the class and its bases, in Python's order."""
    found = _search(symbols, owner, name)
    if isinstance(found.definition, Absent) and name in _CLASS_NAMES and name.startswith("__"):
        return Resolution(External(f"builtins.type.{name}"))
    return found


def _search(symbols: Lookup, owner: Class, name: str) -> Resolution:
    unsure: Unknown | None = None
    # Python's own order. A base that is not known makes the answer unsure, unless a class after it has the name.
    for base in linearise(symbols, owner):
        match base:
            case Class():
                if (found := own_member(symbols, base, name)) is not None:
                    return found
                if (values := body_of_class(symbols, base).attributes.get(name)) is not None:
                    first = values[0]
                    return Resolution(Variable(base.module, f"{base.qualname}.{name}", first.value, first.annotation))
                if (outside := symbols.set_from_outside(base, name)) is not None:
                    return Resolution(outside)
                if unsure is None and (reason := is_open(symbols, base)):
                    unsure = Unknown(reason)
            case External(name=dotted):
                there = external_has(dotted, name)
                if there:
                    return Resolution(External(f"{dotted}.{name}"))
                if there is None and unsure is None:
                    unsure = Unknown(f"{owner.qualname} inherits from {dotted}")
            case Unknown():
                unsure = unsure or base
    return Resolution(unsure or Absent(f"{owner.module}.{owner.qualname}", name))


def linearise(symbols: Lookup, owner: Class) -> list[Base]:
    """The class and its bases in the order in which Python asks them."""
    return _merge(symbols, owner, ())


def _merge(symbols: Lookup, owner: Class, path: tuple[str, ...]) -> list[Base]:
    here = f"{owner.module}.{owner.qualname}"
    if here in path:
        return []
    found: list[Base] = []
    for base in owner.header.bases:
        match symbols.expression(owner.module, base).definition:
            case Class() as inner:
                found += _merge(symbols, inner, (*path, here))
            case External() as outer:
                found.append(outer)
            case Unknown() as unknown:
                found.append(unknown)
            case _:
                found.append(Unknown(f"{owner.qualname} inherits from {shown(base)}"))
    # A class that several bases share comes after all of them, so its last place counts. That is C3 for the hierarchies
    # that packages have; the rare orders in which C3 differs are not modelled.
    last = {_key(base): index for index, base in enumerate(found)}
    return [owner, *(base for index, base in enumerate(found) if last[_key(base)] == index)]


def _key(base: Base) -> object:
    return (base.module, base.qualname) if isinstance(base, Class) else base


def body_of_class(symbols: Lookup, owner: Class) -> ClassBody:
    """What the class's body holds."""
    return symbols.modules.holding(owner.module).asked_of(owner.header, read_class)


def own_member(symbols: Lookup, owner: Class, name: str) -> Resolution | None:
    """What the class's own body binds the name to; None if it does not."""
    for binding in body_of_class(symbols, owner).scope.bindings(name):
        if (found := _bound(symbols, owner, binding, name)) is not None:
            return found
    return None


def _bound(symbols: Lookup, owner: Class, binding: Binding, name: str) -> Resolution | None:
    qualname = f"{owner.qualname}.{name}"
    match binding.value:
        case ClassHeader() as header:
            return Resolution(Class(owner.module, qualname, header))
        case FunctionHeader() as header:
            return Resolution(Function(owner.module, qualname, header, owner))
        case Imported() as imported:
            found = symbols.imported(owner.module, imported)
            return None if isinstance(found.definition, Absent) else found
        case value:
            # `sleep_async = sleep` in a class body is the method itself.
            if isinstance(value, Name) and binding.annotation is None and value.id != name:
                for inner in body_of_class(symbols, owner).scope.bindings(value.id):
                    if (same := _bound(symbols, owner, inner, value.id)) is not None:
                        return same
            return Resolution(Variable(owner.module, qualname, value, binding.annotation))


def is_open(symbols: Lookup, owner: Class) -> str:
    """Why the class may have attributes that its syntax does not show; "" if it may not."""
    body = body_of_class(symbols, owner)
    # Any name may be answered by code.
    if any(method.name in ("__getattr__", "__getattribute__") for method in body.methods):
        return f"{owner.qualname} has a __getattr__"
    if body.computes_attributes:
        return f"{owner.qualname} sets attributes by computed names"
    # `for name in names: vars()[name] = make(name)` in the body, or `setattr(Tensor, name, method)` after the class.
    if body.computes_names or sets_by_computed_names(symbols.modules.holding(owner.module), owner.qualname):
        return f"attributes of {owner.qualname} are set by computed names"
    if _is_replaced(symbols, owner):
        return f"{owner.qualname} is decorated"
    return f"{owner.qualname} has a metaclass" if has_metaclass(owner) else ""


def _is_replaced(symbols: Lookup, owner: Class) -> bool:
    """Whether a decorator from outside may give something else for the class, as `@ray.remote` does: `Actor.remote()`.

    One of the package itself, such as `@support_torch_compile`, mostly registers the class or wraps its methods."""
    marks = (symbols.expression(owner.module, dotted_or_called(mark)).definition for mark in owner.header.decorators)
    return any(isinstance(mark, External) and mark.name.partition(".")[0] not in _KEEPING for mark in marks)


def has_metaclass(owner: Class) -> bool:
    """Whether a metaclass may add attributes, or decide what a call takes; these are known to do neither."""
    return any(
        name == "metaclass" and last_name(value) not in ("ABCMeta", "EnumMeta", "EnumType")
        for name, value in owner.header.keywords
    )


def external_has(dotted: str, name: str) -> bool | None:
    """Whether a class from outside has an attribute; None where only importing it could tell."""
    module, _, attribute = dotted.rpartition(".")
    if module == "typing_extensions":
        module = "typing"
    if attribute == "TypedDict":
        return hasattr(dict, name)
    # Looked into by importing it: the module belongs to Python and runs nothing of the checked package.
    if module.partition(".")[0] in _HARMLESS:
        found = getattr(importlib.import_module(module), attribute, None) if module else None
        return True if hasattr(found, name) else None
    if module in _STANDARD:
        found = getattr(importlib.import_module(module) if module != "builtins" else builtins, attribute, None)
        return None if found is None else hasattr(found, name)
    if dotted in ("pydantic.BaseModel", "pydantic.main.BaseModel"):
        return name in _MODEL_NAMES or name.startswith(("model_", "__"))
    if dotted in ("msgspec.Struct", "msgspec.structs.Struct"):
        return name.startswith("__")
    return None
