"""Match a pattern's tree with a source's tree: structure alone counts, contexts and spelling do not."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from patcher.rewrite.code import position
from patcher.rewrite.pattern import Meta, Pattern, meta, run_of

if TYPE_CHECKING:
    from patcher.rewrite.code import Code, Scope

Bound: TypeAlias = tuple[ast.AST, ...] | str
"""What a metavariable stands for: nodes that follow one another, or a bare name."""
Bindings: TypeAlias = Mapping[str, Bound]

_IGNORED = frozenset({"ctx", "type_comment", "kind", "type_ignores"})


@dataclass(frozen=True, slots=True)
class Match:
    """One place that a pattern matches: an expression, a keyword argument, or statements that follow one another."""

    nodes: tuple[ast.AST, ...]
    bindings: Bindings


def find(code: Code, scopes: Sequence[Scope], pattern: Pattern) -> list[Match]:
    """Every place in `scopes` that the pattern matches, in order."""
    if not all(name in code.text for name in pattern.names):
        return []
    expression, argument = pattern.expression, pattern.argument
    if expression is not None:
        kind = None if isinstance(expression, ast.Name) and meta(expression.id) else type(expression)
        nodes = (
            node for node in code.nodes(scopes) if (isinstance(node, ast.expr) if kind is None else type(node) is kind)
        )
        return [Match((node,), env) for node in nodes if (env := match(expression, node, {})) is not None]
    found = [*_statements(code, scopes, pattern.body)]
    if argument is not None:
        for node in code.nodes(scopes):
            env = match(argument, node, {}) if isinstance(node, ast.keyword) else None
            if env is not None:
                found.append(Match((node,), env))
        found.sort(key=lambda match: code.start(match.nodes[0]))
    return found


def blocks(code: Code, scopes: Sequence[Scope]) -> Iterator[list[ast.stmt]]:
    """Every list of statements in `scopes`, in order."""
    for node in [*scopes, *(node for node in code.nodes(scopes) if not isinstance(node, ast.expr))]:
        for name in ("body", "orelse", "finalbody"):
            value = getattr(node, name, None)
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                yield value


def _statements(code: Code, scopes: Sequence[Scope], wanted: Sequence[ast.stmt]) -> Iterator[Match]:
    if not wanted:
        return
    for block in blocks(code, scopes):
        index = 0
        while index < len(block):
            result = _prefix(wanted, block[index:], {})
            if result is None or result[0] == 0:
                index += 1
            else:
                yield Match(tuple(block[index : index + result[0]]), result[1])
                index += result[0]


def _prefix(wanted: Sequence[ast.AST], given: Sequence[ast.AST], env: Bindings) -> tuple[int, Bindings] | None:
    """How many of `given` the whole of `wanted` matches from the first on: as few as possible."""
    if not wanted:
        return 0, env
    run = run_of(wanted[0])
    if run:
        for length in range(len(given) + 1):
            bound = _bind(run, tuple(given[:length]), env)
            rest = None if bound is None else _prefix(wanted[1:], given[length:], bound)
            if rest is not None:
                return rest[0] + length, rest[1]
        return None
    if not given:
        return None
    first = match(wanted[0], given[0], env)
    rest = None if first is None else _prefix(wanted[1:], given[1:], first)
    return None if rest is None else (rest[0] + 1, rest[1])


def _all(wanted: Sequence[ast.AST], given: Sequence[ast.AST], env: Bindings) -> Bindings | None:
    """Match lists to their ends."""
    if not wanted:
        return None if given else env
    run = run_of(wanted[0])
    if run:
        for length in range(len(given) + 1):
            bound = _bind(run, tuple(given[:length]), env)
            rest = None if bound is None else _all(wanted[1:], given[length:], bound)
            if rest is not None:
                return rest
        return None
    if not given:
        return None
    first = match(wanted[0], given[0], env)
    return None if first is None else _all(wanted[1:], given[1:], first)


def _bind(variable: Meta, value: Bound, env: Bindings) -> Bindings | None:
    if variable.name == "_":
        return env
    if variable.name in env:
        return env if same(env[variable.name], value) else None
    return {**env, variable.name: value}


def same(one: Bound, two: Bound) -> bool:
    """Whether two bindings are equal syntax."""
    if isinstance(one, str) or isinstance(two, str):
        return _spelled(one) == _spelled(two)
    return len(one) == len(two) and all(match(a, b, {}) is not None for a, b in zip(one, two, strict=True))


def _spelled(bound: Bound) -> object:
    match bound:
        case str():
            return bound
        case (ast.Name(id=name),):
            return name
    return bound


def match(wanted: object, given: object, env: Bindings) -> Bindings | None:
    """Match one node, or a field's value; the bindings so far and new ones, or None."""
    if isinstance(wanted, ast.Name) and (variable := meta(wanted.id)):
        return _bind(variable, (given,), env) if isinstance(given, ast.expr) else None
    if isinstance(wanted, ast.Expr) and isinstance(wanted.value, ast.Name) and (variable := meta(wanted.value.id)):
        return _bind(variable, (given,), env) if isinstance(given, ast.stmt) else None
    if isinstance(wanted, str):
        named = meta(wanted)
        return _bind(named, given, env) if named and isinstance(given, str) else (env if wanted == given else None)
    if type(wanted) is not type(given):
        return None
    if not isinstance(wanted, ast.AST) or not isinstance(given, ast.AST):
        return env if wanted == given else None
    match wanted, given:
        case ast.Call(), ast.Call():
            return _call(wanted, given, env)
        case ast.arguments(), ast.arguments():
            return _parameters(wanted, given, env)
        case ast.Dict(), ast.Dict():
            return _dict(wanted, given, env)
    return _fields(wanted, given, env)


