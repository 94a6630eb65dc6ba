"""Functions and classes, their decorators and parameters, and what type annotations and `isinstance` say of a name."""

from __future__ import annotations

import ast
from collections import deque

from patcher.analysis.parameters import signature_in
from patcher.analysis.reading.file_traversal import ClassDraft, Evaluators, Executors, Walk
from patcher.analysis.reading.local_values import (
    NOTHING,
    OPAQUE,
    ContainerValue,
    Item,
    Names,
    Scope,
    is_followed,
    plain,
    union_of,
)
from patcher.analysis.syntax import FunctionNode, decorators, last_name
from patcher.analysis.uses import (
    FunctionFacts,
    Instance,
    Member,
    MethodOf,
    Named,
    Opaque,
    Result,
    Subtype,
    Union,
    Value,
)
from patcher.worktree.python import UnreadableError, parse_expression

_TRANSPARENT = {"Optional", "Annotated", "ClassVar", "Final", "Required", "NotRequired", "Awaitable", "InitVar"}
_CONTAINERS = {
    *("list", "List", "set", "Set", "frozenset", "FrozenSet", "tuple", "Tuple", "deque", "Deque"),
    *("Sequence", "MutableSequence", "Collection", "Iterable", "Iterator", "AsyncIterable", "AsyncIterator"),
    *("Generator", "AsyncGenerator"),
}
_MAPPINGS = {"dict", "Dict", "Mapping", "MutableMapping", "defaultdict", "DefaultDict", "OrderedDict"}


def annotated(walk: Walk, node: ast.expr | None) -> Value:
    """What something so annotated is: an instance of a class, one of several, a container; opaque if it says little."""
    # A parameter without annotation can be anything.
    if node is None:
        return OPAQUE
    before, walk.silent = walk.silent, True
    value = _annotated(walk, node)
    walk.silent = before
    return value


def _annotated(walk: Walk, node: ast.expr) -> Value:
    match node:
        case ast.Constant(value=None):
            # `-> None`: the value has no members to look up.
            return NOTHING
        case ast.Constant(value=str(text)):
            try:
                return _annotated(walk, parse_expression(text.strip()))
            except UnreadableError:
                return OPAQUE
        case ast.Name() | ast.Attribute():
            return _instance(walk.value(node))
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return union_of(((_annotated(walk, left), ()), (_annotated(walk, right), ())))
        case ast.Subscript(value=head, slice=inner):
            return _generic(walk, head, inner)
        case _:
            return OPAQUE


def _instance(value: Value) -> Value:
    return Instance(value) if is_followed(value) and isinstance(value, (Named, Member, Union)) else OPAQUE


def _generic(walk: Walk, head: ast.expr, inner: ast.expr) -> Value:
    name = last_name(head)
    arguments = inner.elts if isinstance(inner, ast.Tuple) else [inner]
    if not arguments:
        return OPAQUE
    if name == "Union":
        return union_of((_annotated(walk, each), ()) for each in arguments)
    if name in _TRANSPARENT:
        return _annotated(walk, arguments[0])
    if name in ("type", "Type"):
        instance = _annotated(walk, arguments[0])
        return Subtype(instance.of) if isinstance(instance, Instance) else OPAQUE
    # `tuple[A, B]` has known positions; `tuple[A, ...]` is like a list.
    if name in ("tuple", "Tuple") and not isinstance(arguments[-1], ast.Constant):
        return _holding(walk, arguments)
    if name in _CONTAINERS:
        return _holding(walk, arguments[:1])
    # Iterating over a mapping gives its keys, but what code looks at are the values; keys are text almost always.
    if name in _MAPPINGS:
        return _holding(walk, arguments[-1:])
    return _instance(walk.value(head))


def _holding(walk: Walk, arguments: list[ast.expr]) -> Value:
    items = tuple(Item(None, _annotated(walk, each), each.lineno) for each in arguments)
    return ContainerValue(items, open=True)


def narrowed(walk: Walk, test: ast.expr, holds: bool, names: Names) -> Names:
    """The names where a test is known to hold, or not to; the same object if it tells nothing of them."""
    match test:
        # `if isinstance(x, A):` makes x an instance of A in the branch. Where the test fails nothing is known.
        case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name(id=name), kinds]) if holds:
            value = _instances(walk.silent_value(kinds))
            return names if value is None else {**names, name: value}
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return narrowed(walk, operand, not holds, names)
        # All parts of `a and b` hold where it holds; all parts of `a or b` fail where it fails.
        case ast.BoolOp(op=op, values=values) if isinstance(op, ast.And) == holds:
            for each in values:
                names = narrowed(walk, each, holds, names)
            return names
        case _:
            return names


def _instances(kinds: Value) -> Value | None:
    if isinstance(kinds, ContainerValue) and not kinds.open and kinds.items:
        values = [_instances(item.value) for item in kinds.items]
        found = [value for value in values if value is not None]
        return union_of((value, ()) for value in found) if len(found) == len(values) else None
    return Instance(kinds) if is_followed(kinds) and not isinstance(kinds, ContainerValue) else None


