"""Functions, lambdas and classes."""

from __future__ import annotations

import ast
from collections import deque

from patcher.analysis.facts import FunctionFacts
from patcher.analysis.model import MethodOf
from patcher.analysis.reading.annotations import annotated
from patcher.analysis.reading.draft import ClassDraft
from patcher.analysis.reading.parameters import evaluate_signature, parameter_values, parameters_of
from patcher.analysis.reading.scope import Scope
from patcher.analysis.reading.walk import Evaluators, Executors, Walk
from patcher.analysis.reading.ways import OPAQUE, is_followed, one_of, plain
from patcher.analysis.values import Instance, Named, Opaque, Value

Function = ast.FunctionDef | ast.AsyncFunctionDef
_ON_CLASS = ("classmethod", "__new__", "__init_subclass__", "__class_getitem__")
_REPEATED = ("overload", "setter", "deleter")


def _function(walk: Walk, node: Function) -> None:
    evaluate_signature(walk, node)
    decorators = {_last_word(decorator) for decorator in node.decorator_list}
    if decorators.intersection(_REPEATED):
        if "overload" not in decorators:
            _later(walk, node, node.name, decorators)
        return
    key = _key(walk, node)
    _define(walk, node.name, Named(walk.dotted(key)))
    _later(walk, node, key, decorators)
    if walk.scope.kind == "class":
        draft = walk.classes[walk.scope.path]
        if any(is_followed(base) or base == OPAQUE for base in draft.bases):
            shape = parameters_of(node, bound="staticmethod" not in decorators)
            walk.use(node.lineno, MethodOf(walk.scope.owner, node.name, shape))


def _later(walk: Walk, node: Function, key: str, decorators: set[str]) -> None:
    """Visit the body when the code around it is through: then the names that it sees have their values."""
    around = walk.scope
    method = around.kind == "class"
    if around.kind == "function":
        around = Scope("function", around.path, around, dict(around.names))
    function = f"{walk.function}.{node.name}" if walk.function and not method else _plain(walk.scope.within(node.name))
    conditions, silent = walk.conditions, walk.silent
    first: Value | None = None
    if method and "staticmethod" not in decorators:
        owner = Named(walk.scope.owner)
        first = owner if {*decorators, node.name}.intersection(_ON_CLASS) else Instance(owner)

    def visit() -> None:
        of = first
        if of is None and foreign:
            owner = walk.patched.get(walk.dotted(key))
            of = None if owner is None else owner if isinstance(owner, Instance) else Instance(owner)
        scope = Scope("function", key, around)
        before = walk.silent, walk.later
        walk.silent, walk.later = silent, deque()
        with walk.inside(scope, function, conditions):
            scope.names = parameter_values(walk, node.args, of)
            walk.run(node.body)
            _note(walk, node, key, scope, method, bound=first is not None)
            while walk.later:
                walk.later.popleft()()
        walk.silent, walk.later = before

    positional = (*node.args.posonlyargs, *node.args.args)
    foreign = not method and bool(positional) and positional[0].arg == "self"
    if foreign:
        walk.last[walk.dotted(key)] = visit
    else:
        walk.later.append(visit)


def _note(walk: Walk, node: Function, key: str, scope: Scope, method: bool, *, bound: bool) -> None:
    """Add the function to the facts, now that its body has been read."""
    result = annotated(walk, node.returns)
    if not is_followed(result):
        if scope.generator or (node.returns is not None and not scope.results):
            result = OPAQUE
        else:
            result = one_of((value, ()) for value in scope.results)
    facts = FunctionFacts(_plain(key), parameters_of(node, bound=bound), plain(result), *_marks(node))
    if not method:
        walk.functions[key] = facts
    elif scope.parent is not None:
        walk.classes[scope.parent.path].methods.setdefault(node.name, facts)


def _marks(node: Function) -> tuple[bool, bool, bool]:
    """Whether it is read like an attribute, is abstract, and never looks at its `**kwargs`."""
    marks, keywords = {_last_word(mark) for mark in node.decorator_list}, node.args.kwarg
    ignores = keywords is not None and not any(
        isinstance(inner, ast.Name) and inner.id == keywords.arg for inner in ast.walk(node)
    )
    return not marks.isdisjoint(("property", "cached_property")), "abstractmethod" in marks, ignores


def _class(walk: Walk, node: ast.ClassDef) -> None:
    for decorator in node.decorator_list:
        walk.value(decorator)
    bases = tuple(_base(walk, base) for base in node.bases)
    for keyword in node.keywords:
        walk.value(keyword.value)
    key = _key(walk, node)
    walk.classes[key] = ClassDraft(_plain(key), node.lineno, tuple(plain(base) for base in bases))
    around = walk.scope
    _define(walk, node.name, Named(walk.dotted(key)))
    walk.scope = Scope("class", key, around, owner=walk.dotted(key))
    with walk.under():
        walk.run(node.body)
    walk.scope = around


def _base(walk: Walk, node: ast.expr) -> Value:
    if isinstance(node, ast.Subscript):
        walk.value(node.slice)
        return walk.value(node.value)
    return walk.value(node)


def _define(walk: Walk, name: str, value: Value) -> None:
    scope = walk.scope
    taken = (
        walk.again if scope.kind == "module" else walk.classes[scope.path].attributes if scope.kind == "class" else ()
    )
    if name in taken:
        walk.bind(name, value)
    else:
        scope.names[name] = value


def _key(walk: Walk, node: Function | ast.ClassDef) -> str:
    """The qualified name; with the line, where the name alone does not tell which definition is meant."""
    key = walk.scope.within(node.name)
    ambiguous = walk.scope.kind == "module" and node.name in walk.again
    taken = walk.classes if isinstance(node, ast.ClassDef) else walk.functions
    return f"{key}@{node.lineno}" if ambiguous or key in taken or key in walk.begun else walk.begin(key)


def _plain(key: str) -> str:
    return ".".join(part.partition("@")[0] for part in key.split("."))


def _last_word(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=func):
            return _last_word(func)
        case _:
            return ""


def _lambda(walk: Walk, node: ast.Lambda) -> Value:
    for default in (*node.args.defaults, *node.args.kw_defaults):
        if default is not None:
            walk.value(default)
    scope = Scope("expression", walk.scope.path, walk.scope, parameter_values(walk, node.args))
    with walk.inside(scope, walk.function or "<lambda>", walk.conditions):
        walk.value(node.body)
    return Opaque()


LAMBDAS: Evaluators = {ast.Lambda: _lambda}
DEFINITIONS: Executors = {ast.FunctionDef: _function, ast.AsyncFunctionDef: _function, ast.ClassDef: _class}
