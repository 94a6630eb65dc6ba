"""Members of a package's classes: own, inherited, fields, and attributes that methods set on `self`.

A class with a `__getattr__`, a metaclass or attributes of computed names is open: nothing is certainly absent there.
"""

from __future__ import annotations

import ast
import builtins
import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from patcher.analysis.symbols.computed_names import body_computes_names
from patcher.analysis.symbols.definition import Absent, Class, External, Function, Resolution, Unknown, Variable
from patcher.analysis.symbols.lookup import Lookup
from patcher.analysis.symbols.scope import Assigned, Binding, FunctionNode, Scope, literal_table, read_scope
from patcher.analysis.syntax import statements_below

Base: TypeAlias = Class | External | Unknown


@dataclass(frozen=True, slots=True, eq=False)
class SetOnSelf:
    """A value that a method (None: `__slots__`) gives to an attribute of its first parameter."""

    value: ast.expr | None
    annotation: ast.expr | None = None
    method: FunctionNode | None = None


# Modules of the standard library that base classes come from and that cost nothing to look into.
_STANDARD = frozenset(
    {"abc", "builtins", "collections", "collections.abc", "contextlib", "enum", "threading", "typing"}
)
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
                if (values := set_on_self(symbols, base).get(name)) is not None:
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
    # A class that several bases share comes after all of them, so its last place counts. That is C3 for the hierarchies
    # that packages have; the rare orders in which C3 differs are not modelled.
    last = {_key(base): index for index, base in enumerate(found)}
    return [owner, *(base for index, base in enumerate(found) if last[_key(base)] == index)]


def _key(base: Base) -> object:
    return (base.module, base.qualname) if isinstance(base, Class) else base


def class_scope(symbols: Lookup, owner: Class) -> Scope:
    """What the class's body binds."""
    return symbols.answers.once(("scope", owner.node), lambda: read_scope(owner.node.body, annotations_bind=True))


def own_member(symbols: Lookup, owner: Class, name: str) -> Resolution | None:
    """What the class's own body binds the name to; None if it does not."""
    for binding in class_scope(symbols, owner).bindings(name):
        if (found := _bound(symbols, owner, binding, name)) is not None:
            return found
    return None


def _bound(symbols: Lookup, owner: Class, binding: Binding, name: str) -> Resolution | None:
    qualname = f"{owner.qualname}.{name}"
    match binding.made_by:
        case ast.ClassDef() as node:
            return Resolution(Class(owner.module, qualname, node))
        case ast.FunctionDef() | ast.AsyncFunctionDef() as node:
            return Resolution(Function(owner.module, qualname, node, owner))
        case Assigned(value=value, annotation=annotation):
            # `sleep_async = sleep` in a class body is the method itself.
            if isinstance(value, ast.Name) and annotation is None and value.id != name:
                for inner in class_scope(symbols, owner).bindings(value.id):
                    if (found := _bound(symbols, owner, inner, value.id)) is not None:
                        return found
            return Resolution(Variable(owner.module, qualname, value, annotation))
        case imported:
            found = symbols.imported(owner.module, imported)
            return None if isinstance(found.definition, Absent) else found


def declared_fields(owner: Class) -> Iterator[tuple[str, ast.AnnAssign]]:
    """The annotated names of a class's body by name, which are the fields of a dataclass: `size: int = 0`."""
    for node in owner.node.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node


def methods(symbols: Lookup, owner: Class) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """The functions of a class's body, those under conditions included."""
    for bindings in class_scope(symbols, owner).names.values():
        for binding in bindings:
            if isinstance(binding.made_by, ast.FunctionDef | ast.AsyncFunctionDef):
                yield binding.made_by


def set_on_self(symbols: Lookup, owner: Class) -> Mapping[str, list[SetOnSelf]]:
    """Attributes that methods set on their first parameter, in the order of the source."""
    return _attributes(symbols, owner)[0]


def _attributes(symbols: Lookup, owner: Class) -> tuple[dict[str, list[SetOnSelf]], bool]:
    """Also tells whether some attributes are set by computed names."""
    return symbols.answers.once(("set on self", owner.node), lambda: _read_attributes(symbols, owner))


