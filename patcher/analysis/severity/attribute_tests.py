"""`hasattr(x, "name")` and `getattr(x, "name", default)` in a test, where the target decides what `x` has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from patcher.analysis.expressions import Call, Constant, Expression, Name, below, replaced
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
    if not any(isinstance(one, Call) and one.line for one in below(condition.test)):
        return condition
    return replace(condition, test=replaced(condition.test, lambda one: _answer(one, has)))


def _answer(one: Expression, has: Has) -> Expression | None:
    match one:
        case Call(of=Name(id="hasattr"), positional=(_, Constant(value=str(name))), line=line):
            answer = has(line, name)
            return one if answer is None else Constant(answer)
        case Call(of=Name(id="getattr"), positional=(_, Constant(value=str(name)), default), line=line):
            return default if has(line, name) is False else one
        case _:
            return None
