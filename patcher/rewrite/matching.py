"""Match a pattern's syntax tree with a source's: structure alone counts, white space, quotes and parentheses do not.

`$X` binds one expression or statement, `$$$X` a run of arguments, elements, parameters or statements, as short as may
be. A name that is bound twice must be bound to the same: `f($X, $X)` matches `f(a, a)` and not `f(a, b)`. `$_` and a
bare `$$$` bind nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import libcst as cst
from libcst import CSTNode

from patcher.rewrite.pattern import Meta, Pattern, meta_name
from patcher.rewrite.syntax import BLOCKS, Scope, only, parts, statements

if TYPE_CHECKING:
    from patcher.rewrite.source import Source

Bound: TypeAlias = tuple[CSTNode, ...]
"""What a metavariable stands for: nodes that follow one another."""
Bindings: TypeAlias = Mapping[str, Bound]
Prefix: TypeAlias = tuple[int, Bindings]

_STRINGS = (cst.SimpleString, cst.ConcatenatedString, cst.FormattedString)
_SUITES = (cst.IndentedBlock, cst.SimpleStatementSuite)
_LISTS = (*BLOCKS, cst.SimpleStatementSuite)
_HOLDERS = frozenset({cst.Arg, cst.Element, cst.StarredElement, cst.StarredDictElement, cst.Param})
_LENIENT = frozenset({"decorators", "returns", "type_parameters"})
"""What a function or class may have though the pattern leaves it out: `def f($$$): $$$` matches a decorated one."""


@dataclass(frozen=True, slots=True)
class Match:
    """One place that a pattern matches: an expression, a keyword argument, or statements that follow one another."""

    nodes: tuple[CSTNode, ...]
    bindings: Bindings


def meta(node: object) -> Meta | None:
    """The metavariable that a name of a pattern is; None of any other node."""
    return meta_name(node.value) if isinstance(node, cst.Name) else None


def run_of(node: object) -> Meta | None:
    """The `$$$X` that an argument, element, statement or parameter of a pattern stands for."""
    if node.__class__ is cst.Expr:
        node = node.value
    if node.__class__ in _HOLDERS:
        node = node.name if isinstance(node, cst.Param) else node.value
    found = meta(node)
    return found if found and found.run else None


def find(source: Source, scopes: Sequence[Scope], pattern: Pattern) -> list[Match]:
    """Every place in `scopes` that the pattern matches, in order."""
    if not all(name in source.text for name in pattern.names):
        return []
    expression, argument = pattern.expression, pattern.argument
    if expression is not None:
        written = _STRINGS if isinstance(expression, _STRINGS) else (type(expression),)
        nodes = only(source.nodes(scopes), *((cst.BaseExpression,) if meta(expression) else written))
        return [Match((node,), env) for node in nodes if (env := match(expression, node, {})) is not None]
    found = [*_statements(source, scopes, pattern.body)]
    if argument is not None:
        for node in only(source.nodes(scopes), cst.Arg):
            env = match(argument, node, {}) if node.keyword else None
            if env is not None:
                found.append(Match((node,), env))
        found.sort(key=lambda place: source.lines(place.nodes[0]))
    return found


def _statements(source: Source, scopes: Sequence[Scope], wanted: Sequence[CSTNode]) -> Iterator[Match]:
    """Runs of statements of any block that match, none of which overlap."""
    # Only `$X` and `$$$X` stand for statements of any kind; most statements of a file differ from a pattern's by kind.
    first = wanted[0] if wanted else None
    kind = None if isinstance(first, cst.Expr) and meta(first.value) else type(first)
    for node in only([*scopes, *source.nodes(scopes)], *_LISTS) if wanted else ():
        block = [small for small, _ in statements(node)]
        index = 0
        while index < len(block):
            if kind is not None and block[index].__class__ is not kind:
                index += 1
                continue
            result = _sequence(wanted, block[index:], {}, whole=False)
            if result is None or result[0] == 0:
                index += 1
            else:
                yield Match(tuple(block[index : index + result[0]]), result[1])
                index += result[0]


def _sequence(wanted: Sequence[CSTNode], given: Sequence[CSTNode], env: Bindings, *, whole: bool) -> Prefix | None:
    """How many of `given` are `wanted`, runs as short as may be; all of them where `whole`."""
    if not wanted:
        return None if whole and given else (0, env)
    if run := run_of(wanted[0]):
        for length in range(len(given) + 1):
            bound = _bind(run, tuple(given[:length]), env)
            rest = None if bound is None else _sequence(wanted[1:], given[length:], bound, whole=whole)
            if rest is not None:
                return rest[0] + length, rest[1]
        return None
    first = match(wanted[0], given[0], env) if given else None
    rest = None if first is None else _sequence(wanted[1:], given[1:], first, whole=whole)
    return None if rest is None else (rest[0] + 1, rest[1])


def _all(wanted: Sequence[CSTNode], given: Sequence[CSTNode], env: Bindings) -> Bindings | None:
    result = _sequence(wanted, given, env, whole=True)
    return None if result is None else result[1]


def _bind(variable: Meta, value: Bound, env: Bindings) -> Bindings | None:
    if variable.name == "_":
        return env
    if variable.name in env:
        return env if same(env[variable.name], value) else None
    return {**env, variable.name: value}


def same(one: Bound, two: Bound) -> bool:
    """Whether two bindings are equal but for white space."""
    return len(one) == len(two) and all(match(a, b, {}) is not None for a, b in zip(one, two, strict=True))


def match(wanted: CSTNode, given: CSTNode, env: Bindings) -> Bindings | None:
    """The bindings so far and new ones, or None."""
    if variable := meta(wanted):
        return _bind(variable, (given,), env) if isinstance(given, cst.BaseExpression) else None
    if isinstance(wanted, cst.Expr) and (variable := meta(wanted.value)):
        return _bind(variable, (given,), env)
    if variable := _unpacked(wanted, given):
        return _bind(variable, (given,), env)
    if isinstance(wanted, _STRINGS) and isinstance(given, _STRINGS):
        return env if _literal(wanted) == _literal(given) else None
    if isinstance(wanted, _SUITES) and isinstance(given, _SUITES):
        return _all([s for s, _ in statements(wanted)], [s for s, _ in statements(given)], env)
    if type(wanted) is not type(given):
        return None
    special = _SPECIAL.get(type(wanted))
    return special(wanted, given, env) if special else _fields(wanted, given, env)


def _unpacked(wanted: CSTNode, given: CSTNode) -> Meta | None:
    """The `$X` of a list or call for which something unpacked, `*a`, stands."""
    match wanted, given:
        case cst.Element(), cst.StarredElement():
            return meta(wanted.value)
        case cst.Arg(keyword=None, star=""), cst.Arg(star="*"):
            return meta(wanted.value)
    return None


def _literal(node: CSTNode) -> str:
    return ast.dump(ast.parse(f"({cst.Module([]).code_for_node(node)})", mode="eval"))


def _fields(wanted: CSTNode, given: CSTNode, env: Bindings | None) -> Bindings | None:
    lenient = isinstance(wanted, (cst.FunctionDef, cst.ClassDef))
    for name in parts(type(wanted)):
        one, two = getattr(wanted, name), getattr(given, name)
        if lenient and not one and name in _LENIENT:
            continue
        if isinstance(one, CSTNode):
            env = match(one, two, env) if isinstance(two, CSTNode) and env is not None else None
        elif one.__class__ in (list, tuple):
            env = _all(one, two, env) if two.__class__ in (list, tuple) and env is not None else None
        elif one != two:
            return None
        if env is None:
            return None
    return env


def _number(wanted: CSTNode, given: CSTNode, env: Bindings) -> Bindings | None:
    return env if wanted.evaluated_value == given.evaluated_value else None  # type: ignore[attr-defined]


def _call(wanted: cst.Call, given: cst.Call, start: Bindings) -> Bindings | None:
    """Positional arguments in order, keywords by name in any order; what is over belongs to the last `$$$`.

    `f($X, port=$P, $$$REST)` matches `f(1, *more, host="a", port=2)`; `$$$REST` is `*more, host="a"`.
    """
    env = match(wanted.func, given.func, start)
    if env is None:
        return None
    theirs = [arg for arg in given.args if not (arg.keyword or arg.star == "**")]
    keywords = [arg for arg in wanted.args if (arg.keyword or arg.star == "**") and not run_of(arg)]
    # A keyword with a name goes before one without, `$NAME=$X`, which would take what the other is for.
    named_first = sorted(keywords, key=lambda arg: meta(arg.keyword) is not None)
    found = _in_any_order(named_first, [arg for arg in given.args if arg.keyword or arg.star == "**"], env)
    if found is None:
        return None
    env, left = found
    items = [arg for arg in wanted.args if not any(arg is keyword for keyword in keywords)]
    runs = [index for index, item in enumerate(items) if run_of(item)]
    if not runs and left:
        return None
    if not runs:
        return _all(items, theirs, env)
    last = runs[-1]
    split = len(theirs) - (len(items) - last - 1)
    head = _sequence(items[:last], theirs[: max(split, 0)], env, whole=False) if split >= 0 else None
    if head is None:
        return None
    rest = [arg for arg in given.args if any(arg is other for other in (*theirs[head[0] : split], *left))]
    bound = _bind(run_of(items[last]) or Meta("_", True), tuple(rest), head[1])
    return None if bound is None else _all(items[last + 1 :], theirs[split:], bound)


def _dict(wanted: cst.Dict, given: cst.Dict, start: Bindings) -> Bindings | None:
    """Pairs in order, or, beside a `**$$$REST`, by key."""
    run = next((run for item in wanted.elements if (run := run_of(item))), None)
    if run is None:
        return _all(wanted.elements, given.elements, start)
    found = _in_any_order([item for item in wanted.elements if not run_of(item)], given.elements, start)
    return None if found is None else _bind(run, tuple(found[1]), found[0])


def _in_any_order(
    wanted: Iterable[CSTNode], given: Sequence[CSTNode], env: Bindings
) -> tuple[Bindings, Sequence[CSTNode]] | None:
    """The bindings with one of `given` for each that is wanted, the first that matches, and those that are left."""
    for item in wanted:
        hit = next(((one, bound) for one in given if (bound := match(item, one, env)) is not None), None)
        if hit is None:
            return None
        env = hit[1]
        given = [one for one in given if one is not hit[0]]
    return env, given


def _parameters(wanted: cst.Parameters, given: cst.Parameters, env: Bindings) -> Bindings | None:
    """Parameters; a `$$$X` among them takes all that follow."""
    run = run_of(wanted.star_arg)
    if not run:
        return _fields(wanted, given, env)
    mine, theirs = [*wanted.posonly_params, *wanted.params], [*given.posonly_params, *given.params]
    head = _all(mine, theirs[: len(mine)], env)
    signs = {id(given.posonly_params[-1]): given.posonly_ind} if given.posonly_params else {}
    rest: list[CSTNode] = []
    for parameter in theirs[len(mine) :]:
        sign = signs.get(id(parameter))
        rest += [parameter, sign] if isinstance(sign, cst.ParamSlash) else [parameter]
    star = [given.star_arg] if isinstance(given.star_arg, (cst.Param, cst.ParamStar)) else []
    last = [given.star_kwarg] if given.star_kwarg else []
    return None if head is None else _bind(run, (*rest, *star, *given.kwonly_params, *last), head)


_SPECIAL: Mapping[type, Callable[..., Bindings | None]] = {
    cst.Call: _call, cst.Dict: _dict, cst.Parameters: _parameters,
    cst.Integer: _number, cst.Float: _number, cst.Imaginary: _number,
}  # fmt: skip
