"""Calls: how they pass arguments (`*args`, `**kwargs` and where their keys were set, `functools.partial`), what they do
to lists and dicts, and the functions of Python that are followed: `getattr`, `super`, `import_module`, `mock.patch`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from patcher.analysis.reading.definitions import annotated
from patcher.analysis.reading.file_traversal import (
    Evaluators,
    Walk,
    added,
    becomes_method,
    identifier,
    is_definition,
    put,
    replaced,
)
from patcher.analysis.reading.local_values import (
    OPAQUE,
    ContainerValue,
    Item,
    PartialValue,
    element_of,
    in_standard_library,
    is_followed,
    plain,
    texts,
    union_of,
)
from patcher.analysis.reading.statements import import_named
from patcher.analysis.syntax import text_in
from patcher.analysis.uses import (
    CallOf,
    Condition,
    ImportOf,
    Instance,
    Keyword,
    MemberOf,
    Named,
    Opaque,
    Shape,
    Super,
    Value,
)


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of one call: what is always passed, and the keywords that some conditions add."""

    shape: Shape
    sometimes: tuple[tuple[tuple[Condition, ...], Keyword], ...] = ()


def arguments(walk: Walk, node: ast.Call, values: dict[int, Value]) -> Arguments:
    """`values`: those of the arguments, by identity of their nodes."""
    positional: list[str] = []
    keywords: list[Keyword] = []
    sometimes: list[tuple[tuple[Condition, ...], Keyword]] = []
    any_positional = any_keyword = False
    for argument in node.args:
        # Behind `*args` of unknown length a position says nothing of the parameter it reaches, so it gets no name.
        if not isinstance(argument, ast.Starred):
            positional.append("" if any_positional else identifier(argument))
            continue
        value = values[id(argument)]
        if isinstance(value, ContainerValue) and not value.open and not any_positional and _all(walk, value):
            positional += [item.name for item in value.items]
        else:
            any_positional = True
    for keyword in node.keywords:
        if keyword.arg is not None:
            keywords.append(Keyword(keyword.arg, keyword.lineno))
            continue
        value = values[id(keyword)]
        if not isinstance(value, ContainerValue):
            any_keyword = True
            continue
        any_keyword = any_keyword or value.open
        for item in value.items:
            # A computed key may be any keyword.
            if item.key is None:
                any_keyword = True
                continue
            # `f(**kwargs)` where `kwargs["x"] = 1` stands above: the finding is at the line of the key. A key that is
            # set only under conditions is passed only under them.
            named = Keyword(item.key, item.line)
            # Conditions that hold here anyway need not be repeated.
            further = _further(walk.conditions, item.conditions)
            if further:
                sometimes.append((further, named))
            else:
                keywords.append(named)
    passed = {keyword.name for keyword in keywords}
    sometimes = [(conditions, keyword) for conditions, keyword in sometimes if keyword.name not in passed]
    names = tuple(dict.fromkeys(keyword.name for _, keyword in sometimes))
    shape = Shape(tuple(positional), tuple(keywords), any_positional, any_keyword, sometimes=names)
    return Arguments(shape, tuple(sometimes))


def _all(walk: Walk, value: ContainerValue) -> bool:
    return not any(_further(walk.conditions, item.conditions) for item in value.items)


def _further(here: tuple[Condition, ...], there: tuple[Condition, ...]) -> tuple[Condition, ...]:
    """The conditions of another place that do not hold here anyway."""
    return tuple(condition for condition in there if condition not in here)


def call(walk: Walk, line: int, of: Value, given: Arguments) -> None:
    """Note a call; keywords that are passed only sometimes are calls of their own, under their conditions."""
    of = plain(of)
    walk.use(line, CallOf(of, given.shape))
    for conditions, keyword in given.sometimes:
        with walk.under(*conditions):
            walk.use(line, CallOf(of, Shape((), (keyword,), any_positional=True, any_keyword=True)))


def combined(first: Shape, then: Shape) -> Shape:
    """The arguments of a partial, and those of its call."""
    later = {keyword.name for keyword in then.keywords}
    return replace(
        then,
        positional=first.positional + then.positional,
        keywords=tuple(keyword for keyword in first.keywords if keyword.name not in later) + then.keywords,
        any_positional=first.any_positional or then.any_positional,
        any_keyword=first.any_keyword or then.any_keyword,
        sometimes=first.sometimes + then.sometimes,
    )


_READING = {"items", "keys", "values", "get", "copy", "index", "count", "union", "intersection", "difference"}


