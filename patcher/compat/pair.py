"""One tree on one target: uses -> verdicts -> findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from patcher.compat.conditions import severity_of
from patcher.compat.forest import Forest
from patcher.compat.judging import judge
from patcher.compat.meaning import Universe
from patcher.compat.model import Beside, Broken, Finding, Problem, Report, Severity, Undecided, Unresolved, Use
from patcher.compat.target import Target

Weigh: TypeAlias = "Callable[[Use, Problem, Universe], Severity]"


def check_pair(
    forest: Forest,
    target: Target,
    *,
    verl: str,
    baseline: Target | None = None,
    files: Iterable[str] | None = None,
    further: Iterable[Use] = (),
    weigh: Weigh = severity_of,
) -> Report:
    """Judge every use that the tree makes of the target's packages. `files` limits it to some; `further` are uses from
    elsewhere (scripts). `since` and `repaired_by` stay open."""
    universe = Universe(forest, target)
    before = Universe(forest, baseline) if baseline is not None else None
    count = 0
    unresolved: list[Unresolved] = []
    findings: list[Finding] = []
    broken: list[Use] = []
    for use in (*_uses(forest, target, files), *further):
        match judge(use, universe, before):
            case Beside():
                continue
            case Undecided(symbol=symbol, reason=reason):
                unresolved.append(Unresolved(use.file, use.line, symbol, reason))
            case Broken(problems=problems):
                broken.append(use)
                findings += [
                    Finding(
                        use.file,
                        problem.line,
                        problem.symbol,
                        problem.kind,
                        weigh(use, problem, universe),
                        problem.detail,
                        problem.suggestion,
                        moved_to=problem.moved_to,
                        function=use.context.function,
                    )
                    for problem in problems
                ]
            case _:
                pass
        count += 1
    return Report(verl, target.against, count, tuple(unresolved), tuple(findings), broken=tuple(broken))


def _uses(forest: Forest, target: Target, files: Iterable[str] | None) -> Iterable[Use]:
    for file in forest.files(target.words) if files is None else files:
        facts = forest.facts(file)
        if facts is not None:
            yield from facts.uses