def _read_attributes(symbols: Lookup, owner: Class) -> tuple[dict[str, list[SetOnSelf]], bool]:
    found: dict[str, list[SetOnSelf]] = {}
    computed = False

    def note(name: str, value: ast.expr | None, annotation: ast.expr | None, method: FunctionNode | None) -> None:
        found.setdefault(name, []).append(SetOnSelf(value, annotation, method))

    for method in methods(symbols, owner):
        arguments = [*method.args.posonlyargs, *method.args.args]
        if not arguments:
            continue
        me, annotations = arguments[0].arg, {argument.arg: argument.annotation for argument in arguments}
        annotations |= {argument.arg: argument.annotation for argument in method.args.kwonlyargs}
        for node in statements_below(method):
            match node:
                case ast.Assign(targets=targets, value=value):
                    for target in targets:
                        computed = computed or _stores_into_dict(target, me)
                        plain = isinstance(target, ast.Attribute)
                        for name in _on(target, me):
                            # `self.config = config` has the type of the parameter.
                            annotation = annotations.get(value.id) if isinstance(value, ast.Name) and plain else None
                            note(name, value if plain else None, annotation, method)
                case ast.AnnAssign(target=target, value=value, annotation=annotation):
                    for name in _on(target, me):
                        note(name, value, annotation, method)
                # `self.__dict__.update(values)`, `vars(self).update(values)`
                case ast.Expr(value=ast.Call(func=ast.Attribute(value=holder, attr="update"))) if _is_dict_of(
                    holder, me
                ):
                    computed = True
                # `setattr(self, name, value)`, `object.__setattr__(self, name, value)`: with a computed name the class
                # may have anything.
                case ast.Expr(
                    value=ast.Call(
                        func=ast.Name(id="setattr") | ast.Attribute(attr="__setattr__"),
                        args=[ast.Name(id=target), key, value],
                    )
                ) if target == me:
                    if isinstance(key, ast.Constant) and isinstance(key.value, str):
                        note(key.value, value, None, method)
                    else:
                        computed = True
                case ast.With(items=items) | ast.AsyncWith(items=items):
                    for item in items:
                        for name in _on(item.optional_vars, me):
                            note(name, None, None, method)
                case ast.For(target=target):
                    for name in _on(target, me):
                        note(name, None, None, method)
                case _:
                    pass
    # `__slots__ = ("a", "b")` declares attributes that no method need set.
    if (slots := literal_table(owner.node.body, "__slots__")) is not None:
        for name in slots.entries:
            if name not in found:
                note(name, None, None, None)
    return found, computed


def _is_dict_of(node: ast.expr, me: str) -> bool:
    """`self.__dict__` or `vars(self)`."""
    match node:
        case ast.Attribute(value=ast.Name(id=name), attr="__dict__"):
            return name == me
        case ast.Call(func=ast.Name(id="vars"), args=[ast.Name(id=name)]):
            return name == me
        case _:
            return False


def _stores_into_dict(target: ast.expr, me: str) -> bool:
    """Whether it is stored into by `self.__dict__ = values` or `self.__dict__[name] = value`."""
    return _is_dict_of(target.value if isinstance(target, ast.Subscript) else target, me)


def _on(target: ast.expr | None, me: str) -> list[str]:
    match target:
        case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner == me:
            return [name]
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return [name for part in parts for name in _on(part, me)]
        case _:
            return []


def is_open(symbols: Lookup, owner: Class) -> str:
    """Why the class may have attributes that its syntax does not show; "" if it may not."""
    # Any name may be answered by code.
    if any(method.name in ("__getattr__", "__getattribute__") for method in methods(symbols, owner)):
        return f"{owner.qualname} has a __getattr__"
    if _attributes(symbols, owner)[1]:
        return f"{owner.qualname} sets attributes by computed names"
    # `for name in names: vars()[name] = make(name)` in the body, or `setattr(Tensor, name, method)` after the class.
    if body_computes_names(owner.node) or symbols.sets_by_computed_name(owner):
        return f"attributes of {owner.qualname} are set by computed names"
    for keyword in owner.node.keywords:
        # A metaclass may add attributes; these two are known to add none to instances.
        if keyword.arg == "metaclass" and ast.unparse(keyword.value).rpartition(".")[2] not in ("ABCMeta", "EnumMeta"):
            return f"{owner.qualname} has a metaclass"
    return ""


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
