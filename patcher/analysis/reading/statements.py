"""Statements: imports, assignments, and those after which the code can go several ways.

Here it is decided under which conditions a use runs (`if`, loops, `match`, a `return` further up) and which exceptions
are caught around it (`try`, `contextlib.suppress`).
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from patcher.analysis.bindings import imports
from patcher.analysis.expressions import expression
from patcher.analysis.reading.definitions import annotated, narrowed
from patcher.analysis.reading.file_traversal import Executors, Walk, assign, put
from patcher.analysis.reading.local_values import (
    OPAQUE,
    Alternative,
    ContainerValue,
    Names,
    element_of,
    is_followed,
    merged,
    texts,
    union_of,
)
from patcher.analysis.syntax import caught, for_type_checkers, leaves, text_in
from patcher.analysis.uses import Condition, ImportOf, Member, Named, Result, Value, When, WhenRaised


def _import(walk: Walk, node: ast.Import | ast.ImportFrom) -> None:
    for one in imports(node, walk.package):
        walk.use(one.line, ImportOf(one.module, one.name))
        if one.name == "*":
            walk.stars.append(one.module)
        else:
            on_trial = one.name is not None and bool(walk.conditions or walk.caught)
            walk.bind(one.local, Named(one.dotted, on_trial))


def import_named(walk: Walk, node: ast.Call, values: dict[int, Value]) -> Value | None:
    """What `import_module("…")` gives; None if the name is not written there."""
    modules = texts(values[id(node.args[0])]) if node.args else ()
    for module, conditions in modules:
        with walk.under(*conditions):
            walk.use(node.lineno, ImportOf(module, None))
    return union_of((Named(module), conditions) for module, conditions in modules) if modules else None


def _assign(walk: Walk, node: ast.Assign) -> None:
    value = walk.value(node.value)
    for target in node.targets:
        assign(walk, target, value, node.value)


def _annotated(walk: Walk, node: ast.AnnAssign) -> None:
    if walk.annotations_run and walk.scope.kind in ("module", "class"):
        walk.value(node.annotation)
    declared = annotated(walk, node.annotation)
    # A bare annotation declares: `engine: AsyncLLM`. In a class body that is a field, elsewhere it counts only if its
    # type is followed.
    if node.value is None:
        if walk.scope.kind == "class" or is_followed(declared) or isinstance(declared, ContainerValue):
            assign(walk, node.target, declared)
        return
    assign(walk, node.target, _more_specific(declared, walk.value(node.value)), node.value)


def _more_specific(declared: Value, value: Value) -> Value:
    if isinstance(value, ContainerValue):
        empty = isinstance(declared, ContainerValue) and not value.items and is_followed(declared.element())
        return declared if empty else value
    return declared if is_followed(declared) or isinstance(declared, ContainerValue) else value


def _augmented(walk: Walk, node: ast.AugAssign) -> None:
    before = walk.value(node.target)
    value = walk.value(node.value)
    # `self.items += [...]` is not followed: the list may be shared with other code.
    if not isinstance(node.target, ast.Name):
        return
    if isinstance(before, ContainerValue):
        more = value if isinstance(value, ContainerValue) else ContainerValue(open=True)
        put(walk, node.target, before.adding(*more.items, open_too=more.open))
    else:
        walk.bind(node.target.id, OPAQUE)


def _expression(walk: Walk, node: ast.Expr) -> None:
    walk.value(node.value)


def _return(walk: Walk, node: ast.Return) -> None:
    if node.value is not None:
        walk.scope.results.append(walk.value(node.value))


def _raise(walk: Walk, node: ast.Raise) -> None:
    for part in (node.exc, node.cause):
        if part is not None:
            walk.value(part)


def _assert(walk: Walk, node: ast.Assert) -> None:
    walk.value(node.test)
    if node.msg is not None:
        with walk.under(When(expression(node.test), False)):
            walk.value(node.msg)
    walk.scope.names = narrowed(walk, node.test, True, walk.scope.names)


def _delete(walk: Walk, node: ast.Delete) -> None:
    for target in node.targets:
        match target:
            case ast.Name(id=name):
                walk.scope.names[name] = OPAQUE
            case ast.Subscript(value=of, slice=key):
                container = walk.value(of)
                walk.value(key)
                if isinstance(container, ContainerValue):
                    put(walk, of, container.without(text_in(key)))
            case ast.Attribute(value=of):
                walk.value(of)


def _global(walk: Walk, node: ast.Global) -> None:
    for name in node.names:
        walk.scope.shared.add(name)
        walk.scope.names[name] = Named(walk.dotted(name))


def _nothing(walk: Walk, node: ast.stmt) -> None:
    pass


def raises(block: Sequence[ast.stmt]) -> bool:
    """Whether the block ends in an exception on every path."""
    for statement in block:
        match statement:
            case ast.Raise():
                return True
            case ast.Return() | ast.Continue() | ast.Break():
                return False
            case ast.If(body=body, orelse=orelse):
                if raises(body) and raises(orelse):
                    return True
                if _may_leave(body) or _may_leave(orelse):
                    return False
            # A context manager could swallow the exception, but one that does so around `raise` is rare; `suppress` is
            # read as a `try`.
            case ast.With(body=body) if raises(body):
                return True
    return False


def _may_leave(block: Sequence[ast.stmt]) -> bool:
    return leaves(block) and not raises(block)


def swallowed(handlers: Sequence[ast.ExceptHandler]) -> tuple[str, ...]:
    """The exceptions that handlers take without raising again."""
    return tuple(name for handler in handlers if not raises(handler.body) for name in caught(handler.type))


def _if(walk: Walk, node: ast.If) -> None:
    # Code under `if TYPE_CHECKING:` never runs. It is visited silently: its names are needed for annotations, but what
    # it imports is no use of a package.
    checking = for_type_checkers(node.test)
    if checking is not None:
        _visit_type_checking(walk, *((node.body, node.orelse) if checking else (node.orelse, node.body)))
        return
    walk.value(node.test)
    before = walk.scope.names
    alternatives: list[Alternative] = []
    for block, holds in ((node.body, True), (node.orelse, False)):
        condition = When(expression(node.test), holds)
        names = _branch(walk, block, node.test, condition, before)
        if not leaves(block):
            alternatives.append(((condition,), names))
    walk.scope.names = _merge_branches(walk, alternatives) if alternatives else before
    # One branch leaves, so what follows runs only where the other was taken:
    #     if version < Version("0.8"):
    #         raise RuntimeError  # `assumed`: the fork itself refuses these versions
    if len(alternatives) == 1:
        left = leaves(node.body)
        walk.assume(When(expression(node.test), not left, assumed=raises(node.body if left else node.orelse)))
        walk.scope.names = narrowed(walk, node.test, not left, walk.scope.names)


def _branch(walk: Walk, block: Sequence[ast.stmt], test: ast.expr, condition: When, before: Names) -> Names:
    start = narrowed(walk, test, condition.holds, before)
    walk.scope.names = dict(start)
    with walk.under(condition):
        walk.run(block)
    names = walk.scope.names
    # Narrowing ends with the branch. After `if isinstance(x, A): ...` the name `x` is again what it was before, unless
    # the branch assigned to it.
    if start is not before:
        for name, value in start.items():
            if before.get(name) is not value and names.get(name) is value:
                if name in before:
                    names[name] = before[name]
                else:
                    del names[name]
    return names


def _merge_branches(walk: Walk, alternatives: list[Alternative]) -> Names:
    return merged(alternatives, walk.module if walk.scope.kind == "module" else None)


def _visit_type_checking(walk: Walk, never: Sequence[ast.stmt], always: Sequence[ast.stmt]) -> None:
    before, walk.silent = walk.silent, True
    with walk.under():
        walk.run(never)
    walk.silent = before
    walk.run(always)


def _loop(walk: Walk, node: ast.For | ast.AsyncFor | ast.While) -> None:
    scope = walk.scope
    conditions: tuple[Condition, ...] = ()
    if isinstance(node, ast.While):
        walk.value(node.test)
        conditions = (When(expression(node.test), True),)
        before = scope.names
        scope.names = dict(before)
    else:
        element = element_of(walk.value(node.iter))
        before = scope.names
        scope.names = dict(before)
        assign(walk, node.target, element)
    exits, scope.exits = scope.exits, []
    walk.unsure += 1
    with walk.under(*conditions):
        walk.run(node.body)
    walk.unsure -= 1
    # `while True:` is left by `break` alone; any other loop may run zero times, so the names from before it count too.
    endless = isinstance(node, ast.While) and isinstance(node.test, ast.Constant) and bool(node.test.value)
    alternatives = [] if endless and scope.exits else [((), before)]
    if not leaves(node.body):
        alternatives.append(((), scope.names))
    scope.names = dict(_merge_branches(walk, [*alternatives, *scope.exits]))
    scope.exits = exits
    with walk.under():
        walk.run(node.orelse)


def _break_or_continue(walk: Walk, node: ast.Break | ast.Continue) -> None:  # noqa: ARG001
    walk.scope.exits.append(((), walk.scope.names))


def _try(walk: Walk, node: ast.Try) -> None:
    scope = walk.scope
    first, last = node.body[0].lineno, node.body[-1].end_lineno or node.body[-1].lineno
    before = scope.names
    scope.names = dict(before)
    walk.unsure += bool(node.handlers)
    with walk.under(caught=swallowed(node.handlers)):
        walk.run(node.body)
    # A handler can run after any line of the body: a name is either still unbound or bound already.
    broken_off = _merge_branches(walk, [((), before), ((), scope.names)])
    with walk.under():
        walk.run(node.orelse)
    walk.unsure -= bool(node.handlers)
    alternatives: list[Alternative] = [] if leaves(node.body) or leaves(node.orelse) else [((), scope.names)]
    through = not alternatives
    for handler in node.handlers:
        condition = WhenRaised(first, last, caught(handler.type))
        scope.names = dict(broken_off)
        with walk.under(condition):
            if handler.type is not None:
                walk.value(handler.type)
            if handler.name:
                scope.names[handler.name] = OPAQUE
            walk.run(handler.body)
        if not leaves(handler.body):
            alternatives.append(((condition,), scope.names))
    scope.names = dict(_merge_branches(walk, alternatives)) if alternatives else broken_off
    walk.run(node.finalbody)
    # The body always leaves, as in
    #     try:
    #         return new_api()
    #     except ImportError:
    #         pass
    # What follows runs only where a handler swallowed the exception.
    if through and alternatives:
        taken = [
            condition for conditions, _ in alternatives for condition in conditions if isinstance(condition, WhenRaised)
        ]
        walk.assume(WhenRaised(first, last, tuple(name for condition in taken for name in condition.catches)))


def _with(walk: Walk, node: ast.With | ast.AsyncWith) -> None:
    suppressed: tuple[str, ...] = ()
    entering = "__aenter__" if isinstance(node, ast.AsyncWith) else "__enter__"
    for item in node.items:
        manager = item.context_expr
        value = walk.value(manager)
        # `with contextlib.suppress(ImportError):` swallows like a `try` with an empty handler.
        if isinstance(manager, ast.Call) and walk.silent_value(manager.func) == Named("contextlib.suppress"):
            suppressed += tuple(ast.unparse(argument) for argument in manager.args)
        if item.optional_vars is not None:
            assign(walk, item.optional_vars, Result(Member(value, entering)) if is_followed(value) else OPAQUE)
    walk.unsure += bool(suppressed)
    with walk.under(caught=suppressed):
        walk.run(node.body)
    walk.unsure -= bool(suppressed)


def _match(walk: Walk, node: ast.Match) -> None:
    walk.value(node.subject)
    before = walk.scope.names
    alternatives: list[Alternative] = [((), before)]
    for case in node.cases:
        walk.scope.names = dict(before)
        # A pattern without an equal test (`case Point(x=0)`) becomes a call `match(subject)`, which no evaluator can
        # decide: the branch counts as one that may or may not run.
        test = _case_test(node.subject, case.pattern)
        with walk.under(*([When(expression(test), True)] if test is not None else [])):
            for inner in ast.walk(case.pattern):
                if isinstance(inner, (ast.MatchAs, ast.MatchStar)) and inner.name:
                    walk.bind(inner.name, OPAQUE)
                elif isinstance(inner, ast.MatchClass):
                    walk.value(inner.cls)
                elif isinstance(inner, ast.MatchValue):
                    walk.value(inner.value)
            if case.guard is not None:
                walk.value(case.guard)
                walk.assume(When(expression(case.guard), True))
            walk.run(case.body)
        if not leaves(case.body):
            alternatives.append(((), walk.scope.names))
    walk.scope.names = _merge_branches(walk, alternatives)


def _case_test(subject: ast.expr, pattern: ast.pattern) -> ast.expr | None:
    """A test that says the same as a pattern: `subject == value`. One for any other pattern that none can evaluate."""
    match pattern:
        case ast.MatchAs(pattern=None):
            return None
        case ast.MatchValue(value=value):
            return ast.copy_location(ast.Compare(subject, [ast.Eq()], [value]), subject)
        case _:
            return ast.copy_location(ast.Call(ast.Name("match", ast.Load()), [subject], []), subject)


STATEMENTS: Executors = {
    ast.Import: _import,
    ast.ImportFrom: _import,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.Expr: _expression,
    ast.Return: _return,
    ast.Raise: _raise,
    ast.Assert: _assert,
    ast.Delete: _delete,
    ast.Global: _global,
    ast.Nonlocal: _nothing,
    ast.Pass: _nothing,
    ast.If: _if,
    ast.For: _loop,
    ast.AsyncFor: _loop,
    ast.While: _loop,
    ast.Break: _break_or_continue,
    ast.Continue: _break_or_continue,
    ast.Try: _try,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Match: _match,
    # Python 3.11 and 3.12 brought these.
    **{getattr(ast, name): run for name, run in (("TryStar", _try), ("TypeAlias", _nothing)) if hasattr(ast, name)},
}
