"""Expressions -> values; the attributes that are read on the way are uses."""

from __future__ import annotations

import ast
import re

from patcher.analysis.expressions import expression
from patcher.analysis.reading.definitions import narrowed
from patcher.analysis.reading.file_traversal import Evaluators, Walk, assign, becomes_method, identifier
from patcher.analysis.reading.local_values import (
    NOTHING,
    OPAQUE,
    ContainerValue,
    Item,
    Scope,
    TextValue,
    element_of,
    field_key,
    is_followed,
    plain,
    together,
    union_of,
)
from patcher.analysis.syntax import parts, text_in
from patcher.analysis.uses import Instance, MemberOf, Named, Opaque, Union, Value, When

_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")


def _constant(walk: Walk, node: ast.Constant) -> Value:  # noqa: ARG001
    value = node.value
    if value is None:
        return NOTHING
    return TextValue(value) if type(value) is str and _NAME.fullmatch(value) else OPAQUE


def _name(walk: Walk, node: ast.Name) -> Value:
    value = walk.scope.find(node.id)
    if value is None:
        return Named(walk.dotted(node.id)) if walk.stars and not walk.is_builtin(node.id) else OPAQUE
    return value


def _attribute(walk: Walk, node: ast.Attribute) -> Value:
    of = walk.value(node.value)
    if isinstance(of, Opaque):
        return OPAQUE
    if type(of) is Union:
        of = plain(of)
    name = node.attr
    # `self.__class__.method` leads to the class.
    if name == "__class__" and isinstance(of, Instance):
        return of.of
    value = walk.member(of, name)
    if not walk.silent and value is not OPAQUE and is_followed(of) and not _has_own_members_only(walk, of):
        walk.use(node.end_lineno or node.lineno, MemberOf(of, name))
    if type(of) is Instance and walk.has_fields:
        return walk.scope.names.get(field_key(node), value)
    return value


def _has_own_members_only(walk: Walk, of: Value) -> bool:
    """Whether it is an instance of a class of this file that has no bases, so that its members are the tree's own."""
    if type(of) is Instance and type(of.of) is Named and of.of.dotted == walk.scope.owner:
        class_draft = walk.classes.get(of.of.dotted.removeprefix(f"{walk.module}."))
        return class_draft is not None and not any(is_followed(base) or base == OPAQUE for base in class_draft.bases)
    return False


def _subscript(walk: Walk, node: ast.Subscript) -> Value:
    walk.contexts[id(node)] = walk.context
    of = walk.value(node.value)
    walk.value(node.slice)
    key = text_in(node.slice)
    # `sys.modules["vllm.engine"]` is the module; a patch is often put in this way.
    if type(of) is Named and of.dotted == "sys.modules":
        return Named(key) if key else OPAQUE
    # `items[1:]` holds the same kind of elements.
    if isinstance(node.slice, ast.Slice):
        return of
    match node.slice:
        case ast.Constant(value=int(position)) if isinstance(of, ContainerValue) and not of.open:
            if 0 <= position < len(of.items):
                return of.items[position].value
    return element_of(of, key) if is_followed(of) or isinstance(of, ContainerValue) else OPAQUE


def _sequence(walk: Walk, node: ast.List | ast.Tuple | ast.Set) -> Value:
    items: list[Item] = []
    more = False
    for each in node.elts:
        if isinstance(each, ast.Starred):
            inner = walk.value(each.value)
            items += (
                [Item(None, i.value, i.line, i.name) for i in inner.items] if isinstance(inner, ContainerValue) else []
            )
            more = more or not isinstance(inner, ContainerValue) or inner.open
        else:
            items.append(Item(None, walk.value(each), each.lineno, identifier(each), walk.conditions))
    # A row of a table of patches: the loop that runs over the table puts the function into the class.
    if len(items) == 2 and isinstance(items[0].value, TextValue):
        _table_row(walk, items[0].value.text, items[1].value)
    return ContainerValue(tuple(items), more, origin=id(node))


def _table_row(walk: Walk, path: str, value: Value) -> None:
    """`("package.module.Class.method", function)`: one line of a table of patches."""
    owner, _, name = path.rpartition(".")
    # Only a capital letter tells a class from a module in a path that is text.
    if name and owner.rpartition(".")[2][:1].isupper():
        becomes_method(walk, value, Named(owner))


