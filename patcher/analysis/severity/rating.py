"""The severity of a finding: break, optional, guarded or inert. The first of these that fits is taken:

- inert: an environment variable that nobody reads; `+key=value`, which hydra adds and the code may ignore;
- break: anything else in a script, whose program refuses the command line at once;
- guarded: a `try`, a test of versions or a `hasattr` around the use keeps it from failing, or only the tree itself
  calls the method that overrides another;
- optional: the plain job has no use for the package;
- guarded or optional: neither the plain job nor a program of a run script runs the function. It is guarded where a test
  of versions keeps this release from it;
- optional: the test around it is false for the plain job, or is not known and asks for a setting;
- break: all else.
"""

from __future__ import annotations

from patcher.analysis.conditions.job import name_words
from patcher.analysis.expressions import BoolOp, Call, Compare, Constant, Expression, Name, Not, below, last_name
from patcher.analysis.findings import Problem, Severity
from patcher.analysis.meaning import Program
from patcher.analysis.severity.guards import Guards, covers, guards_of
from patcher.analysis.uses import Condition, ConfigKey, EnvironmentVariable, MethodOf, Use, When

_CONFIGURED = frozenset({"config", "cfg", "environ", "getenv", "args", "kwargs", "enable", "enabled", "use"})


def severity_of(use: Use, problem: Problem, program: Program) -> Severity:
    """break, optional, guarded or inert."""
    # A variable that nobody reads has no effect, and nothing fails.
    if isinstance(use.need, EnvironmentVariable):
        return "inert"
    # `+key=value` adds a key: hydra takes it, and the code may ignore it.
    if isinstance(use.need, ConfigKey) and use.need.sign in ("+", "++"):
        return "inert"
    # A flag or key in a script is on the command line, so that the program refuses it at once.
    if not use.file.endswith(".py"):
        return "break"
    guards = guards_of(program, problem.package)
    if _is_guarded(use, problem, guards):
        return "guarded"
    summary = guards.summaries.file(use.file)
    node = (use.file, use.context.function)
    # A method that overrides another runs where its class is used, not where the class is defined.
    if isinstance(use.need, MethodOf) and summary is not None:
        method = f"{use.need.owner}.{use.need.name}".removeprefix(f"{summary.module}.")
        node = (use.file, method) if method in summary.bodies else node
    # Runs on another release only: a test of versions somewhere on the way keeps this one from it.
    if summary is None or not guards.runs_plainly(node):
        return "guarded" if summary is not None and guards.is_for_other_releases(node) else "optional"
    answer = guards.runs(use, guards.plain)
    # A test that cannot be decided and asks for a setting (`if config.use_x:`) is taken for a feature that is off.
    if answer is False or (answer is None and _is_feature(use)):
        return "optional"
    return "break"


def program_of(use: Use, problem: Problem, program: Program) -> str:
    """The program of the tree that runs a use which the plain job does not run; "" for none."""
    guards = guards_of(program, problem.package)
    return guards.program_of((use.file, use.context.function)) if use.file.endswith(".py") else ""


def severity_in_place(use: Use, problem: Problem, program: Program) -> Severity:
    """guarded, or optional for all else: by what stands around the use alone, which costs little."""
    return "guarded" if use.file.endswith(".py") and _is_guarded(use, problem, guards_of(program)) else "optional"


def _is_guarded(use: Use, problem: Problem, guards: Guards) -> bool:
    # The exception that this problem raises is caught around it, or a test of versions rules the code out.
    if problem.own_callers or covers(use.context.caught, problem.kind, use) or guards.runs(use, guards.target) is False:
        return True
    return any(_tests_for(one, problem) for one in use.context.conditions)


def _tests_for(condition: Condition, problem: Problem) -> bool:
    """Whether a test makes sure of the very name that is missing: `hasattr(x, "n")`, `"n" in parameters`."""
    if not isinstance(condition, When):
        return False
    name = problem.symbol.rpartition("(")[2].rstrip(")") if "(" in problem.symbol else problem.symbol.rpartition(".")[2]
    return _ensures(condition.test, name, condition.holds)


def _ensures(test: Expression, name: str, holds: bool) -> bool:
    match test:
        case Not(of=inner):
            return _ensures(inner, name, not holds)
        case BoolOp(every=every, values=values) if every is holds:
            return any(_ensures(value, name, holds) for value in values)
        case Call(of=Name(id="hasattr" | "getattr"), positional=(_, Constant(value=asked), *_)):
            return holds and asked == name
        # `if "seed" in inspect.signature(f).parameters:`
        case Compare(left=Constant(value=asked), operators=(operator,)) if asked == name:
            return (operator == "in") is holds
        # `if getattr(x, "name", None) is not None:`
        case Compare(left=Call() as inner, operators=("is" | "is not" as operator,), rights=(Constant(),)):
            return _ensures(inner, name, (operator == "is not") is holds)
        case _:
            return False


def _is_feature(use: Use) -> bool:
    """Whether a test around the use that cannot be known asks for a setting."""
    for condition in use.context.conditions:
        # `if config.max_tokens < length: raise ValueError` before it is no feature: the job passes that line.
        if isinstance(condition, When) and not condition.assumed:
            for one in below(condition.test):
                if not name_words(last_name(one)).isdisjoint(_CONFIGURED):
                    return True
    return False
