"""The state of one walk over a file: where it is, what it has found."""

from __future__ import annotations

import ast
import builtins
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from patcher.analysis.facts import Bound, FunctionFacts
from patcher.analysis.model import MOST_CONDITIONS, Condition, Context, Need, Otherwise, Use
from patcher.analysis.reading.draft import ClassDraft
from patcher.analysis.reading.scope import Scope
from patcher.analysis.reading.ways import OPAQUE, in_standard_library, is_followed, plain
from patcher.analysis.values import Member, Named, OneOf, Result, Super, Value

Evaluators = Mapping[type[ast.AST], Callable[["Walk", Any], Value]]
Executors = Mapping[type[ast.AST], Callable[["Walk", Any], None]]


class Walk:
    """Visits code in the order in which it runs; the bodies of functions when the code around them is through.

    `value` evaluates an expression, `run` a block; what they do for each kind of node is in the tables.
    """

    def __init__(self, file: str, module: str, evaluators: Evaluators, executors: Executors) -> None:
        self.file = file
        self.module = module
        self._evaluators = evaluators
        self._executors = executors
        self.uses: list[Use] = []
        self.contexts: dict[int, Context] = {}
        """By identity of the node: statements, calls, subscripts, dicts, comparisons."""
        self.bindings: dict[str, list[Bound]] = {}
        self.classes: dict[str, ClassDraft] = {}
        self.functions: dict[str, FunctionFacts] = {}
        self.begun: set[str] = set()
        self.stars: list[str] = []
        self.again: frozenset[str] = frozenset()
        """Names that the module's body binds more than once."""
        self.scope = Scope("module", "")
        self.later: deque[Callable[[], None]] = deque()
        self.last: dict[str, Callable[[], None]] = {}
        """Functions outside of classes that have a `self`: read when it is known what it is, by dotted name."""
        self.patched: dict[str, Value] = {}
        """Functions put into a class of another package, by dotted name: what they become methods of."""
        self.annotations_run = True
        self.silent = False
        self.line = 0
        self.has_fields = False
        self.looping = 0
        self.function = ""
        self.conditions: tuple[Condition, ...] = ()
        self.caught: tuple[str, ...] = ()
        self.attempts: tuple[Otherwise, ...] = ()
        self._context: Context | None = None

    @property
    def context(self) -> Context:
        context = self._context
        if context is None:
            context = self._context = Context(self.function, self.conditions, self.caught)
        return context

    def context_of(self, node: ast.AST) -> Context:
        """When a node runs that has been visited: a statement, call, subscript, dict or comparison."""
        return self.contexts.get(id(node), Context())

    def value(self, node: ast.expr) -> Value:
        return self._evaluators[type(node)](self, node)

    def quietly(self, node: ast.expr) -> Value:
        """The value of an expression that is not evaluated when the code runs."""
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
        """From here to the end of the block around it."""
        self.conditions = (self.conditions + conditions)[:MOST_CONDITIONS]
        self._context = None

    @contextmanager
    def under(self, *conditions: Condition, caught: tuple[str, ...] = ()) -> Iterator[None]:
        """Conditions for what is visited inside; also those assumed inside end with it."""
        before = self.conditions, self.caught
        self.conditions = (self.conditions + conditions)[:MOST_CONDITIONS]
        self.caught = (self.caught + caught)[:MOST_CONDITIONS]
        self._context = None
        yield
        self.conditions, self.caught = before
        self._context = None

    @contextmanager
    def inside(self, scope: Scope, function: str, conditions: tuple[Condition, ...]) -> Iterator[None]:
        """Visit another scope, whatever the walk is in the middle of."""
        before = self.scope, self.function, self.conditions, self.caught, self.attempts
        self.scope, self.function, self.conditions = scope, function, conditions
        self.caught, self.attempts, self._context = (), (), None
        yield
        self.scope, self.function, self.conditions, self.caught, self.attempts = before
        self._context = None

    def assume_nothing(self) -> None:
        self.conditions = ()
        self._context = None

    def begin(self, key: str) -> str:
        """Take a qualified name for a definition; the next one of that name needs another."""
        self.begun.add(key)
        return key

    @staticmethod
    def is_builtin(name: str) -> bool:
        return hasattr(builtins, name)

    def dotted(self, qualname: str) -> str:
        return f"{self.module}.{qualname}"

    def bind(self, name: str, value: Value) -> None:
        """Give a name a value, in the scope where an assignment would."""
        scope = self.scope
        while scope.kind == "expression" and scope.parent is not None:
            scope = scope.parent
        if name in scope.shared:
            self.bindings.setdefault(name, []).append(self.bound(value))
            return
        scope.names[name] = value
        if scope.kind == "module":
            bounds = self.bindings.setdefault(name, [])
            if not self.conditions and not self.attempts and not self.looping:
                bounds.clear()
            bounds.append(self.bound(value))
        elif scope.kind == "class":
            self.classes[scope.path].attributes.setdefault(name, []).append(self.bound(value))

    def bound(self, value: Value) -> Bound:
        attempt = self.attempts[-1] if self.attempts else None
        if attempt is not None:
            attempt = Otherwise(attempt.first, max(self.line, attempt.first), attempt.catches)
        return Bound(plain(value), self.conditions, attempt)

    def member(self, of: Value, name: str) -> Value:
        """The attribute of a value, as far as values are followed."""
        if type(of) is Named and in_standard_library(of.dotted):
            return Named(f"{of.dotted}.{name}")
        if not is_followed(of) or (name in ("remote", "options") and not _of_package(of, "ray")):
            return OPAQUE
        return Member(plain(of) if type(of) is OneOf else of, name)

    def result(self, of: Value) -> Value:
        return Result(plain(of) if type(of) is OneOf else of) if is_followed(of) else OPAQUE

    def owner(self) -> Value:
        """The class whose method is being visited."""
        return Named(self.scope.owner) if self.scope.owner else OPAQUE


def _of_package(value: Value, package: str) -> bool:
    while not isinstance(value, (Named, OneOf)):
        if isinstance(value, Super) or not hasattr(value, "of"):
            return False
        value = value.of
    return isinstance(value, Named) and value.dotted.partition(".")[0] == package
