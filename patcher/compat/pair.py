"""One tree on one target: uses -> verdicts -> findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TypeAlias

from patcher.compat.conditions import severity_of, text_comparisons
from patcher.compat.forest import Forest
from patcher.compat.judging import judge
from patcher.compat.meaning import Universe
from patcher.compat.model import (
    Beside,
    Broken,
    Finding,
    Problem,
    Report,
    Severity,
    Undecided,
    Unresolved,
    Use,
    Verdict,
)
from patcher.compat.target import Target

JUDGED_WHOLE = ("vllm", "transformers")
"""Packages whose attributes, arguments and overrides are judged too, as labels made by execution allow.

Of any other (torch, numpy, ray) only modules and their names are, and only where none can be there unseen: much of what
such a package offers is compiled, generated or put together while it is imported.
"""
_OF_NAMES = ("module-removed", "module-moved", "symbol-removed", "symbol-moved")
_OF_SETTINGS = ("env-removed", "env-unknown", "flag-removed", "key-removed")

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
    files = tuple(forest.files(target.words) if files is None else files)
    universe = Universe(forest, target)
    before = Universe(forest, baseline) if baseline is not None else None
    count = 0
    unresolved: list[Unresolved] = []
    findings: list[Finding] = []
    broken: list[Use] = []
    for use, verdict in (*_judged(universe, before, files), *((use, judge(use, universe, before)) for use in further)):
        match _settled(verdict):
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
    findings += text_comparisons(universe, files)
    return Report(verl, target.against, count, tuple(unresolved), tuple(findings), broken=tuple(broken))


def _settled(verdict: Verdict) -> Verdict:
    """The verdict, undecided where it is about more of a package than can be told."""
    for one in verdict.problems if isinstance(verdict, Broken) else ():
        if one.kind not in (*_OF_NAMES, *_OF_SETTINGS) and one.symbol.partition(".")[0] not in JUDGED_WHOLE:
            return Undecided(one.symbol, "of this package only modules and their names are judged")
    return verdict


def _judged(universe: Universe, before: Universe | None, files: Iterable[str]) -> Iterator[tuple[Use, Verdict]]:
    """Each use in the files with its verdict; those that no release could make one of the packages' are left out."""
    forest, packages = universe.forest, frozenset(universe.names)
    for file in files:
        facts = forest.facts(file)
        concerned = []
        for use in forest.concerned.get((packages, file), facts.uses if facts is not None else ()):
            verdict, anyhow = universe.without_target(partial(judge, use, universe, before))
            if not (anyhow and isinstance(verdict, Beside)):
                concerned.append(use)
                yield use, verdict
        forest.concerned[packages, file] = tuple(concerned)
