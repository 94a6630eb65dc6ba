"""How a call passes its arguments; keywords that come out of a dict may be passed only under conditions."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from patcher.analysis.model import CallOf, Condition, Keyword, Shape
from patcher.analysis.reading.collected import Collected
from patcher.analysis.reading.targets import identifier
from patcher.analysis.reading.walk import Walk
from patcher.analysis.reading.ways import plain
from patcher.analysis.values import Value


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
        if not isinstance(argument, ast.Starred):
            positional.append("" if any_positional else identifier(argument))
            continue
        value = values[id(argument)]
        if isinstance(value, Collected) and not value.open and not any_positional and _all(walk, value):
            positional += [item.name for item in value.items]
        else:
            any_positional = True
    for keyword in node.keywords:
        if keyword.arg is not None:
            keywords.append(Keyword(keyword.arg, keyword.lineno))
            continue
        value = values[id(keyword)]
        if not isinstance(value, Collected):
            any_keyword = True
            continue
        any_keyword = any_keyword or value.open
        for item in value.items:
            if item.key is None:
                any_keyword = True
                continue
            named = Keyword(item.key, item.line, spread=True)
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


def _all(walk: Walk, value: Collected) -> bool:
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
