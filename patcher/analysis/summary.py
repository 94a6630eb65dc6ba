"""A light summary of one file: what each of its bodies imports, mentions and assigns, and under which conditions.

Reachability and the tests of versions go through a whole tree, so a summary keeps no syntax.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from patcher.analysis.bindings import Imported, imports
from patcher.analysis.expressions import Compare, Expression, expression
from patcher.analysis.steps import Steps, steps_of
from patcher.analysis.syntax import (
    caught,
    for_type_checkers,
    leaves,
    may_be_of_versions,
    may_name,
    module_name,
    parts,
    strings,
    written,
)
from patcher.analysis.uses import MOST_CONDITIONS, Condition, When, WhenRaised


@dataclass(slots=True, eq=False)
class Assigned:
    """One way in which a name gets its value. Not frozen, nor is `Block`: a tree has 40,000 of both."""

    value: Expression | Imported | None
    """None: something that is not followed, such as a loop's variable."""
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Ordering:
    """A comparison with `<`, `<=`, `>` or `>=` that may be of versions."""

    test: Compare
    text: str
    line: int


@dataclass(slots=True, eq=False)
class Block:
    """What a stretch of a body imports and mentions, all under the same conditions; each mention once."""

    conditions: tuple[Condition, ...]
    imports: tuple[Imported, ...]
    called: tuple[str, ...]
    """Dotted names as written, such as `self.run` or `load`; `.run` where it is a computed value's attribute."""
    named: tuple[str, ...]
    texts: tuple[tuple[str, ...], ...]
    """Strings that may name something; in a table, with the strings of their key."""
    orderings: tuple[Ordering, ...]


@dataclass(slots=True, eq=False)
class Body:
    """A function, method or class body, or the module's own (`qualname` "")."""

    qualname: str
    first: int
    last: int
    parameters: tuple[str, ...] = ()
    annotations: dict[str, str] = field(default_factory=dict)
    """Of what goes by the name of a configuration, as written."""
    defaults: dict[str, Expression] = field(default_factory=dict)
    decorators: tuple[str, ...] = ()
    owner: str = ""
    """The qualified name of the class that a method belongs to."""
    blocks: tuple[Block, ...] = ()
    assigned: dict[str, list[Assigned]] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    """Those under which the function is defined."""
    steps: Steps | None = None
    """What a small function does, for who asks what it returns."""


@dataclass(slots=True, eq=False)
class ClassSummary:
    """A class: its bases as written, methods by name, and what its body and its methods on `self` assign."""

    qualname: str
    bases: tuple[str, ...]
    registered: tuple[str, ...] | None = None
    """What decorators, other than those that make a dataclass, are called and given, if there are any."""
    methods: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, list[tuple[str, Assigned]]] = field(default_factory=dict)
    """With the function that sets it; "" for the class body."""


@dataclass(frozen=True, slots=True, eq=False)
class Raise:
    """A `raise` that runs while the module is imported; `exception` is its name as written, "" if it is computed.

    `test` is the innermost test that it stands under, as written: `not (version > "0.8")`."""

    line: int
    exception: str
    test: str
    conditions: tuple[Condition, ...]


@dataclass(eq=False)
class FileSummary:
    file: str
    module: str
    bodies: dict[str, Body]
    classes: dict[str, ClassSummary]
    stars: list[str]
    raises: list[Raise] = field(default_factory=list)

    @property
    def package(self) -> str:
        """The package that relative imports start from."""
        return self.module if self.file.endswith("/__init__.py") else self.module.rpartition(".")[0]


@dataclass(slots=True, eq=False)
class _BlockDraft:
    """What a step imports and mentions, as often as it does."""

    conditions: tuple[Condition, ...]
    imports: list[Imported] = field(default_factory=list)
    called: list[str] = field(default_factory=list)
    named: list[str] = field(default_factory=list)
    texts: list[tuple[str, ...]] = field(default_factory=list)
    orderings: list[Ordering] = field(default_factory=list)

    def block(self) -> Block:
        """The step, each mention once."""
        return Block(
            self.conditions,
            tuple(self.imports),
            tuple(dict.fromkeys(self.called)),
            tuple(dict.fromkeys(self.named)),
            tuple(dict.fromkeys(self.texts)),
            tuple(self.orderings),
        )


_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Conditions = tuple[Condition, ...]
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def summarize(tree: ast.Module, file: str) -> FileSummary:
    """The summary of a file with this syntax."""
    summary = FileSummary(file, module_name(file), {"": Body("", 1, 1 << 30)}, {}, [])
    walk = _Summarizer(summary)
    walk.visit(tree.body, summary.bodies[""], (), "")
    for body, blocks in walk.blocks.items():
        body.blocks = tuple(block.block() for block in blocks)
    return summary


