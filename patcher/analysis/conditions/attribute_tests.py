"""`hasattr(x, "name")` and `getattr(x, "name", default)` in a test, where the target decides what `x` has."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import replace

from patcher.analysis.findings import Broken, Fine
from patcher.analysis.meaning import Program
from patcher.analysis.uses import MemberOf, Use, When

Has = Callable[[int, str], "bool | None"]
"""Whether the value that a test in a line asks by name has it; None: undecidable."""


def attributes_asked(uses: Iterable[Use]) -> Mapping[tuple[int, str], list[Use]]:
    """The uses that ask for an attribute and cannot fail, by line and name, as uses that can."""
    found: dict[tuple[int, str], list[Use]] = {}
    for use in uses:
        if isinstance(use.need, MemberOf) and use.need.soft:
            found.setdefault((use.line, use.need.name), []).append(replace(use, need=replace(use.need, soft=False)))
    return found


def has_attribute(program: Program, asked: Iterable[Use]) -> bool | None:
    """Whether the values have the attribute: all of them, none of them, or None where that cannot be known."""
    verdicts = [program.judge(use, program) for use in asked]
    if verdicts and all(isinstance(one, Broken) for one in verdicts):
        return False
    return True if verdicts and all(isinstance(one, Fine) for one in verdicts) else None


def with_known_attributes(condition: When, has: Has) -> When:
    """The condition with the answers in the place of the questions: `if getattr(x, "gone", 0) > 0` is `if 0 > 0`."""
    if not any(_asks(node) for node in ast.walk(condition.test)):
        return condition
    return replace(condition, test=_Answered(has).visit(deepcopy(condition.test)))


def _asks(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("hasattr", "getattr")


class _Answered(ast.NodeTransformer):
    def __init__(self, has: Has) -> None:
        self._has = has

    def visit_Call(self, node: ast.Call) -> ast.AST:
        match node:
            case ast.Call(func=ast.Name(id="hasattr"), args=[_, ast.Constant(value=str(name))]):
                answer = self._has(node.lineno, name)
                return node if answer is None else ast.copy_location(ast.Constant(answer), node)
            case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=str(name)), default]):
                return default if self._has(node.lineno, name) is False else node
            case _:
                return self.generic_visit(node)