def container_method(
    walk: Walk, node: ast.Call, func: ast.Attribute, container: ContainerValue, values: dict[int, Value]
) -> Value:
    """The value of `container.method(…)`; the container's new state goes to the variable that holds it."""
    key = text_in(node.args[0]) if node.args else None
    first = values[id(node.args[0])] if node.args else OPAQUE
    changed: ContainerValue | None = None
    given: Value = OPAQUE
    match func.attr:
        case "update":
            changed = updated(walk, container, node, values)
        case "append" | "add" | "insert" if node.args:
            last = node.args[-1]
            changed = container.adding(Item(None, values[id(last)], node.lineno, identifier(last), walk.conditions))
        case "extend":
            more = first if isinstance(first, ContainerValue) else ContainerValue(open=True)
            changed = container.adding(*more.items, open_too=more.open)
        case "setdefault":
            given = container.element(key)
            if key is None or key not in [item.key for item in container.items]:
                value = values[id(node.args[1])] if len(node.args) > 1 else OPAQUE
                changed = added(container, Item(key, value, node.lineno, "", walk.conditions))
        case "pop":
            given = container.element(key)
            changed = container.without(key)
        case "get":
            given = container.element(key)
        case "values" | "copy":
            given = container
        case "items":
            pairs = tuple(
                Item(None, ContainerValue((Item(None, OPAQUE, node.lineno), item)), node.lineno)
                for item in container.items
            )
            given = ContainerValue(pairs, open=True)
        # An unknown method may change any key: `kwargs.custom_update()`.
        case name if name not in _READING:
            changed = container.escaped()
    if changed is not None:
        put(walk, func.value, changed)
    return given


def updated(walk: Walk, container: ContainerValue, node: ast.Call, values: dict[int, Value]) -> ContainerValue:
    """The dict after `update(other, key=value)`; also what `dict(other, key=value)` makes."""
    for given in (*node.args, *node.keywords):
        value = values[id(given)]
        if isinstance(given, ast.keyword) and given.arg is not None:
            name = identifier(given.value)
            container = added(container, Item(given.arg, value, given.lineno, name, walk.conditions))
        elif isinstance(value, ContainerValue):
            for item in value.items:
                container = added(container, item)
            container = container.adding(open_too=value.open)
        else:
            container = container.adding(open_too=True)
    return container


Values = dict[int, Value]
Read = Callable[[Walk, ast.Call, Values], Value]


def _getattr(walk: Walk, node: ast.Call, values: Values) -> Value:
    match node.args:
        case [owner, name, *default] if is_followed(values[id(owner)]):
            of = plain(values[id(owner)])
            alternatives: list[tuple[Value, tuple[Condition, ...]]] = [(values[id(each)], ()) for each in default]
            for text, conditions in (names := texts(values[id(name)])):
                with walk.under(*conditions):
                    walk.use(node.lineno, MemberOf(of, text, soft=bool(default)))
                alternatives.append((walk.member(of, text), conditions))
            return union_of(alternatives) if names else OPAQUE
        case _:
            return OPAQUE


def _hasattr(walk: Walk, node: ast.Call, values: Values) -> Value:
    match node.args:
        case [owner, name] if is_followed(values[id(owner)]):
            for text, _ in texts(values[id(name)]):
                walk.use(node.lineno, MemberOf(plain(values[id(owner)]), text, soft=True))
    return OPAQUE


def _setattr(walk: Walk, node: ast.Call, values: Values) -> Value:
    match node.args:
        case [owner, name, new] if is_definition(values[id(owner)]):
            for text, _ in texts(values[id(name)]):
                replaced(walk, node.lineno, values[id(owner)], text, values[id(new)])
    return OPAQUE


def _super(walk: Walk, node: ast.Call, values: Values) -> Value:
    of = values[id(node.args[0])] if node.args else walk.owner()
    return Super(of) if is_followed(of) else OPAQUE


def _type(walk: Walk, node: ast.Call, values: Values) -> Value:  # noqa: ARG001
    value = values[id(node.args[0])] if len(node.args) == 1 else OPAQUE
    return value.of if isinstance(value, Instance) else OPAQUE


def _import(walk: Walk, node: ast.Call, values: Values) -> Value:
    value = import_named(walk, node, values)
    return Named(value.dotted.partition(".")[0]) if isinstance(value, Named) else OPAQUE


def _import_module(walk: Walk, node: ast.Call, values: Values) -> Value:
    return import_named(walk, node, values) or OPAQUE


