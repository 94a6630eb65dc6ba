"""The state of one walk over a file, and what assignments do to it, monkey patches such as `LLM.forward = own`
included.
"""

from __future__ import annotations

import ast
import builtins
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from patcher.analysis.reading.local_values import (
    OPAQUE,
    ContainerValue,
    Item,
    Scope,
    element_of,
    field_key,
    in_standard_library,
    is_followed,
    plain,
    union_of,
)
from patcher.analysis.syntax import text_in
from patcher.analysis.uses import (
    MOST_CONDITIONS,
    Bound,
    ClassFacts,
    Condition,
    Context,
    FunctionFacts,
    Instance,
    Member,
    MemberOf,
    Named,
    Need,
    Result,
    Super,
    Union,
    Use,
    Value,
)


@dataclass(slots=True, eq=False)
class ClassDraft:
    qualname: str
    line: int
    bases: tuple[Value, ...]
    attributes: dict[str, list[Bound]] = field(default_factory=dict)
    methods: dict[str, FunctionFacts] = field(default_factory=dict)

    def facts(self) -> ClassFacts:
        attributes = {name: tuple(bounds) for name, bounds in self.attributes.items()}
        return ClassFacts(self.qualname, self.line, self.bases, attributes, self.methods)


Evaluators = Mapping[type[ast.AST], Callable[["Walk", Any], Value]]
Executors = Mapping[type[ast.AST], Callable[["Walk", Any], None]]


