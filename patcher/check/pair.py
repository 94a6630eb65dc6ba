"""One tree on one target: each use goes to the rule for its kind (`judge`), broken ones become findings with a
severity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import TypeAlias

from patcher.analysis.findings import (
    Broken,
    Finding,
    Problem,
    Report,
    Severity,
    Undecided,
    Unrelated,
    Unresolved,
    Verdict,
)
from patcher.analysis.meaning import Program
from patcher.analysis.meaning.inference import is_enumeration
from patcher.analysis.project import Project
from patcher.analysis.severity.rating import program_of, severity_of
from patcher.analysis.severity.refusals import refusals
from patcher.analysis.severity.text_versions import text_comparisons
from patcher.analysis.symbols import Class
from patcher.analysis.target import Target
from patcher.analysis.uses import (
    CallOf,
    ConfigKey,
    EngineFlag,
    EnvironmentVariable,
    ImportOf,
    MemberOf,
    MethodOf,
    Need,
    Use,
)
from patcher.check.rules.calls import judge_call
from patcher.check.rules.config_keys import judge_key
from patcher.check.rules.engine_flags import judge_flag
from patcher.check.rules.imports import judge_import
from patcher.check.rules.members import ARGUMENTS_JUDGED, JUDGED_WHOLE, judge_member
from patcher.check.rules.overrides import judge_override
from patcher.check.rules.variables import judge_variable


def judge(use: Use, program: Program, baseline: Program | None = None) -> Verdict:
    """Whether what a use needs is there.

    `baseline`, a release that the tree is known to work with, tells what positional arguments were meant for.
    """
    match use.need:
        case ImportOf() as need:
            return judge_import(use, need, program, baseline)
        case MemberOf() as need:
            return judge_member(use, need, program, baseline)
        case CallOf() as need:
            return judge_call(use, need, program, baseline)
        case MethodOf() as need:
            return judge_override(use, need, program)
        case EnvironmentVariable():
            return judge_variable(use, program, baseline)
        case EngineFlag():
            return judge_flag(use, program)
        case ConfigKey():
            return judge_key(use, program)


_OF_NAMES = ("module-removed", "module-moved", "symbol-removed", "symbol-moved")
_OF_ARGUMENTS = ("argument-removed", "argument-required")
_OF_SETTINGS = ("env-removed", "env-unknown", "flag-removed", "key-removed")

RateSeverity: TypeAlias = "Callable[[Use, Problem, Program], Severity]"
OnProgress: TypeAlias = "Callable[[int, int], None]"
"""Called with how many files are done, and of how many."""
_TOO_FAR = "what it leads to nests too deeply"


def check_pair(
    project: Project,
    target: Target,
    *,
    verl: str,
    baseline: Target | None = None,
    files: Iterable[str] | None = None,
    further: Iterable[Use] = (),
    weigh: RateSeverity = severity_of,
    tell: OnProgress | None = None,
) -> Report:
    """Judge every use that the tree makes of the target's packages. `files` limits it to some; `further` are uses from
    elsewhere (scripts). `since` and `repaired_by` stay open.

    What was read is let go of between two uses when it has become much: the memory that this takes does not grow with
    the tree, but for the paths of its files and for what the report itself holds."""
    whole = files is None
    files = tuple(project.files(target.words) if files is None else files)
    judging = _Judging(project, target, baseline, weigh)
    for number, file in enumerate(files):
        if tell is not None:
            tell(number, len(files))
        judging.file(file)
    unrelated = []
    for use in further:
        verdict = judging.verdict(use)
        judging.take(use, verdict)
        if isinstance(verdict, Unrelated):
            unrelated.append(use)
    if whole:
        # What the jobs run on the way to a use: a file without a use that is no Python ends them as well.
        judging.unreadable += [one for one in sorted(project.unreadable.items()) if one[0] not in files]
    findings = (*judging.refused, *judging.findings, *judging.as_text)
    return Report(
        verl,
        target.against,
        judging.count,
        tuple(judging.unresolved),
        findings,
        broken=tuple(judging.broken),
        unrelated=tuple(unrelated),
        unreadable=tuple(judging.unreadable),
    )


class _Judging:
    """One tree on one target, file by file, and what came of it."""

    def __init__(self, project: Project, target: Target, baseline: Target | None, weigh: RateSeverity) -> None:
        self.program = Program(project, target, judge)
        self.before = Program(project, baseline, judge) if baseline is not None else None
        self.weigh = weigh
        self.count = 0
        self.unresolved: list[Unresolved] = []
        self.refused: list[Finding] = []
        """Modules that raise while they are imported: told first, as nothing after that runs."""
        self.findings: list[Finding] = []
        self.as_text: list[Finding] = []
        """Versions compared as text."""
        self.broken: list[tuple[Use, Broken]] = []
        self.unreadable: list[tuple[str, str]] = []

    def file(self, file: str) -> None:
        """Judge what one file uses. What no release could make a use of one of the packages is not asked for again."""
        project, packages = self.program.project, frozenset(self.program.names)
        project.free_memory()
        facts = project.facts(file)
        if facts is None:
            return
        # A file that is no Python has no uses; the report names it, so that the check is not taken for complete.
        if facts.problem:
            self.unreadable.append((file, facts.problem))
        self.program.begin()
        if self.before is not None:
            self.before.begin()
        concerned = []
        known = project.concerned.get((packages, file))
        for use in facts.uses if known is None else known:
            # A use that is of no package whatever the release says is not asked about again: a matrix checks the same
            # tree on dozens of releases.
            verdict, anyhow = self.program.without_target(partial(self.verdict, use))
            if not (anyhow and isinstance(verdict, Unrelated)):
                concerned.append(use)
                self.take(use, verdict)
            project.free_memory()
        project.concerned[packages, file] = tuple(concerned)
        with suppress(RecursionError):  # Then none of its tests can be told to be one of versions.
            self.refused += refusals(self.program, file)
        with suppress(RecursionError):  # Then none of its comparisons can be told to be one of versions.
            self.as_text += text_comparisons(self.program, file)

    def verdict(self, use: Use) -> Verdict:
        try:
            return judge(use, self.program, self.before)
        except RecursionError:
            return Undecided(_written(use.need), _TOO_FAR)

    def take(self, use: Use, verdict: Verdict) -> None:
        """Enter a verdict into what becomes the report."""
        match _settled(verdict, self.program):
            case Unrelated():
                return
            case Undecided(symbol=symbol, reason=reason):
                self.unresolved.append(Unresolved(use.file, use.line, symbol, reason))
            case Broken(problems=problems) as broken:
                self.broken.append((use, broken))
                self.findings += [self._finding(use, problem) for problem in problems]
        self.count += 1

    def _finding(self, use: Use, problem: Problem) -> Finding:
        try:
            severity = self.weigh(use, problem, self.program)
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
            entry=program_of(use, problem, self.program) if severity == "break" else "",
        )


def _settled(verdict: Verdict, program: Program) -> Verdict:
    """The verdict, undecided where it is about more of a package than is known."""
    for one in verdict.problems if isinstance(verdict, Broken) else ():
        package = one.symbol.partition(".")[0]
        if one.kind in (*_OF_NAMES, *_OF_SETTINGS) or package in JUDGED_WHOLE:
            continue
        # `ModelType.encoder_and_decoder`: all members of an enumeration stand in its class.
        if one.kind == "attribute-removed" and _is_of_enumeration(one.symbol, program):
            continue
        if package not in ARGUMENTS_JUDGED or one.kind not in _OF_ARGUMENTS:
            return Undecided(one.symbol, "of this package only modules and their names are judged")
    return verdict


def _is_of_enumeration(symbol: str, program: Program) -> bool:
    symbols = program.target.packages.get(symbol.partition(".")[0])
    owner = symbols.resolve(symbol.rpartition(".")[0]).definition if symbols is not None else None
    return isinstance(owner, Class) and is_enumeration(program, owner)


def _written(need: Need) -> str:
    """What stands for the symbol of a use that leads too far: the name at its end."""
    match need:
        case ImportOf(module=module, name=name):
            return f"{module}.{name}" if name else module
        case MemberOf(name=name) | MethodOf(name=name):
            return name
        case _:
            return ""
