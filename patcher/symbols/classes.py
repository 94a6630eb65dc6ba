"""Members of classes: own, inherited, fields, and attributes that methods set on `self`."""

from __future__ import annotations

import ast
import builtins
import importlib
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from patcher.symbols.definition import Absent, Class, External, Function, Resolution, Unknown, Variable
from patcher.symbols.literals import literal_table
from patcher.symbols.scope import Assigned, Binding, Scope, read_scope

if TYPE_CHECKING:
    from patcher.symbols.resolver import Symbols

Base: TypeAlias = Class | External | Unknown

# Modules of the standard library that base classes come from and that cost nothing to look into.
_STANDARD = frozenset(
    {"abc", "builtins", "collections", "collections.abc", "contextlib", "enum", "threading", "typing"}
)
# What pydantic's BaseModel has besides `model_…`.
_MODEL_NAMES = frozenset(
    {"construct", "copy", "dict", "from_orm", "json", "parse_obj", "parse_raw", "schema", "validate"}
)
_CLASS_NAMES = frozenset({*dir(type), "__dataclass_fields__", "__annotations__", "__slots__"})


def member_of_class(symbols: Symbols, owner: Class, name: str) -> Resolution:
    """Look `name` up on the class and its bases, in Python's order."""
    found = _search(symbols, owner, name)
    if isinstance(found.definition, Absent) and name in _CLASS_NAMES and name.startswith("__"):
        return Resolution(External(f"builtins.type.{name}"))
    return found


def _search(symbols: Symbols, owner: Class, name: str) -> Resolution:
    unsure: Unknown | None = None
    for base in linearise(symbols, owner):
        match base:
            case Class():
                for binding in _class_scope(base).bindings(name):
                    if (found := _bound(symbols, base, binding, name)) is not None:
                        return found
                if (value := _set_on_self(base, name)) is not None:
                    return Resolution(Variable(base.module, f"{base.qualname}.{name}", value.value, value.annotation))
                if (outside := symbols.set_from_outside(base, name)) is not None:
                    return Resolution(outside)
                if unsure is None and (reason := _is_open(base)):
                    unsure = Unknown(reason)
            case External(name=dotted):
                there = _external_has(dotted, name)
                if there:
                    return Resolution(External(f"{dotted}.{name}"))
                if there is None and unsure is None:
                    unsure = Unknown(f"{owner.qualname} inherits from {dotted}")
            case Unknown():
                unsure = unsure or base
    return Resolution(unsure or Absent(f"{owner.module}.{owner.qualname}", name))


def linearise(symbols: Symbols, owner: Class) -> list[Base]:
    """The class and its bases in the order in which Python asks them."""
    return _merge(symbols, owner, ())


def _merge(symbols: Symbols, owner: Class, path: tuple[str, ...]) -> list[Base]:
    here = f"{owner.module}.{owner.qualname}"
    if here in path:
        return []
    found: list[Base] = []
    for base in owner.node.bases:
        match symbols.expression(owner.module, base).definition:
            case Class() as inner:
                found += _merge(symbols, inner, (*path, here))
            case External() as outer:
                found.append(outer)
            case Unknown() as unknown:
                found.append(unknown)
            case _:
                found.append(Unknown(f"{owner.qualname} inherits from {ast.unparse(base)}"))
    last = {_key(base): index for index, base in enumerate(found)}
    return [owner, *(base for index, base in enumerate(found) if last[_key(base)] == index)]


def _key(base: Base) -> object:
    return (base.module, base.qualname) if isinstance(base, Class) else base


@lru_cache(maxsize=4096)
def _class_scope(owner: Class) -> Scope:
    return read_scope(owner.node.body, annotations_bind=True)