class Walk:
    """Visits code in the order in which it runs, and the body of a function once the code around it has been visited.

    `value` evaluates an expression, `run` a block; what they do for each kind of node is in the tables.
    """

    def __init__(self, file: str, module: str, evaluators: Evaluators, executors: Executors) -> None:
        self.file = file
        self.module = module
        self._evaluators = evaluators
        self._executors = executors
        self.uses: list[Use] = []
        self.contexts: dict[int, Context] = {}
        """The context of each visited statement, call, subscript, dict and comparison, by the identity of its node."""
        self.bindings: dict[str, list[Bound]] = {}
        self.classes: dict[str, ClassDraft] = {}
        self.functions: dict[str, FunctionFacts] = {}
        self.begun: set[str] = set()
        """Qualified names that definitions have: the next one of that name gets its line as well."""
        self.stars: list[str] = []
        self.again: frozenset[str] = frozenset()
        """Names that the module's body binds more than once."""
        self.scope = Scope("module", "")
        self.later: deque[Callable[[], None]] = deque()
        self.last: dict[str, Callable[[], None]] = {}
        """Functions outside of classes that have a `self`, by dotted name. They are visited last, when a patch may
        have told what `self` is."""
        self.patched: dict[str, Value] = {}
        """For each function that is put into a class of another package: that class. By the function's dotted name."""
        self.annotations_run = True
        self.silent = False
        self.line = 0
        self.has_fields = False
        self.unsure = 0
        """How many loops and `try` blocks stand around: what is bound there may not be, or once more."""
        self.function = ""
        self.conditions: tuple[Condition, ...] = ()
        self.caught: tuple[str, ...] = ()
        self._context: Context | None = None

    @property
    def context(self) -> Context:
        context = self._context
        if context is None:
            context = self._context = Context(self.function, self.conditions, self.caught)
        return context

    def context_of(self, node: ast.AST) -> Context:
        """The context in which a visited statement, call, subscript, dict or comparison runs."""
        return self.contexts.get(id(node), Context())

    def value(self, node: ast.expr) -> Value:
        return self._evaluators[type(node)](self, node)

    def silent_value(self, node: ast.expr) -> Value:
        """The value of an expression, without noting uses: for expressions that the code does not evaluate here."""
        before, self.silent = self.silent, True
        value = self.value(node)
        self.silent = before
        return value

    def run(self, block: Iterable[ast.stmt]) -> None:
        for statement in block:
            self.contexts[id(statement)] = self.context
            self.line = statement.lineno
            self._executors[type(statement)](self, statement)

    def use(self, line: int, need: Need) -> None:
        if not self.silent:
            self.uses.append(Use(self.file, line, need, self.context))

    def assume(self, *conditions: Condition) -> None:
        """Add conditions that hold from here to the end of the enclosing block."""
        self.conditions = (self.conditions + conditions)[:MOST_CONDITIONS]
        self._context = None

    @contextmanager
    def under(self, *conditions: Condition, caught: tuple[str, ...] = ()) -> Iterator[None]:
        """Add conditions for what is visited inside. Conditions that are assumed inside end with it, too."""
        before = self.conditions, self.caught
        self.conditions = (self.conditions + conditions)[:MOST_CONDITIONS]
        self.caught = (self.caught + caught)[:MOST_CONDITIONS]
        self._context = None
        yield
        self.conditions, self.caught = before
        self._context = None

    @contextmanager
    def inside(self, scope: Scope, function: str, conditions: tuple[Condition, ...]) -> Iterator[None]:
        """Visit another scope, and return to the present one afterwards."""
        before = self.scope, self.function, self.conditions, self.caught, self.unsure
        self.scope, self.function, self.conditions = scope, function, conditions
        self.caught, self.unsure, self._context = (), 0, None
        yield
        self.scope, self.function, self.conditions, self.caught, self.unsure = before
        self._context = None

    @staticmethod
    def is_builtin(name: str) -> bool:
        return hasattr(builtins, name)

    @property
    def package(self) -> str:
        """The package that relative imports start from."""
        return self.module if self.file.endswith("__init__.py") else self.module.rpartition(".")[0]

    def dotted(self, qualname: str) -> str:
        return f"{self.module}.{qualname}"

    def bind(self, name: str, value: Value) -> None:
        """Bind a name in the scope in which an assignment binds it: comprehensions have none of their own for `:=`."""
        scope = self.scope
        while scope.kind == "expression" and scope.parent is not None:
            scope = scope.parent
        # `global NAME` in a function: the module has one more binding, under the conditions of this assignment.
        if name in scope.shared:
            self.bindings.setdefault(name, []).append(self.bound(value))
            return
        scope.names[name] = value
        if scope.kind == "module":
            bounds = self.bindings.setdefault(name, [])
            # An unconditional assignment replaces what was bound before:
            #     x = old_api
            #     x = new_api
            # In a branch, a `try` or a loop both bindings stay, each with its conditions.
            if not self.conditions and not self.unsure:
                bounds.clear()
            bounds.append(self.bound(value))
        elif scope.kind == "class":
            self.classes[scope.path].attributes.setdefault(name, []).append(self.bound(value))

    def bound(self, value: Value) -> Bound:
        return Bound(plain(value), self.conditions)

    def member(self, of: Value, name: str) -> Value:
        """The attribute of a value, as far as values are followed."""
        # Members of the standard library stay dotted names, so that `functools.partial` is still known as such.
        if type(of) is Named and in_standard_library(of.dotted):
            return Named(f"{of.dotted}.{name}")
        # `Actor.remote(...)` and `Actor.options(...)` are put on a class by `@ray.remote`. The class itself does not
        # have them, so a look-up in it would report attributes that are there when the code runs.
        if not is_followed(of) or (name in ("remote", "options") and not _of_package(of, "ray")):
            return OPAQUE
        return Member(plain(of) if type(of) is Union else of, name)

    def result(self, of: Value) -> Value:
        return Result(plain(of) if type(of) is Union else of) if is_followed(of) else OPAQUE

    def owner(self) -> Value:
        """The class whose method is being visited."""
        return Named(self.scope.owner) if self.scope.owner else OPAQUE


def _of_package(value: Value, package: str) -> bool:
    # Values nest: `Member(Result(Named("ray.x")), "y")` is of the package `ray`.
    while not isinstance(value, (Named, Union)):
        if isinstance(value, Super) or not hasattr(value, "of"):
            return False
        value = value.of
    return isinstance(value, Named) and value.dotted.partition(".")[0] == package


def assign(walk: Walk, target: ast.expr, value: Value, expression: ast.expr | None = None) -> None:
    """Assign a value to a target. `expression`: the expression whose whole value this is, if there is one."""
    match target:
        case ast.Name(id=name):
            walk.bind(name, value)
        case ast.Attribute():
            _attribute(walk, target, value)
        case ast.Subscript():
            _subscript(walk, target, value, expression)
        case ast.Starred(value=inner):
            assign(walk, inner, OPAQUE)
        case ast.Tuple(elts=targets) | ast.List(elts=targets):
            _unpack(walk, targets, value, expression)