def _fields(wanted: ast.AST, given: ast.AST, env: Bindings | None) -> Bindings | None:
    lenient = isinstance(wanted, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    for name in wanted._fields:
        if env is None:
            return None
        if name in _IGNORED:
            continue
        one, two = getattr(wanted, name, None), getattr(given, name, None)
        if lenient and not one and name in ("decorator_list", "returns", "type_params"):
            continue
        if isinstance(one, list):
            env = (
                _all(one, two, env)
                if isinstance(two, list) and _trees(one) and _trees(two)
                else (env if one == two else None)
            )
        else:
            env = match(one, two, env)
    return env


def _trees(values: Iterable[object]) -> bool:
    return all(isinstance(value, ast.AST) for value in values)


def _call(wanted: ast.Call, given: ast.Call, start: Bindings) -> Bindings | None:
    """Positional arguments in order, keywords by name in any order; what is over belongs to the last `$$$`."""
    env = match(wanted.func, given.func, start)
    if env is None:
        return None
    left = list(given.keywords)
    for keyword in sorted(wanted.keywords, key=lambda keyword: meta(keyword.arg) is not None):
        if run_of(keyword):
            continue
        for candidate in left:
            bound = match(keyword, candidate, env)
            if bound is not None:
                env = bound
                left.remove(candidate)
                break
        else:
            return None
    items: list[ast.AST] = [*wanted.args, *(keyword for keyword in wanted.keywords if run_of(keyword))]
    runs = [index for index, item in enumerate(items) if run_of(item)]
    if not runs:
        return None if left else _all(items, given.args, env)
    last = runs[-1]
    run = run_of(items[last]) or Meta("_", True)
    tail = len(items) - last - 1
    if len(given.args) < tail:
        return None
    split = len(given.args) - tail
    head = _prefix(items[:last], given.args[:split], env)
    if head is None:
        return None
    used, bound = head
    rest = sorted([*given.args[used:split], *left], key=position)
    whole = _bind(run, tuple(rest), bound)
    return None if whole is None else _all(items[last + 1 :], given.args[split:], whole)


def _dict(wanted: ast.Dict, given: ast.Dict, start: Bindings) -> Bindings | None:
    """Pairs in order, or, beside a `**$$$REST`, by key."""
    pairs = list(zip(wanted.keys, wanted.values, strict=True))
    run = next((run_of(value) for key, value in pairs if key is None and run_of(value)), None)
    if run is None:
        return (
            _fields(wanted, given, start)
            if None not in given.keys and None not in wanted.keys
            else _pairs(wanted, given, start)
        )
    env: Bindings | None = start
    left = list(zip(given.keys, given.values, strict=True))
    for key, value in pairs:
        if key is None and run_of(value):
            continue
        for pair in left:
            bound = match(key, pair[0], env or {})
            bound = None if bound is None else match(value, pair[1], bound)
            if bound is not None:
                env = bound
                left.remove(pair)
                break
        else:
            return None
    return _bind(run, tuple(node for pair in left for node in pair if node is not None), env or {})


def _pairs(wanted: ast.Dict, given: ast.Dict, env: Bindings | None) -> Bindings | None:
    if len(wanted.keys) != len(given.keys):
        return None
    for one, two in zip([*wanted.keys, *wanted.values], [*given.keys, *given.values], strict=True):
        env = None if env is None else match(one, two, env)
    return env


def _parameters(wanted: ast.arguments, given: ast.arguments, env: Bindings) -> Bindings | None:
    """Parameters; a `$$$X` among them takes all that follow."""
    run = wanted.vararg and run_of(wanted.vararg)
    if not run:
        return _fields(wanted, given, env)
    mine, theirs = [*wanted.posonlyargs, *wanted.args], [*given.posonlyargs, *given.args]
    if len(mine) > len(theirs):
        return None
    head = _all(mine, theirs[: len(mine)], env)
    rest = [*theirs[len(mine) :], *([given.vararg] if given.vararg else []), *given.kwonlyargs]
    rest += [given.kwarg] if given.kwarg else []
    return None if head is None else _bind(run, tuple(rest), head)