def _bound(symbols: Symbols, owner: Class, binding: Binding, name: str) -> Resolution | None:
    qualname = f"{owner.qualname}.{name}"
    match binding.made_by:
        case ast.ClassDef() as node:
            return Resolution(Class(owner.module, qualname, node))
        case ast.FunctionDef() | ast.AsyncFunctionDef() as node:
            return Resolution(Function(owner.module, qualname, node, owner))
        case Assigned(value=value, annotation=annotation):
            if isinstance(value, ast.Name) and annotation is None and value.id != name:
                for inner in _class_scope(owner).bindings(value.id):
                    if (found := _bound(symbols, owner, inner, value.id)) is not None:
                        return found
            return Resolution(Variable(owner.module, qualname, value, annotation))
        case imported:
            found = symbols.imported(owner.module, imported)
            return None if isinstance(found.definition, Absent) else found


def methods(owner: Class) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """The functions of a class's body, those under conditions included."""
    for bindings in _class_scope(owner).names.values():
        for binding in bindings:
            if isinstance(binding.made_by, ast.FunctionDef | ast.AsyncFunctionDef):
                yield binding.made_by


@lru_cache(maxsize=4096)
def _attributes(owner: Class) -> tuple[dict[str, Assigned], bool]:
    """Attributes that methods set on their first parameter, and whether some are set by computed names."""
    found: dict[str, Assigned] = {}
    computed = False
    for method in methods(owner):
        arguments = [*method.args.posonlyargs, *method.args.args]
        if not arguments:
            continue
        me, annotations = arguments[0].arg, {argument.arg: argument.annotation for argument in arguments}
        annotations |= {argument.arg: argument.annotation for argument in method.args.kwonlyargs}
        for node in ast.walk(method):
            match node:
                case ast.Assign(targets=targets, value=value):
                    for target in targets:
                        for name in _on(target, me):
                            annotation = annotations.get(value.id) if isinstance(value, ast.Name) else None
                            found.setdefault(name, Assigned(value, annotation))
                case ast.AnnAssign(target=target, value=value, annotation=annotation):
                    for name in _on(target, me):
                        found.setdefault(name, Assigned(value, annotation))
                case ast.Call(func=ast.Name(id="setattr"), args=[ast.Name(id=target), key, value]) if target == me:
                    if isinstance(key, ast.Constant) and isinstance(key.value, str):
                        found.setdefault(key.value, Assigned(value))
                    else:
                        computed = True
                case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="__dict__"), attr="update")):
                    computed = True
                case ast.With(items=items) | ast.AsyncWith(items=items):
                    for item in items:
                        for name in _on(item.optional_vars, me):
                            found.setdefault(name, Assigned(None))
                case _:
                    pass
    if (slots := literal_table(owner.node.body, "__slots__")) is not None:
        for name in slots.entries:
            found.setdefault(name, Assigned(None))
    return found, computed


def _on(target: ast.expr | None, me: str) -> list[str]:
    match target:
        case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner == me:
            return [name]
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return [name for part in parts for name in _on(part, me)]
        case _:
            return []


def _set_on_self(owner: Class, name: str) -> Assigned | None:
    return _attributes(owner)[0].get(name)


def _is_open(owner: Class) -> str:
    """Why the class may have attributes that its syntax does not show; "" if it may not."""
    if any(method.name in ("__getattr__", "__getattribute__") for method in methods(owner)):
        return f"{owner.qualname} has a __getattr__"
    if _attributes(owner)[1]:
        return f"{owner.qualname} sets attributes by computed names"
    for keyword in owner.node.keywords:
        if keyword.arg == "metaclass" and ast.unparse(keyword.value).rpartition(".")[2] not in ("ABCMeta", "EnumMeta"):
            return f"{owner.qualname} has a metaclass"
    return ""


def _external_has(dotted: str, name: str) -> bool | None:
    """Whether a class from outside has an attribute; None where only importing it could tell."""
    module, _, attribute = dotted.rpartition(".")
    if module == "typing_extensions":
        module = "typing"
    if module in _STANDARD:
        found = getattr(importlib.import_module(module) if module != "builtins" else builtins, attribute, None)
        return None if found is None else hasattr(found, name)
    if dotted in ("pydantic.BaseModel", "pydantic.main.BaseModel"):
        return name in _MODEL_NAMES or name.startswith(("model_", "__"))
    if dotted in ("msgspec.Struct", "msgspec.structs.Struct"):
        return name.startswith("__")
    return None
