"""A light summary of one file: what each of its bodies imports, mentions and assigns, and under which conditions.

Reachability and the tests of versions go through a whole tree, so a summary keeps no syntax.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

from patcher.analysis.bindings import Binding, Imported, assigned, imports
from patcher.analysis.expressions import Compare, Expression, expression, maybe
from patcher.analysis.statement_walk import StatementContext, statements_of
from patcher.analysis.steps import Steps, steps_of_small
from patcher.analysis.syntax import FunctionNode, module_name, parts, strings, text_in, with_defaults, written
from patcher.analysis.uses import Condition, When
from patcher.packages.releases.kept import Packed


@dataclass(frozen=True, slots=True, eq=False)
class Ordering:
    """A comparison with `<`, `<=`, `>` or `>=` that may be of versions."""

    test: Compare
    text: str
    line: int
    conditions: tuple[Condition, ...]


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


@dataclass(slots=True, eq=False)
class BodyContent:
    """What stands in a body: most of what a summary holds, and asked of few bodies more than once."""

    annotations: dict[str, str] = field(default_factory=dict)
    """Of what goes by the name of a configuration, as written."""
    defaults: dict[str, Expression] = field(default_factory=dict)
    steps: Steps | None = None
    """What a small function does, for who asks what it returns."""
    blocks: tuple[Block, ...] = ()
    assigned: dict[str, list[Binding]] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Body:
    """A function, method or class body, or the module's own (`qualname` "")."""

    qualname: str
    first: int
    last: int
    packed: Packed[BodyContent]
    parameters: tuple[str, ...] = ()
    decorators: tuple[str, ...] = ()
    owner: str = ""
    """The qualified name of the class that a method belongs to."""
    conditions: tuple[Condition, ...] = ()
    """Those under which the function is defined."""
    orderings: tuple[Ordering, ...] = ()

    @property
    def content(self) -> BodyContent:
        return self.packed.value


@dataclass(slots=True, eq=False)
class ClassSummary:
    """A class: its bases as written, methods by name, and what its body and its methods on `self` assign."""

    qualname: str
    bases: tuple[str, ...]
    registered: tuple[str, ...] | None = None
    """What decorators, other than those that make a dataclass, are called and given, if there are any."""
    methods: dict[str, str] = field(default_factory=dict)
    packed: Packed[dict[str, list[tuple[str, Binding]]]] = field(default_factory=lambda: Packed({}))

    @property
    def attributes(self) -> dict[str, list[tuple[str, Binding]]]:
        """With the function that sets it; "" for the class body."""
        return self.packed.value


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
    problem: str = ""
    """Why the file is no Python; then everything else is empty."""

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
        )


_METHOD_NAMED_BY = ("method", "method_name")
"""Parameters that take the name of the method to call."""

_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def summarize(tree: ast.Module, file: str) -> FileSummary:
    """The summary of a file with this syntax."""
    summary = FileSummary(file, module_name(file), {"": Body("", 1, 1 << 30, Packed(BodyContent()))}, {}, [])
    walk = _Summarizer(summary)
    walk.visit(tree.body, summary.bodies[""], StatementContext(), "")
    for body, blocks in walk.blocks.items():
        body.content.blocks = tuple(block.block() for block in blocks)
        body.orderings = tuple(one for block in blocks for one in block.orderings)
    return summary


