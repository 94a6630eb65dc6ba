"""What the body of a package's class holds, read from its syntax into plain values."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from patcher.analysis.bindings import FunctionHeader, assigned, first_line
from patcher.analysis.expressions import Expression, expression, maybe
from patcher.analysis.symbols.computed_names import body_computes_names
from patcher.analysis.symbols.scope import Scope, literal_table, read_scope
from patcher.analysis.syntax import FunctionNode, statements_below, text_in


class SetOnSelf(NamedTuple):
    """A value that a method (None: `__slots__`) gives to an attribute of its first parameter."""

    value: Expression | None
    annotation: Expression | None = None
    method: FunctionHeader | None = None


class Field(NamedTuple):
    """`name: annotation = value` in a class's body."""

    name: str
    annotation: Expression
    value: Expression | None


@dataclass(slots=True, eq=False)
class ClassBody:
    scope: Scope
    methods: tuple[FunctionHeader, ...]
    """Those under conditions included."""
    fields: tuple[Field, ...]
    """The annotated names, which are the fields of a dataclass: `size: int = 0`."""
    attributes: dict[str, list[SetOnSelf]]
    """What methods set on their first parameter, in the order of the source."""
    computes_attributes: bool
    """Whether methods set some by computed names."""
    computes_names: bool
    """Whether the body itself binds some."""
    allows_extra: bool
    """Whether it is a pydantic model that takes fields which it does not declare."""
    refuses: bool
    """Whether its constructor does no more than raise, as that of transformers' AutoTokenizer."""


def read_class(node: ast.ClassDef) -> ClassBody:
    """What is asked for of a class with this syntax."""
    scope = read_scope(node.body, annotations_bind=True)
    bound = [binding.value for bindings in scope.names.values() for binding in bindings]
    own = tuple(one for one in bound if isinstance(one, FunctionHeader))
    fields = tuple(
        Field(one.target.id, expression(one.annotation), maybe(one.value))
        for one in node.body
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
    )
    attributes, computed = _read_attributes(node, own)
    return ClassBody(
        scope, own, fields, attributes, computed, body_computes_names(node), _allows_extra(node), _refuses(node)
    )


def _allows_extra(owner: ast.ClassDef) -> bool:
    for node in owner.body:
        if isinstance(node, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id == "model_config" for t in node.targets
        ):
            return "extra='allow'" in ast.unparse(node.value) or "'extra': 'allow'" in ast.unparse(node.value)
    return False


def _refuses(owner: ast.ClassDef) -> bool:
    for node in owner.body:
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            body = [one for one in node.body if not isinstance(one, ast.Expr)]
            return len(body) == 1 and isinstance(body[0], ast.Raise)
    return False


def _read_attributes(
    owner: ast.ClassDef, methods: tuple[FunctionHeader, ...]
) -> tuple[dict[str, list[SetOnSelf]], bool]:
    """Also tells whether some attributes are set by computed names."""
    found: dict[str, list[SetOnSelf]] = {}
    computed = False
    inside = {first_line(one): one for one in statements_below(owner) if isinstance(one, FunctionNode)}

    def note(name: str, value: ast.expr | None, annotation: ast.expr | None, method: FunctionHeader | None) -> None:
        found.setdefault(name, []).append(SetOnSelf(maybe(value), maybe(annotation), method))

    for header in methods:
        method = inside[header.first]
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
                        for name, given in _on(target, me, value):
                            # `self.config = config` has the type of the parameter.
                            annotation = annotations.get(given.id) if isinstance(given, ast.Name) else None
                            note(name, given, annotation, header)
                case ast.AnnAssign(target=target, value=value, annotation=annotation):
                    for name, _ in _on(target, me):
                        note(name, value, annotation, header)
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
                    if (text := text_in(key)) is not None:
                        note(text, value, None, header)
                    else:
                        computed = True
                case ast.With(items=items) | ast.AsyncWith(items=items):
                    for item in items:
                        for name, _ in _on(item.optional_vars, me):
                            note(name, None, None, header)
                case ast.For(target=target):
                    for name, _ in _on(target, me):
                        note(name, None, None, header)
    # `__slots__ = ("a", "b")` declares attributes that no method need set.
    if (slots := literal_table(owner, "__slots__")) is not None:
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


def _on(target: ast.expr | None, me: str, value: ast.expr | None = None) -> Iterator[tuple[str, ast.expr | None]]:
    """The attributes of the first parameter that are set, with their values."""
    for one, given in assigned(target, value):
        match one:
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner == me:
                yield name, given
