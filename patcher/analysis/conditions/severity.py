"""How much a broken use matters: by what it takes for it to run."""

from __future__ import annotations

import ast

from patcher.analysis.conditions.guards import Guards, covers, guards_of
from patcher.analysis.conditions.plain_job import name_words
from patcher.analysis.meaning import Universe
from patcher.analysis.model import Condition, ConfigKey, EnvironmentVariable, Problem, Severity, Use, When

_CONFIGURED = frozenset({"config", "cfg", "environ", "getenv", "args", "kwargs", "enable", "enabled", "use"})


def severity_of(use: Use, problem: Problem, universe: Universe) -> Severity:
    """break, optional, guarded or inert."""
    if isinstance(use.need, EnvironmentVariable) or problem.kind in ("env-removed", "env-unknown"):
        return "inert"
    if isinstance(use.need, ConfigKey) and use.need.sign in ("+", "++"):
        return "inert"
    if not use.file.endswith(".py"):
        return "break"
    guards = guards_of(universe)
    if _is_guarded(use, problem, guards):
        return "guarded"
    outline = guards.tree.file(use.file)
    node = (use.file, use.context.function)
    if outline is None or not guards.runs_plainly(node):
        return "guarded" if outline is not None and guards.runs_somewhere(node) else "optional"
    answer = guards.runs(use, guards.plain)
    if answer is False or (answer is None and _is_feature(use)):
        return "optional"
    return "break"


def severity_in_place(use: Use, problem: Problem, universe: Universe) -> Severity:
    """guarded, or optional for all else: by what stands around the use alone, which costs little."""
    return "guarded" if use.file.endswith(".py") and _is_guarded(use, problem, guards_of(universe)) else "optional"


def _is_guarded(use: Use, problem: Problem, guards: Guards) -> bool:
    if covers(use.context.caught, problem.kind, use) or guards.runs(use, guards.target) is False:
        return True
    return any(_asks_for(one, problem) for one in use.context.conditions)


def _asks_for(condition: Condition, problem: Problem) -> bool:
    """Whether a test makes sure of the very name that is missing: `hasattr(x, "n")`, `"n" in parameters`."""
    if not isinstance(condition, When):
        return False
    name = problem.symbol.rpartition("(")[2].rstrip(")") if "(" in problem.symbol else problem.symbol.rpartition(".")[2]
    return _makes_sure(condition.test, name, condition.holds)


def _makes_sure(test: ast.expr, name: str, holds: bool) -> bool:
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return _makes_sure(inner, name, not holds)
        case ast.BoolOp(op=op, values=values) if isinstance(op, ast.And) is holds:
            return any(_makes_sure(value, name, holds) for value in values)
        case ast.Call(func=ast.Name(id="hasattr" | "getattr"), args=[_, ast.Constant(value=asked), *_]):
            return holds and asked == name
        case ast.Compare(left=ast.Constant(value=asked), ops=[op]) if asked == name:
            return isinstance(op, ast.In) is holds
        case ast.Compare(left=ast.Call() as inner, ops=[ast.Is() | ast.IsNot() as op], comparators=[ast.Constant()]):
            return _makes_sure(inner, name, isinstance(op, ast.IsNot) is holds)
        case _:
            return False


def _is_feature(use: Use) -> bool:
    """Whether a test around the use that cannot be told asks for a setting."""
    for condition in use.context.conditions:
        if isinstance(condition, When):
            for node in ast.walk(condition.test):
                name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
                if not name_words(name).isdisjoint(_CONFIGURED):
                    return True
    return False
