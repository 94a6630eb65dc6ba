"""What a tree still has of what a record repairs, as `check` finds it.

A fork may have handled in its own way what a record is for, so that the record finds no place. And a part may have been
edited by hand, with another place forgotten. A record says in `repairs` what `check` finds where it is needed:

    repairs = ["vllm.v1.worker.worker_base.WorkerWrapperBase(vllm_config)"]
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from patcher.analysis.findings import Broken, Fine, Report
from patcher.analysis.severity.rating import severity_in_place, severity_of
from patcher.check.entries import open_project
from patcher.check.pair import RateSeverity, check_pair, judge
from patcher.check.plan_cache import CHECKED
from patcher.check.targets import module_of
from patcher.packages.agent.folders import package_in
from patcher.packages.releases.cache import cached_sources
from patcher.plan.outcome import Remaining, Spot
from patcher.worktree.python import UnreadableError, parse

if TYPE_CHECKING:
    from patcher.analysis.project import Project
    from patcher.analysis.target import Target
    from patcher.analysis.uses import Use
    from patcher.packages import Environment
    from patcher.records.model import Record


@dataclass(frozen=True)
class Causes:
    """Answers for one tree, its texts without any record, on one environment. Nothing is fetched."""

    root: Path
    texts: Mapping[str, str]
    environment: Environment
    elsewhere: bool = False

    def remaining(self, record: Record) -> tuple[Remaining, ...] | None:
        """Where the tree has what the record repairs; None where that is not known."""
        names = {pattern.partition(".")[0] for pattern in record.repairs}
        opened = self._opened if names else None
        if opened is None or not names <= opened[1].packages.keys():
            return None
        project, target = opened
        subjects, parameters = _words(record.repairs)
        files = tuple(project.files(sorted(subjects)))
        places = [_Places(project, target, file, subjects | parameters) for file in files]
        uses = [use for place in places for use in place.uses]
        report = self._checked(uses, severity_in_place)
        if _live(report, record):
            # What stands around a use may leave it live though no branch of this release leads there.
            report = self._checked(uses, severity_of)
        if live := _live(report, record):
            return live
        if any(_is_meant(one.symbol, record) for one in report.unresolved):
            return None
        if not all(place.all_judged() for place in places):
            return None
        # `getattr(engine, name)(**{"level": 3})` gives the parameter to what nobody names.
        others = set(project.files(sorted(parameters))) - set(files) if parameters else set()
        return None if any(_gives(project.content(file), parameters) for file in sorted(others)) else ()

    def _checked(self, uses: Iterable[Use], weigh: RateSeverity) -> Report:
        assert self._opened is not None
        project, target = self._opened
        return check_pair(project, target, verl="", files=(), further=uses, weigh=weigh)

    @cached_property
    def _opened(self) -> tuple[Project, Target] | None:
        from patcher.analysis.symbols import Symbols
        from patcher.analysis.target import Target

        versions: dict[str, str | None] = {name: item.version for name, item in self.environment.packages.items()}
        folders = {name: found for name in CHECKED if (found := self._folder(name)) is not None}
        if not folders:
            return None
        against = {folder.name: versions[name] or "" for name, folder in folders.items()}
        target = Target(against, {folder.name: Symbols(folder) for folder in folders.values()}, versions)
        project, _ = open_project(self.root, target.against, target.words)
        return project.with_texts(self.texts), target

    def _folder(self, name: str) -> Path | None:
        installed = self.environment.packages.get(name)
        if installed is None:
            return None
        if installed.location is not None and not self.elsewhere:
            return installed.location
        folder = cached_sources(name, installed.version.partition("+")[0])
        return package_in(folder, module_of(name)) if folder is not None else None


def _is_meant(symbol: str, record: Record) -> bool:
    return any(fnmatchcase(symbol, pattern) for pattern in record.repairs)


def _live(report: Report, record: Record) -> tuple[Remaining, ...]:
    return tuple(
        Remaining(Spot(one.file, one.line), one.symbol, one.severity == "break")
        for one in report.findings
        if one.severity != "guarded" and _is_meant(one.symbol, record)
    )


def _words(patterns: Collection[str]) -> tuple[frozenset[str], frozenset[str]]:
    """The names without which no code has what is meant: of `a.C.f(x)` the subject `f`, and the parameter `x`."""
    subjects, parameters = set(), set()
    for pattern in patterns:
        dotted, _, parameter = pattern.rstrip(")").partition("(")
        subjects.add([name for name in dotted.split(".") if "*" not in name][-1])
        parameters.add(parameter)
    return frozenset(subjects), frozenset(parameters - {"", "*"})


class _Places:
    """The statements of one file that have one of some names, and the uses in them."""

    def __init__(self, project: Project, target: Target, file: str, words: AbstractSet[str]) -> None:
        self._project, self._target, self._words = project, target, words
        content, facts = project.content(file), project.facts(file)
        self._spans: list[tuple[int, int]] | None = None
        """First and last line of each; None for a file that cannot be read."""
        self.uses: tuple[Use, ...] = ()
        if content is None or facts is None or facts.problem:
            return
        with suppress(UnreadableError):
            self._spans = list(_statements_with(parse(content.decode("utf-8", "replace")), words))
            self.uses = tuple(use for use in facts.uses if any(a <= use.line <= b for a, b in self._spans))

    def all_judged(self) -> bool:
        """Whether each of the statements has a use of one of the names that is decided."""
        from patcher.analysis.meaning import Program

        if self._spans is None:
            return False
        program = Program(self._project, self._target, judge)
        decided = set()
        for use in self.uses:
            match judge(use, program):
                case Fine(symbol=symbol) if self._is_about(symbol):
                    decided.add(use.line)
                case Broken(problems=problems) if any(self._is_about(one.symbol) for one in problems):
                    decided.add(use.line)
        return all(any(first <= line <= last for line in decided) for first, last in self._spans)

    def _is_about(self, symbol: str) -> bool:
        subjects, parameters = _words((symbol,)) if symbol else (frozenset(), frozenset())
        return bool((subjects | parameters) & self._words)


def _gives(content: bytes | None, parameters: AbstractSet[str]) -> bool:
    """Whether one of the names is written as an argument's name or as a text: `f(level=3)`, `{"level": 3}`."""
    either = "|".join(map(re.escape, sorted(parameters)))
    if content is None or not re.search(rf"\b(?:{either})\b[\s]*=|[\"'](?:{either})[\"']".encode(), content):
        return False
    try:
        tree = parse(content.decode("utf-8", "replace"))
    except UnreadableError:
        return True
    given = (node.arg if isinstance(node, ast.keyword) else getattr(node, "value", None) for node in ast.walk(tree))
    return any(isinstance(name, str) and name in parameters for name in given)


def _statements_with(tree: ast.Module, words: Collection[str]) -> Iterator[tuple[int, int]]:
    """First and last line of each simple statement, and of each head of a compound one, that has one of the names."""
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(words)))})\b")
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if isinstance(body, list) and body else node.end_lineno or node.lineno
            if any(_has(inner, pattern) for inner in _own_nodes(node)):
                yield node.lineno, max(last, node.lineno)


def _own_nodes(node: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of a statement, those of the statements in it left out."""
    waiting: list[ast.AST] = [node]
    while waiting:
        one = waiting.pop()
        yield one
        waiting += [inner for inner in ast.iter_child_nodes(one) if not isinstance(inner, ast.stmt)]


def _has(node: ast.AST, pattern: re.Pattern[str]) -> bool:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.alias(name=name):
            return bool(pattern.search(name))
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return bool(pattern.search(name))
        case ast.keyword(arg=str(name)) | ast.Constant(value=str(name)):
            return bool(pattern.search(name))
        case _:
            return False
