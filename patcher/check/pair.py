"""One tree on one target: uses, then verdicts, then findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import TypeAlias

from patcher.analysis.conditions import severity_of, text_comparisons
from patcher.analysis.findings import Beside, Broken, Finding, Problem, Report, Severity, Undecided, Unresolved, Verdict
from patcher.analysis.meaning import Universe
from patcher.analysis.meaning.program import Target
from patcher.analysis.project import Forest
from patcher.analysis.uses import (
    CallOf,
    ConfigKey,
    EngineFlag,
    EnvironmentVariable,
    ImportOf,
    MemberOf,
    MethodOf,
    Need,
    TextComparison,
    Use,
)
from patcher.check.rules.calls import judge_call
from patcher.check.rules.config_keys import judge_key
from patcher.check.rules.engine_flags import judge_flag
from patcher.check.rules.imports import judge_import
from patcher.check.rules.members import judge_member
from patcher.check.rules.overrides import judge_override
from patcher.check.rules.variables import judge_variable


def judge(use: Use, universe: Universe, baseline: Universe | None = None) -> Verdict:
    """Whether what a use needs is there.

    `baseline`, a release that the tree is known to work with, tells what positional arguments were meant for.
    """
    match use.need:
        case ImportOf() as need:
            return judge_import(use, need, universe, baseline)
        case MemberOf() as need:
            return judge_member(use, need, universe, baseline)
        case CallOf() as need:
            return judge_call(use, need, universe, baseline)
        case MethodOf() as need:
            return judge_override(use, need, universe)
        case EnvironmentVariable():
            return judge_variable(use, universe, baseline)
        case EngineFlag():
            return judge_flag(use, universe, baseline)
        case ConfigKey():
            return judge_key(use, universe, baseline)
        case TextComparison():
            return Beside()


JUDGED_WHOLE = ("vllm", "transformers")
"""Packages whose attributes, arguments and overrides are judged too, as labels made by execution allow.

Of any other (torch, numpy, ray) only modules and their names are, and only where none can be there unseen: much of what
such a package offers is compiled, generated or put together while it is imported.
"""
_OF_NAMES = ("module-removed", "module-moved", "symbol-removed", "symbol-moved")
_OF_SETTINGS = ("env-removed", "env-unknown", "flag-removed", "key-removed")

Weigh: TypeAlias = "Callable[[Use, Problem, Universe], Severity]"
Tell: TypeAlias = "Callable[[int, int], None]"
"""Hears how many files are done, and of how many."""
_TOO_FAR = "what it leads to nests too deeply"


def check_pair(
    forest: Forest,
    target: Target,
    *,
    verl: str,
    baseline: Target | None = None,
    files: Iterable[str] | None = None,
    further: Iterable[Use] = (),
    weigh: Weigh = severity_of,
    tell: Tell | None = None,
) -> Report:
    """Judge every use that the tree makes of the target's packages. `files` limits it to some; `further` are uses from
    elsewhere (scripts). `since` and `repaired_by` stay open.

    What was read is let go of between two uses when it has become much: the memory that this takes does not grow with
    the tree, but for the paths of its files and for what the report itself holds."""
    files = tuple(forest.files(target.words) if files is None else files)
    judging = _Judging(forest, target, baseline, weigh)
    for number, file in enumerate(files):
        if tell is not None:
            tell(number, len(files))
        judging.file(file)
    for use in further:
        judging.take(use, judging.verdict(use))
    findings = (*judging.findings, *judging.as_text)
    return Report(
        verl,
        target.against,
        judging.count,
        tuple(judging.unresolved),
        findings,
        broken=tuple(judging.broken),
        unreadable=tuple(judging.unreadable),
    )


class _Judging:
    """One tree on one target, file by file, and what came of it."""

    def __init__(self, forest: Forest, target: Target, baseline: Target | None, weigh: Weigh) -> None:
        self.universe = Universe(forest, target, judge)
        self.before = Universe(forest, baseline, judge) if baseline is not None else None
        self.weigh = weigh
        self.count = 0
        self.unresolved: list[Unresolved] = []
        self.findings: list[Finding] = []
        self.as_text: list[Finding] = []
        """Versions compared as text."""
        self.broken: list[Use] = []
        self.unreadable: list[tuple[str, str]] = []

    def file(self, file: str) -> None:
        """Judge what one file uses. What no release could make a use of one of the packages is not asked for again."""
        forest, packages = self.universe.forest, frozenset(self.universe.names)
        forest.rest()
        facts = forest.facts(file)
        if facts is None:
            return
        if facts.problem:
            self.unreadable.append((file, facts.problem))
        self.universe.begin()
        if self.before is not None:
            self.before.begin()
        concerned = []
        for use in forest.concerned.get((packages, file), facts.uses):
            verdict, anyhow = self.universe.without_target(partial(self.verdict, use))
            if not (anyhow and isinstance(verdict, Beside)):
                concerned.append(use)
                self.take(use, verdict)
            forest.rest()
        forest.concerned[packages, file] = tuple(concerned)
        with suppress(RecursionError):  # Then none of its comparisons can be told to be one of versions.
            self.as_text += text_comparisons(self.universe, (file,))

    def verdict(self, use: Use) -> Verdict:
        try:
            return judge(use, self.universe, self.before)
        except RecursionError:
            return Undecided(_written(use.need), _TOO_FAR)

    def take(self, use: Use, verdict: Verdict) -> None:
        """Enter a verdict into what becomes the report."""
        match _settled(verdict):
            case Beside():
                return
            case Undecided(symbol=symbol, reason=reason):
                self.unresolved.append(Unresolved(use.file, use.line, symbol, reason))
            case Broken(problems=problems):
                self.broken.append(use)
                self.findings += [self._finding(use, problem) for problem in problems]
            case _:
                pass
        self.count += 1

    def _finding(self, use: Use, problem: Problem) -> Finding:
        try:
            severity = self.weigh(use, problem, self.universe)
        except RecursionError:
            severity = "optional"  # As for what the plain job is not known to run.
        return Finding(
            use.file,
            problem.line,
            problem.symbol,
            problem.kind,
            severity,
            problem.detail,
            problem.suggestion,
            moved_to=problem.moved_to,
            function=use.context.function,
        )


def _settled(verdict: Verdict) -> Verdict:
    """The verdict, undecided where it is about more of a package than can be told."""
    for one in verdict.problems if isinstance(verdict, Broken) else ():
        if one.kind not in (*_OF_NAMES, *_OF_SETTINGS) and one.symbol.partition(".")[0] not in JUDGED_WHOLE:
            return Undecided(one.symbol, "of this package only modules and their names are judged")
    return verdict


def _written(need: Need) -> str:
    """What stands for the symbol of a use that leads too far: the name at its end."""
    match need:
        case ImportOf(module=module, name=name):
            return f"{module}.{name}" if name else module
        case MemberOf(name=name) | MethodOf(name=name):
            return name
        case _:
            return ""