def _dict(walk: Walk, node: ast.Dict) -> Value:
    walk.contexts[id(node)] = walk.context
    made = ContainerValue(origin=id(node))
    for key, each in zip(node.keys, node.values, strict=True):
        value = walk.value(each)
        if key is None:
            inner = value if isinstance(value, ContainerValue) else ContainerValue(open=True)
            made = made.adding(*inner.items, open_too=inner.open)
            continue
        walk.value(key)
        text = text_in(key)
        item = Item(text, value, key.lineno, identifier(each), walk.conditions)
        made = made.adding(item, open_too=text is None)
    return made


def _boolean(walk: Walk, node: ast.BoolOp) -> Value:
    every = isinstance(node.op, ast.And)
    before = walk.scope.names
    values = [walk.value(node.values[0])]
    with walk.under():
        for earlier, each in zip(node.values, node.values[1:], strict=False):
            # `a and b`: b runs only where a is true. `hasattr(x, "new") and x.new()` is guarded that way.
            walk.assume(When(expression(earlier), every))
            walk.scope.names = narrowed(walk, earlier, every, walk.scope.names)
            values.append(walk.value(each))
    # Names bound by `:=` on the way stay; narrowed types end with the expression.
    if walk.scope.names is not before:
        before.update({name: v for name, v in walk.scope.names.items() if name not in before})
        walk.scope.names = before
    return values[-1] if every else union_of((value, ()) for value in values)


def _choice(walk: Walk, node: ast.IfExp) -> Value:
    walk.value(node.test)
    alternatives = []
    before = walk.scope.names
    for branch, holds in ((node.body, True), (node.orelse, False)):
        condition = When(expression(node.test), holds)
        with walk.under(condition):
            walk.scope.names = narrowed(walk, node.test, holds, before)
            alternatives.append((walk.value(branch), (condition,)))
            walk.scope.names = before
    return together(alternatives)


def _walrus(walk: Walk, node: ast.NamedExpr) -> Value:
    value = walk.value(node.value)
    assign(walk, node.target, value, node.value)
    return value


def _await(walk: Walk, node: ast.Await) -> Value:
    return walk.value(node.value)


def _comprehension(walk: Walk, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Value:
    walk.contexts[id(node)] = walk.context
    before = walk.scope
    with walk.under():
        for generator in node.generators:
            source = walk.value(generator.iter)
            if walk.scope is before:
                walk.scope = Scope("expression", before.path, before)
            for name in _names(generator.target):
                walk.scope.names[name] = OPAQUE
            _assign_inside(walk, generator.target, element_of(source))
            for test in generator.ifs:
                walk.value(test)
                walk.assume(When(expression(test), True))
                walk.scope.names = narrowed(walk, test, True, walk.scope.names)
        if isinstance(node, ast.DictComp):
            walk.value(node.key)
        value = walk.value(node.value if isinstance(node, ast.DictComp) else node.elt)
    walk.scope = before
    return ContainerValue((Item(None, value, node.lineno),), open=True)


def _assign_inside(walk: Walk, target: ast.expr, value: Value) -> None:
    match target:
        case ast.Name(id=name):
            walk.scope.names[name] = value
        case ast.Tuple(elts=targets) | ast.List(elts=targets):
            for each in targets:
                _assign_inside(walk, each, element_of(value))


def _names(target: ast.expr) -> list[str]:
    return [node.id for node in ast.walk(target) if isinstance(node, ast.Name)]


def _inner(walk: Walk, node: ast.expr) -> Value:
    """An expression that gives nothing that is followed: its parts alone matter."""
    if isinstance(node, ast.Compare):
        walk.contexts[id(node)] = walk.context
    for child in parts(node):
        if isinstance(child, ast.expr):
            walk.value(child)
    return OPAQUE


def _yield(walk: Walk, node: ast.Yield | ast.YieldFrom) -> Value:
    walk.scope.generator = True
    if node.value is not None:
        walk.value(node.value)
    return OPAQUE


EXPRESSIONS: Evaluators = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.List: _sequence,
    ast.Tuple: _sequence,
    ast.Set: _sequence,
    ast.Dict: _dict,
    ast.BoolOp: _boolean,
    ast.IfExp: _choice,
    ast.NamedExpr: _walrus,
    ast.Await: _await,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.DictComp: _comprehension,
    ast.Yield: _yield,
    ast.YieldFrom: _yield,
    **dict.fromkeys(
        (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Slice, ast.Starred, ast.JoinedStr, ast.FormattedValue), _inner
    ),
    **{getattr(ast, name): _inner for name in ("TemplateStr", "Interpolation") if hasattr(ast, name)},
}