class _Summarizer:
    def __init__(self, summary: FileSummary) -> None:
        self.summary = summary
        self.blocks: dict[Body, list[_BlockDraft]] = {}

    def visit(self, body: Sequence[ast.stmt], into: Body, around: StatementContext, owner: str) -> None:
        """`owner`: the class whose body this is, "" otherwise."""
        for node, at in statements_of(body, around):
            # What stands under `if TYPE_CHECKING:` never runs.
            if at.for_checkers:
                continue
            match node:
                case ast.Assign(targets=targets, value=value):
                    self._mention(value, into, at.conditions)
                    for target in targets:
                        self._assign(target, value, into, at, owner)
                case ast.AnnAssign(target=target, value=value, annotation=annotation):
                    if value is not None:
                        self._mention(value, into, at.conditions)
                        self._assign(target, value, into, at, owner)
                    if isinstance(target, ast.Name) and _is_configuration(target.id):
                        into.content.annotations.setdefault(target.id, ast.unparse(annotation))
                case ast.AugAssign(target=target, value=value):
                    self._mention(value, into, at.conditions)
                    self._assign(target, None, into, at, owner)
                case ast.For(target=target, iter=value) | ast.AsyncFor(target=target, iter=value):
                    self._mention(value, into, at.conditions)
                    self._assign(target, None, into, at, owner)
                case ast.With(items=items) | ast.AsyncWith(items=items):
                    for item in items:
                        self._mention(item.context_expr, into, at.conditions)
                        self._assign(item.optional_vars, None, into, at, owner)
                case ast.Import() | ast.ImportFrom():
                    block = self._block(into, at.conditions)
                    for one in imports(node, self.summary.package):
                        block.imports.append(one)
                        if one.name == "*":
                            self.summary.stars.append(one.module)
                        else:
                            found = Binding(one, block.conditions, at.certain)
                            into.content.assigned.setdefault(one.local, []).append(found)
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    self._function(node, into, at.conditions, owner)
                case ast.ClassDef():
                    self._class(node, into, at)
                case _:
                    for part in parts(node):
                        if isinstance(part, ast.expr):
                            self._mention(part, into, at.conditions)
                    if isinstance(node, ast.Raise) and not into.qualname:
                        self._raise(node, at)

    def _raise(self, node: ast.Raise, at: StatementContext) -> None:
        # In a handler the lines of the `try` are what fails.
        if not at.caught and not at.raised:
            raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            exception = written(raised) if raised is not None else ""
            test = "" if at.test is None else ast.unparse(at.test)
            if at.conditions and not cast("When", at.conditions[-1]).holds:
                test = f"not ({test})"
            self.summary.raises.append(Raise(node.lineno, exception, test, at.conditions))

    def _function(self, node: FunctionNode, into: Body, conditions: tuple[Condition, ...], owner: str) -> None:
        every = [*with_defaults(node.args)]
        for part in (*node.decorator_list, *(default for _, default in every if default is not None)):
            self._mention(part, into, conditions)
        name = f"{owner}.{node.name}" if owner else f"{into.qualname}.{node.name}" if into.qualname else node.name
        annotations = {
            a.arg: ast.unparse(a.annotation) for a, _ in every if a.annotation is not None and _is_configuration(a.arg)
        }
        defaults = {argument.arg: expression(default) for argument, default in every if default is not None}
        body = Body(
            name,
            node.lineno,
            node.end_lineno or node.lineno,
            Packed(BodyContent(annotations, defaults, steps_of_small(node, self.summary.package))),
            tuple(argument.arg for argument, _ in every),
            tuple(written(mark.func if isinstance(mark, ast.Call) else mark) for mark in node.decorator_list),
            owner,
            conditions,
        )
        if name in self.summary.bodies and conditions:
            # Two definitions under different conditions: what both mention counts.
            self.blocks[body] = list(self.blocks.get(self.summary.bodies[name], ()))
        self.summary.bodies[name] = body
        if owner:
            self.summary.classes[owner].methods[node.name] = name
        self.visit(node.body, body, StatementContext(), "")

    def _class(self, node: ast.ClassDef, into: Body, at: StatementContext) -> None:
        for part in (*node.decorator_list, *node.bases, *(word.value for word in node.keywords)):
            self._mention(part, into, at.conditions)
        name = f"{into.qualname}.{node.name}" if into.qualname else node.name
        bases = tuple(written(base.value if isinstance(base, ast.Subscript) else base) for base in node.bases)
        # `@register("vllm", "async")` puts the class in a registry, where a name from the configuration finds it.
        marks = [mark for mark in node.decorator_list if "dataclass" not in ast.dump(mark)]
        given = (*(text for mark in marks for text in strings(mark)), *(written(m) for m in marks[:1]))
        self.summary.classes[name] = ClassSummary(name, bases, given if marks else None)
        self.visit(node.body, into, at, name)

    def _assign(
        self, target: ast.expr | None, value: ast.expr | None, into: Body, at: StatementContext, owner: str
    ) -> None:
        for one, given in assigned(target, value):
            found = Binding(maybe(given), at.conditions, at.certain)
            match one:
                case ast.Name(id=name) if owner:
                    self.summary.classes[owner].attributes.setdefault(name, []).append(("", found))
                case ast.Name(id=name):
                    into.content.assigned.setdefault(name, []).append(found)
                # `self.engine = ...` in a method.
                case ast.Attribute(value=ast.Name(id="self"), attr=name) if into.owner:
                    attributes = self.summary.classes[into.owner].attributes
                    attributes.setdefault(name, []).append((into.qualname, found))

    def _block(self, into: Body, conditions: tuple[Condition, ...]) -> _BlockDraft:
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

    def _mention(self, node: ast.expr, into: Body, conditions: tuple[Condition, ...]) -> None:
        """Note what an expression calls and names."""
        block = self._block(into, conditions)
        waiting: list[ast.AST] = [node]
        while waiting:
            one = waiting.pop()
            if isinstance(one, ast.Name):
                block.named.append(one.id)
            elif isinstance(one, ast.Constant):
                if isinstance(one.value, str) and _may_name(one.value):
                    block.texts.append((one.value,))
            elif isinstance(one, ast.Attribute):
                block.named.append(written(one))
                if not isinstance(one.value, ast.Name):
                    waiting.append(one.value)
            elif isinstance(one, ast.Call):
                block.called.append(written(one.func))
                waiting += one.args
                waiting += [word.value for word in one.keywords]
                # `group.map_async(method_name="init_graph")` calls that method of something.
                methods = (text_in(word.value) for word in one.keywords if word.arg in _METHOD_NAMED_BY)
                block.called += [f".{method}" for method in methods if method and method.isidentifier()]
                if isinstance(one.func, ast.Attribute):
                    waiting.append(one.func.value)
                elif not isinstance(one.func, ast.Name):
                    waiting.append(one.func)
            elif isinstance(one, ast.Dict):
                waiting += _entries(one, block)
            # `new() if flag else old()`: each side is mentioned under its condition.
            elif isinstance(one, ast.IfExp):
                test = expression(one.test)
                self._mention(one.body, into, (*conditions, When(test, True)))
                self._mention(one.orelse, into, (*conditions, When(test, False)))
                block = self._block(into, conditions)
                waiting.append(one.test)
            else:
                # Only `<` and its like go wrong with versions as text: "0.9" > "0.11".
                if isinstance(one, ast.Compare) and isinstance(one.ops[0], _ORDER) and _may_be_of_versions(one):
                    compared = cast("Compare", expression(one))
                    block.orderings.append(Ordering(compared, ast.unparse(one), one.lineno, conditions))
                waiting += parts(one)


def _entries(node: ast.Dict, block: _BlockDraft) -> Iterator[ast.AST]:
    """Note the texts of a dict with the texts of their keys; yield what else is in it."""
    for key, value in zip(node.keys, node.values, strict=True):
        if (text := text_in(value)) is not None and _may_name(text):
            block.texts.append((text, *strings(key)))
        else:
            yield from (part for part in (key, value) if part is not None)


def _is_configuration(name: str) -> bool:
    return "config" in name.lower() or "cfg" in name.lower()


def _may_name(text: str) -> bool:
    """Whether a string may be the name of a module, class or method: `verl.workers:Actor`, `run_engine`.

    The bounds are guessed: names are longer than an abbreviation of two letters and shorter than a sentence.
    """
    return 2 < len(text) < 160 and text.replace(".", "").replace(":", "").replace("_", "").isalnum()


def _may_be_of_versions(node: ast.Compare) -> bool:
    """Whether a side is named after versions or like a constant, or a text."""
    for side in (node.left, *node.comparators):
        for part in ast.walk(side):
            match part:
                case ast.Name(id=name) | ast.Attribute(attr=name) if "ver" in name.lower() or name.isupper():
                    return True
                case ast.Constant(value=str()):
                    return True
    return False