class _Summarizer:
    def __init__(self, summary: FileSummary) -> None:
        self.summary = summary
        self.blocks: dict[Body, list[_BlockDraft]] = {}
        self._tests: dict[When, ast.expr] = {}
        """The syntax of each test."""
        self._caught = False
        """Whether a handler of the module's body may swallow what is raised here."""

    def visit(self, body: Sequence[ast.stmt], into: Body, conditions: _Conditions, owner: str) -> None:
        """`owner`: the class whose body this is, "" otherwise."""
        for node in body:
            kind = type(node)
            read_kind = _STATEMENTS.get(kind)
            if read_kind is not None:
                read_kind(self, node, into, conditions, owner)
            else:
                for part in parts(node):
                    if isinstance(part, ast.expr):
                        self._mention(part, into, conditions)
            if kind is ast.If or kind is ast.Assert:
                conditions = self._after(node, conditions)[:MOST_CONDITIONS]

    def _raise(self, node: ast.Raise, into: Body, conditions: _Conditions, owner: str) -> None:  # noqa: ARG002
        for part in (node.exc, node.cause):
            if part is not None:
                self._mention(part, into, conditions)
        # In a handler the lines of the `try` are what fails.
        if not into.qualname and not self._caught and all(isinstance(one, When) for one in conditions):
            raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            exception = written(raised) if raised is not None else ""
            self.summary.raises.append(Raise(node.lineno, exception, self._innermost(conditions), conditions))

    def _when(self, test: ast.expr, holds: bool) -> When:
        condition = When(expression(test), holds)
        self._tests[condition] = test
        return condition

    def _innermost(self, conditions: _Conditions) -> str:
        """The last test of these, as written."""
        for condition in reversed(conditions):
            if isinstance(condition, When):
                text = ast.unparse(self._tests[condition])
                return text if condition.holds else f"not ({text})"
        return ""

    def _after(self, node: ast.stmt, conditions: _Conditions) -> _Conditions:
        """The conditions of what follows a statement."""
        match node:
            case ast.If(test=test, body=inner, orelse=[]) if leaves(inner):
                return (*conditions, self._when(test, False))
            case ast.If(test=test, orelse=other) if other and leaves(other):
                return (*conditions, self._when(test, True))
            case ast.Assert(test=test):
                return (*conditions, self._when(test, True))
            case _:
                return conditions

    def _expression(self, node: ast.Expr, into: Body, conditions: _Conditions, owner: str) -> None:  # noqa: ARG002
        self._mention(node.value, into, conditions)

    def _if(self, node: ast.If, into: Body, conditions: _Conditions, owner: str) -> None:
        self._mention(node.test, into, conditions)
        # What stands under `if TYPE_CHECKING:` never runs.
        if for_type_checkers(node.test) is not True:
            self.visit(node.body, into, (*conditions, self._when(node.test, True)), owner)
        self.visit(node.orelse, into, (*conditions, self._when(node.test, False)), owner)

    def _for(self, node: ast.For | ast.AsyncFor, into: Body, conditions: _Conditions, owner: str) -> None:
        self._mention(node.iter, into, conditions)
        self._assign([node.target], None, into, conditions, owner)
        self.visit([*node.body, *node.orelse], into, conditions, owner)

    def _while(self, node: ast.While, into: Body, conditions: _Conditions, owner: str) -> None:
        self._mention(node.test, into, conditions)
        self.visit([*node.body, *node.orelse], into, conditions, owner)

    def _with(self, node: ast.With | ast.AsyncWith, into: Body, conditions: _Conditions, owner: str) -> None:
        for item in node.items:
            self._mention(item.context_expr, into, conditions)
            if item.optional_vars is not None:
                self._assign([item.optional_vars], None, into, conditions, owner)
        self.visit(node.body, into, conditions, owner)

    def _match(self, node: ast.Match, into: Body, conditions: _Conditions, owner: str) -> None:
        self._mention(node.subject, into, conditions)
        for case in node.cases:
            self.visit(case.body, into, conditions, owner)

    def _assigned(self, node: ast.Assign, into: Body, conditions: _Conditions, owner: str) -> None:
        self._mention(node.value, into, conditions)
        self._assign(node.targets, node.value, into, conditions, owner)

    def _annotated(self, node: ast.AnnAssign, into: Body, conditions: _Conditions, owner: str) -> None:
        if node.value is not None:
            self._mention(node.value, into, conditions)
            self._assign([node.target], node.value, into, conditions, owner)
        if isinstance(node.target, ast.Name) and _is_configuration(node.target.id):
            into.annotations.setdefault(node.target.id, ast.unparse(node.annotation))

    def _augmented(self, node: ast.AugAssign, into: Body, conditions: _Conditions, owner: str) -> None:
        self._mention(node.value, into, conditions)
        self._assign([node.target], None, into, conditions, owner)

    def _try(self, node: ast.Try, into: Body, conditions: _Conditions, owner: str) -> None:
        before, self._caught = self._caught, self._caught or bool(node.handlers)
        self.visit(node.body, into, conditions, owner)
        self._caught = before
        last = node.body[-1].end_lineno or node.body[-1].lineno
        for handler in node.handlers:
            condition = WhenRaised(node.body[0].lineno, last, caught(handler.type))
            self.visit(handler.body, into, (*conditions, condition), owner)
        self.visit([*node.orelse, *node.finalbody], into, conditions, owner)

    def _import(
        self,
        node: ast.Import | ast.ImportFrom,
        into: Body,
        conditions: _Conditions,
        owner: str,  # noqa: ARG002
    ) -> None:
        block = self._block(into, conditions)
        for one in imports(node, self.summary.package):
            block.imports.append(one)
            if one.name == "*":
                self.summary.stars.append(one.module)
            else:
                into.assigned.setdefault(one.local, []).append(Assigned(one, block.conditions))

    def _function(self, node: _Function, into: Body, conditions: _Conditions, owner: str) -> None:
        arguments = node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        for part in (*node.decorator_list, *arguments.defaults, *filter(None, arguments.kw_defaults)):
            self._mention(part, into, conditions)
        name = f"{owner}.{node.name}" if owner else f"{into.qualname}.{node.name}" if into.qualname else node.name
        plain = [*arguments.posonlyargs, *arguments.args]
        pairs = [
            *zip(plain[len(plain) - len(arguments.defaults) :], arguments.defaults, strict=True),
            *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
        ]
        body = Body(
            name,
            node.lineno,
            node.end_lineno or node.lineno,
            tuple(argument.arg for argument in every),
            {a.arg: ast.unparse(a.annotation) for a in every if a.annotation is not None and _is_configuration(a.arg)},
            {argument.arg: expression(default) for argument, default in pairs if default is not None},
            tuple(written(mark.func if isinstance(mark, ast.Call) else mark) for mark in node.decorator_list),
            owner,
            conditions=conditions,
            steps=steps_of(node, self.summary.package),
        )
        if name in self.summary.bodies and conditions:
            # Two definitions under different conditions: what both mention counts.
            self.blocks[body] = list(self.blocks.get(self.summary.bodies[name], ()))
        self.summary.bodies[name] = body
        if owner:
            self.summary.classes[owner].methods[node.name] = name
        self.visit(node.body, body, (), "")

    def _class(self, node: ast.ClassDef, into: Body, conditions: _Conditions, owner: str) -> None:  # noqa: ARG002
        for part in (*node.decorator_list, *node.bases, *(word.value for word in node.keywords)):
            self._mention(part, into, conditions)
        name = f"{into.qualname}.{node.name}" if into.qualname else node.name
        bases = tuple(written(base.value if isinstance(base, ast.Subscript) else base) for base in node.bases)
        # `@register("vllm", "async")` puts the class in a registry, where a name from the configuration finds it.
        marks = [mark for mark in node.decorator_list if "dataclass" not in ast.dump(mark)]
        given = (*(text for mark in marks for text in strings(mark)), *(written(m) for m in marks[:1]))
        self.summary.classes[name] = ClassSummary(name, bases, given if marks else None)
        self.visit(node.body, into, conditions, name)

    def _assign(
        self, targets: Iterable[ast.expr], value: ast.expr | None, into: Body, conditions: _Conditions, owner: str
    ) -> None:
        given = None if value is None else expression(value)
        for target in targets:
            match target:
                case ast.Name(id=name) if owner:
                    class_summary = self.summary.classes[owner]
                    class_summary.attributes.setdefault(name, []).append(("", Assigned(given, conditions)))
                case ast.Name(id=name):
                    into.assigned.setdefault(name, []).append(Assigned(given, conditions))
                # `self.engine = ...` in a method.
                case ast.Attribute(value=ast.Name(id="self"), attr=name) if into.owner:
                    attributes = self.summary.classes[into.owner].attributes
                    attributes.setdefault(name, []).append((into.qualname, Assigned(given, conditions)))
                case ast.Tuple(elts=parts) | ast.List(elts=parts):
                    values: Sequence[ast.expr | None] = [None] * len(parts)
                    # `a, b = x, y` gives each target its expression; `a, b = f()` gives none.
                    if isinstance(value, ast.Tuple) and len(value.elts) == len(parts):
                        values = value.elts
                    for part, one in zip(parts, values, strict=True):
                        self._assign([part], one, into, conditions, owner)
                case _:
                    pass

    def _block(self, into: Body, conditions: _Conditions) -> _BlockDraft:
        """The block under construction for what stands under these conditions."""
        blocks = self.blocks.setdefault(into, [])
        if not blocks or blocks[-1].conditions is not conditions:
            # Branches of an `if` alternate: `if a: x` / `else: y` / what follows. The few last blocks are enough to
            # find the one with these conditions again, and keep the search short in a body of many branches.
            for block in blocks[-4:]:
                if len(block.conditions) == len(conditions) and all(
                    a is b for a, b in zip(block.conditions, conditions, strict=True)
                ):
                    return block
            blocks.append(_BlockDraft(conditions))
        return blocks[-1]

    def _mention(self, node: ast.expr, into: Body, conditions: _Conditions) -> None:
        """Note what an expression calls and names."""
        block = self._block(into, conditions)
        waiting: list[ast.AST] = [node]
        while waiting:
            one = waiting.pop()
            if isinstance(one, ast.Name):
                block.named.append(one.id)
            elif isinstance(one, ast.Constant):
                if isinstance(one.value, str) and may_name(one.value):
                    block.texts.append((one.value,))
            elif isinstance(one, ast.Attribute):
                block.named.append(written(one))
                if not isinstance(one.value, ast.Name):
                    waiting.append(one.value)
            elif isinstance(one, ast.Call):
                block.called.append(written(one.func))
                waiting += one.args
                waiting += [word.value for word in one.keywords]
                if isinstance(one.func, ast.Attribute):
                    waiting.append(one.func.value)
                elif not isinstance(one.func, ast.Name):
                    waiting.append(one.func)
            elif isinstance(one, ast.Dict):
                waiting += _entries(one, block)
            # `new() if flag else old()`: each side is mentioned under its condition.
            elif isinstance(one, ast.IfExp):
                self._mention(one.body, into, (*conditions, self._when(one.test, True)))
                self._mention(one.orelse, into, (*conditions, self._when(one.test, False)))
                block = self._block(into, conditions)
                waiting.append(one.test)
            else:
                # Only `<` and its like go wrong with versions as text: "0.9" > "0.11".
                if isinstance(one, ast.Compare) and isinstance(one.ops[0], _ORDER) and may_be_of_versions(one):
                    compared = cast("Compare", expression(one))
                    block.orderings.append(Ordering(compared, ast.unparse(one), one.lineno))
                waiting += parts(one)