def _mock(walk: Walk, node: ast.Call, values: Values) -> Value:
    """`patch("module.Class.name", new)`: fails where the name is not there."""
    match node.args:
        case [target, *new]:
            paths = texts(values[id(target)])
            for text, conditions in paths:
                parent, _, name = text.rpartition(".")
                module, _, last = parent.rpartition(".")
                # `patch("vllm.engine.LLM.generate", new)`: importing `vllm.engine` and finding `LLM` must succeed, and
                # `generate` is set.
                if parent and not in_standard_library(parent):
                    with walk.under(*conditions):
                        walk.use(node.lineno, ImportOf(module, last) if module else ImportOf(last, None))
                        made = [values[id(each)] for each in new] if len(paths) == 1 else []
                        _mocked(walk, node, Named(parent), name, made)
    return OPAQUE


def _mock_object(walk: Walk, node: ast.Call, values: Values) -> Value:
    match node.args:
        case [owner, name, *new] if is_definition(values[id(owner)]):
            for text, conditions in texts(values[id(name)]):
                with walk.under(*conditions):
                    _mocked(walk, node, values[id(owner)], text, [values[id(each)] for each in new])
    return OPAQUE


def _mocked(walk: Walk, node: ast.Call, of: Value, name: str, new: list[Value]) -> None:
    # `patch.object(x, "name", create=True)` does not fail where the name is missing.
    made = any(keyword.arg == "create" for keyword in node.keywords)
    replaced(walk, node.lineno, of, name, new[0] if new else OPAQUE, soft=made)


def _dict(walk: Walk, node: ast.Call, values: Values) -> Value:
    return updated(walk, ContainerValue(origin=id(node)), node, values)


def _same(walk: Walk, node: ast.Call, values: Values) -> Value:  # noqa: ARG001
    """The first argument, or a container with the same elements."""
    first = node.args[0] if node.args else None
    return OPAQUE if first is None or isinstance(first, ast.Starred) else values[id(first)]


def _listed(walk: Walk, node: ast.Call, values: Values) -> Value:
    value = _same(walk, node, values) if node.args else ContainerValue(origin=id(node))
    if isinstance(value, ContainerValue):
        return replace(value, origin=id(node))
    element = element_of(value)
    if is_followed(element) or isinstance(element, ContainerValue):
        return ContainerValue((Item(None, element, node.lineno),), open=True)
    return OPAQUE


def _next(walk: Walk, node: ast.Call, values: Values) -> Value:
    return element_of(_same(walk, node, values))


def _enumerate(walk: Walk, node: ast.Call, values: Values) -> Value:
    pair = (Item(None, OPAQUE, node.lineno), Item(None, _next(walk, node, values), node.lineno))
    return ContainerValue((Item(None, ContainerValue(pair), node.lineno),), open=True)


def _gathered(walk: Walk, node: ast.Call, values: Values) -> Value:  # noqa: ARG001
    """`zip`: of each argument one element, together; `asyncio.gather`: what each gives."""
    if any(isinstance(argument, ast.Starred) for argument in node.args):
        return OPAQUE
    zipped = isinstance(node.func, ast.Name) and node.func.id == "zip"
    given = [values[id(argument)] for argument in node.args]
    together = ContainerValue(tuple(Item(None, element_of(v) if zipped else v, node.lineno) for v in given))
    return ContainerValue((Item(None, together, node.lineno),), open=True) if zipped else together


def _partial(walk: Walk, node: ast.Call, values: Values) -> Value:
    if not node.args or isinstance(node.args[0], ast.Starred):
        return OPAQUE
    of = values[id(node.args[0])]
    if not is_followed(of):
        return OPAQUE
    given = arguments(walk, node, values)
    # The first argument of `functools.partial` is the function. What else the function requires may come later.
    shape = replace(given.shape, positional=given.shape.positional[1:], partial=True)
    call(walk, node.lineno, of, Arguments(shape, given.sometimes))
    return PartialValue(of, shape)


def _cast(walk: Walk, node: ast.Call, values: Values) -> Value:  # noqa: ARG001
    return annotated(walk, node.args[0]) if len(node.args) == 2 else OPAQUE