def _unpack(walk: Walk, targets: list[ast.expr], value: Value, expression: ast.expr | None) -> None:
    parts = expression.elts if isinstance(expression, (ast.Tuple, ast.List)) else []
    starred = any(isinstance(each, ast.Starred) for each in (*targets, *parts))
    alternatives = value.values if isinstance(value, Union) else (value,)
    tuples = [
        alternative
        for alternative in alternatives
        if isinstance(alternative, ContainerValue) and len(alternative.items) == len(targets)
    ]
    for position, target in enumerate(targets):
        # Positions are known only where every alternative is a tuple of the same length:
        #     a, b = (x, y) if flag else (y, x)
        # With `a, *rest = ...` or an unknown sequence each target is some element.
        if tuples and len(tuples) == len(alternatives) and not starred:
            part = parts[position] if len(parts) == len(targets) else None
            assign(walk, target, union_of((alternative.items[position].value, ()) for alternative in tuples), part)
        else:
            assign(walk, target, element_of(value))


def _attribute(walk: Walk, target: ast.Attribute, value: Value) -> None:
    of = walk.value(target.value)
    owner = of.of if isinstance(of, Instance) else of
    # `self.attribute = value`, or `cls.attribute = value`, in a method of this class.
    if isinstance(owner, Named) and owner.dotted == walk.scope.owner:
        class_draft = walk.classes[owner.dotted.removeprefix(f"{walk.module}.")]
        class_draft.attributes.setdefault(target.attr, []).append(walk.bound(value))
        walk.has_fields = walk.has_fields or isinstance(value, ContainerValue)
        if isinstance(value, ContainerValue) or field_key(target) in walk.scope.names:
            walk.scope.names[field_key(target)] = value if isinstance(value, ContainerValue) else OPAQUE
    # `Class.attribute = value` and `module.attribute = value`: a patch of something from elsewhere. An attribute that
    # is set on an object that the code made (`engine.x = 1`) says nothing of the package.
    elif is_followed(of) and is_definition(of):
        replaced(walk, target.end_lineno or target.lineno, of, target.attr, value)


def is_definition(value: Value) -> bool:
    """Whether it is a module or class by its path, and not something made."""
    match value:
        case Named():
            return True
        case Member(of=of):
            return is_definition(of)
        case Union(values=values):
            return any(is_definition(each) for each in values)
        case _:
            return False


def replaced(walk: Walk, line: int, of: Value, name: str, value: Value, *, soft: bool = True) -> None:
    """Note a patch, `module.name = value` or `Class.name = value`. It does not fail where the name is missing."""
    if is_followed(of):
        walk.use(line, MemberOf(of, name, soft=soft))
        becomes_method(walk, value, of)


def becomes_method(walk: Walk, function: Value, of: Value) -> None:
    """Note that a function is put into a class, whose instance `self` is then."""
    for each in function.values if isinstance(function, Union) else (function,):
        if isinstance(each, Named) and each.dotted.startswith(f"{walk.module}."):
            known = walk.patched.get(each.dotted)
            walk.patched[each.dotted] = of if known is None else union_of(((known, ()), (of, ())))


def _subscript(walk: Walk, target: ast.Subscript, value: Value, expression: ast.expr | None) -> None:
    walk.contexts[id(target)] = walk.context
    of = walk.value(target.value)
    walk.value(target.slice)
    if isinstance(of, ContainerValue):
        item = Item(text_in(target.slice), value, target.lineno, identifier(expression), walk.conditions)
        put(walk, target.value, added(of, item))


def added(container: ContainerValue, item: Item) -> ContainerValue:
    """The container with one more item. A key that is there under other conditions keeps both values."""
    if item.key is None:
        return container.adding(item, open_too=True)
    earlier = [known for known in container.items if known.key == item.key]
    # The key is set already where this code runs: `d["x"] = 1` followed by `d["x"] = 2` under a further condition. The
    # keyword is passed either way, and that is all that a call depends on.
    if any(known.conditions == item.conditions[: len(known.conditions)] for known in earlier):
        return container
    kept = tuple(known for known in container.items if known not in earlier or known.conditions != item.conditions)
    return ContainerValue((*kept, item), container.open, container.removed - {item.key}, container.origin)


def put(walk: Walk, holder: ast.expr, value: Value) -> None:
    """Note the new state of a container, in the scope whose variable it is."""
    name = holder.id if isinstance(holder, ast.Name) else field_key(holder) if isinstance(holder, ast.Attribute) else ""
    if name in walk.scope.names:
        walk.scope.names[name] = value


def identifier(node: ast.expr | None) -> str:
    """The name that an argument goes by: the last word of the expression."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=str(name))):
            return name
        case ast.Await(value=inner) | ast.Starred(value=inner):
            return identifier(inner)
        case _:
            return ""