def _entries(node: ast.Dict, block: _BlockDraft) -> Iterator[ast.AST]:
    """Note the texts of a dict with the texts of their keys; yield what else is in it."""
    for key, value in zip(node.keys, node.values, strict=True):
        if isinstance(value, ast.Constant) and isinstance(value.value, str) and may_name(value.value):
            block.texts.append((value.value, *strings(key)))
        else:
            yield from (part for part in (key, value) if part is not None)


def _is_configuration(name: str) -> bool:
    return "config" in name.lower() or "cfg" in name.lower()


_STATEMENTS: Mapping[type[ast.stmt], Callable[[_Summarizer, Any, Body, _Conditions, str], None]] = {
    ast.Expr: _Summarizer._expression,
    ast.Assign: _Summarizer._assigned,
    ast.AnnAssign: _Summarizer._annotated,
    ast.AugAssign: _Summarizer._augmented,
    ast.If: _Summarizer._if,
    ast.For: _Summarizer._for,
    ast.AsyncFor: _Summarizer._for,
    ast.While: _Summarizer._while,
    ast.With: _Summarizer._with,
    ast.AsyncWith: _Summarizer._with,
    ast.Try: _Summarizer._try,
    ast.Match: _Summarizer._match,
    ast.Import: _Summarizer._import,
    ast.ImportFrom: _Summarizer._import,
    ast.FunctionDef: _Summarizer._function,
    ast.AsyncFunctionDef: _Summarizer._function,
    ast.ClassDef: _Summarizer._class,
    ast.Raise: _Summarizer._raise,
}