BUILTINS: Mapping[str, Read] = {
    "getattr": _getattr,
    "hasattr": _hasattr,
    "setattr": _setattr,
    "super": _super,
    "type": _type,
    "__import__": _import,
    "dict": _dict,
    **dict.fromkeys(("list", "tuple", "set", "frozenset", "sorted", "reversed", "iter"), _listed),
    "next": _next,
    "enumerate": _enumerate,
    "zip": _gathered,
}
LIBRARY: Mapping[str, Read] = {
    "importlib.import_module": _import_module,
    "functools.partial": _partial,
    "unittest.mock.patch": _mock,
    "unittest.mock.patch.object": _mock_object,
    "asyncio.gather": _gathered,
    **dict.fromkeys(
        ("asyncio.run", "asyncio.wait_for", "asyncio.create_task", "asyncio.ensure_future", "asyncio.shield"), _same
    ),
    **dict.fromkeys(("copy.copy", "copy.deepcopy"), _same),
    "typing.cast": _cast,
}


def _call(walk: Walk, node: ast.Call) -> Value:
    walk.contexts[id(node)] = walk.context
    func = node.func
    # A built-in name that the file binds itself (`def getattr(...)`) is not the built-in.
    builtin = isinstance(func, ast.Name) and walk.scope.find(func.id) is None
    of = OPAQUE if builtin else walk.value(func)
    values: dict[int, Value] = {}
    for argument in node.args:
        inner = argument.value if isinstance(argument, ast.Starred) else argument
        values[id(argument)] = walk.value(inner)
    for keyword in node.keywords:
        values[id(keyword)] = walk.value(keyword.value)
    if isinstance(func, ast.Name) and builtin:
        known = BUILTINS.get(func.id)
        if known is not None:
            return known(walk, node, values)
        if walk.is_builtin(func.id):
            return OPAQUE
        # After `from x import *` an unknown name may come from there.
        of = Named(walk.dotted(func.id)) if walk.stars else OPAQUE
    if type(of) is Named and in_standard_library(of.dotted):
        read = LIBRARY.get(of.dotted)
        return read(walk, node, values) if read is not None else OPAQUE
    # `kwargs.update(...)`, `items.append(...)`: a container that this function fills.
    if isinstance(func, ast.Attribute) and isinstance(of, Opaque):
        container = walk.silent_value(func.value)
        if isinstance(container, ContainerValue):
            return container_method(walk, node, func, container, values)
    # From here on the call is one of a followed or an unknown function, which may change the containers that it gets.
    _escape(walk, node, values)
    _patch(walk, node, values)
    if isinstance(of, PartialValue):
        given = arguments(walk, node, values)
        given = Arguments(combined(of.shape, given.shape), given.sometimes)
        call(walk, node.lineno, of.of, given)
        return walk.result(of.of)
    if not is_followed(of):
        return OPAQUE
    _pass_self_on(walk, node, of, values)
    # `arguments` is costly, and a silent walk notes no uses.
    if not walk.silent:
        call(walk, node.lineno, of, arguments(walk, node, values))
    return walk.result(of)


def _escape(walk: Walk, node: ast.Call, values: dict[int, Value]) -> None:
    """Containers that are passed on may be changed by whoever gets them; those of `self` by its methods."""
    if walk.has_fields and isinstance(node.func, ast.Attribute):
        match node.func.value:
            case ast.Name(id="self") | ast.Call(func=ast.Name(id="super")):
                for name, value in walk.scope.names.items():
                    if name.startswith("self.") and isinstance(value, ContainerValue):
                        walk.scope.names[name] = value.escaped()
    for argument in (*node.args, *(keyword.value for keyword in node.keywords if keyword.arg)):
        if isinstance(argument, ast.Name | ast.Attribute):
            value = values[id(argument)] if id(argument) in values else walk.silent_value(argument)
            if isinstance(value, ContainerValue):
                put(walk, argument, value.escaped())


def _pass_self_on(walk: Walk, node: ast.Call, of: Value, values: dict[int, Value]) -> None:
    """`function(self, …)` of another class: there it is the same `self`."""
    match node.args:
        case [ast.Name(id="self") as first, *_] if isinstance(of, Named) and of.dotted in walk.last:
            value = values[id(first)]
            if isinstance(value, Instance):
                becomes_method(walk, of, value.of)


def _patch(walk: Walk, node: ast.Call, values: dict[int, Value]) -> None:
    """`anything(Class, "name", function)` puts the function into the class, whoever does it."""
    match node.args:
        case [owner, ast.Constant(value=str()), function]:
            if is_followed(values[id(owner)]):
                becomes_method(walk, values[id(function)], values[id(owner)])


CALLS: Evaluators = {ast.Call: _call}