def parameter_values(walk: Walk, arguments: ast.arguments, first: Value | None = None) -> dict[str, Value]:
    """What each parameter stands for; `first`: what the first one is, whatever it is annotated with."""
    values: dict[str, Value] = {}
    for argument in (*arguments.posonlyargs, *arguments.args):
        if first is not None and not values:
            values[argument.arg] = first
        else:
            values[argument.arg] = annotated(walk, argument.annotation)
    for argument in arguments.kwonlyargs:
        values[argument.arg] = annotated(walk, argument.annotation)
    for rest in (arguments.vararg, arguments.kwarg):
        if rest is not None:
            element = annotated(walk, rest.annotation)
            items = () if element is OPAQUE else (Item(None, element, rest.lineno),)
            values[rest.arg] = ContainerValue(items, open=True, origin=id(rest))
    return values


def evaluate_signature(walk: Walk, node: FunctionNode) -> None:
    """What runs where a function is defined: decorators, defaults, and annotations unless they are put off."""
    for expression in (*node.decorator_list, *node.args.defaults, *node.args.kw_defaults):
        if expression is not None:
            walk.value(expression)
    if not walk.annotations_run:
        return
    rest = [each for each in (node.args.vararg, node.args.kwarg) if each is not None]
    for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, *rest):
        if argument.annotation is not None:
            walk.value(argument.annotation)
    if node.returns is not None:
        walk.value(node.returns)


_ON_CLASS = ("classmethod", "__new__", "__init_subclass__", "__class_getitem__")
_REPEATED = ("overload", "setter", "deleter")


def _function(walk: Walk, node: FunctionNode) -> None:
    evaluate_signature(walk, node)
    marks = decorators(node)
    # `@overload` declares and has no body; `@x.setter` is a second function of the same name, whose body is read all
    # the same.
    if marks.intersection(_REPEATED):
        if "overload" not in marks:
            _later(walk, node, node.name, marks)
        return
    key = _key(walk, node)
    _define(walk, node.name, Named(walk.dotted(key)))
    _later(walk, node, key, marks)
    if walk.scope.kind == "class":
        class_draft = walk.classes[walk.scope.path]
        if any(is_followed(base) or base == OPAQUE for base in class_draft.bases):
            signature = signature_in(node.args)
            signature = signature if "staticmethod" in marks else signature.bound()
            walk.use(node.lineno, MethodOf(walk.scope.owner, node.name, signature))


def _later(walk: Walk, node: FunctionNode, key: str, marks: frozenset[str]) -> None:
    """Visit the body when the code around it is through: then the names that it sees have their values."""
    around = walk.scope
    method = around.kind == "class"
    if around.kind == "function":
        # A nested function sees the names as they are at its definition. Python would see later values too, but they
        # are seldom of another kind.
        around = Scope("function", around.path, around, dict(around.names))
    function = f"{walk.function}.{node.name}" if walk.function and not method else _plain(walk.scope.within(node.name))
    conditions, silent = walk.conditions, walk.silent
    first: Value | None = None
    if method and "staticmethod" not in marks:
        owner = Named(walk.scope.owner)
        first = owner if {*marks, node.name}.intersection(_ON_CLASS) else Instance(owner)

    def visit() -> None:
        of = first
        # `def new_forward(self, ...)` outside of any class, put into one later: `LLM.forward = new_forward`. `self` is
        # then an instance of that class.
        if of is None and foreign:
            owner = walk.patched.get(walk.dotted(key))
            of = None if owner is None else owner if isinstance(owner, Instance) else Instance(owner)
        scope = Scope("function", key, around)
        before = walk.silent, walk.later
        walk.silent, walk.later = silent, deque()
        with walk.inside(scope, function, conditions):
            scope.names = parameter_values(walk, node.args, of)
            walk.run(node.body)
            _note(walk, node, key, scope, method)
            while walk.later:
                walk.later.popleft()()
        walk.silent, walk.later = before

    positional = (*node.args.posonlyargs, *node.args.args)
    foreign = not method and bool(positional) and positional[0].arg == "self"
    # Read last: a patch further down in the file tells what `self` is.
    if foreign:
        walk.last[walk.dotted(key)] = visit
    else:
        walk.later.append(visit)


def _note(walk: Walk, node: FunctionNode, key: str, scope: Scope, method: bool) -> None:
    """Add the function to the facts, now that its body has been read."""
    result = annotated(walk, node.returns)
    if not is_followed(result):
        # A generator gives what it yields, which is not followed. A function that declares a type of no package, as `->
        # dict`, and returns nothing followed is opaque.
        if scope.generator or (node.returns is not None and not scope.results):
            result = OPAQUE
        else:
            result = union_of((value, ()) for value in scope.results)
    # `def build() -> Engine: return Engine()` gives no class that derives from it.
    elif isinstance(result, Instance) and scope.results and all(one == Result(result.of) for one in scope.results):
        result = Result(result.of)
    facts = FunctionFacts(plain(result), *_marks(node))
    if not method:
        walk.functions[key] = facts
    elif scope.parent is not None:
        walk.classes[scope.parent.path].methods.setdefault(node.name, facts)


def _marks(node: FunctionNode) -> tuple[bool, bool, bool]:
    """Whether it is read like an attribute, is abstract, and never looks at its `**kwargs`."""
    marks, keywords = decorators(node), node.args.kwarg
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


def _key(walk: Walk, node: FunctionNode | ast.ClassDef) -> str:
    """The qualified name; with the line, where the name alone does not tell which definition is meant."""
    key = walk.scope.within(node.name)
    # Two definitions of one name are told apart by their line: `Name@12`.
    if key in walk.begun or (walk.scope.kind == "module" and node.name in walk.again):
        return f"{key}@{node.lineno}"
    walk.begun.add(key)
    return key


def _plain(key: str) -> str:
    return ".".join(part.partition("@")[0] for part in key.split("."))


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
