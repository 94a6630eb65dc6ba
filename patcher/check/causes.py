"""What a tree still has of what a record repairs, as `check` finds it.

A fork may have handled in its own way what a record is for, so that the record finds no place. And a part may have been
edited by hand, with another place forgotten. A record says in `repairs` what `check` finds where it is needed:

    repairs = ["vllm.v1.worker.worker_base.WorkerWrapperBase(vllm_config)"]
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from patcher.analysis.conditions.severity import severity_in_place, severity_of
from patcher.analysis.findings import Broken, Fine, Report
from patcher.check.entries import open_project
from patcher.check.history import cached_folder
from patcher.check.pair import RateSeverity, check_pair, judge
from patcher.check.targets import module_of
from patcher.packages.agent.folders import package_in
from patcher.plan.outcome import Remaining, Spot
from patcher.worktree.python import UnreadableError, parse

if TYPE_CHECKING:
    from patcher.analysis.meaning.program import Target
    from patcher.analysis.project import Project
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
        opened = self._opened
        if not record.repairs or opened is None or not names <= opened[1].packages.keys():
            return None
        project, target = opened
        words = _words(record.repairs)
        files = tuple(project.files(sorted(words)))
        report = self._checked(files, severity_in_place)
        if _live(report, record):
            # What stands around a use may leave it live though no branch of this release leads there.
            report = self._checked(files, severity_of)
        if live := _live(report, record):
            return live
        if any(_is_meant(one.symbol, record) for one in report.unresolved):
            return None
        return () if all(_all_judged(project, target, file, words) for file in files) else None

    def _checked(self, files: Collection[str], weigh: RateSeverity) -> Report:
        assert self._opened is not None
        project, target = self._opened
        return check_pair(project, target, verl="", files=files, weigh=weigh)

    @cached_property
    def _opened(self) -> tuple[Project, Target] | None:
        from patcher.analysis.meaning.program import Target
        from patcher.analysis.symbols import Symbols

        versions: dict[str, str | None] = {name: item.version for name, item in self.environment.packages.items()}
        folders = {name: found for name in ("vllm", "transformers") if (found := self._folder(name)) is not None}
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
        folder = cached_folder(name, installed.version.partition("+")[0])
        return package_in(folder, module_of(name)) if folder is not None else None


def _is_meant(symbol: str, record: Record) -> bool:
    return any(fnmatchcase(symbol, pattern) for pattern in record.repairs)


def _live(report: Report, record: Record) -> tuple[Remaining, ...]:
    return tuple(
        Remaining(Spot(one.file, one.line), one.symbol)
        for one in report.findings
        if one.severity != "guarded" and _is_meant(one.symbol, record)
    )


def _words(patterns: Collection[str]) -> frozenset[str]:
    """The names that code cannot do without that has what is meant: of `a.C.f(x)` both `f` and `x`."""
    found = set()
    for pattern in patterns:
        dotted, _, parameter = pattern.rstrip(")").partition("(")
        names = [name for name in dotted.split(".") if "*" not in name]
        found.update({names[-1], parameter or names[-1]} - {"*"})
    return frozenset(found)


def _all_judged(project: Project, target: Target, file: str, words: Collection[str]) -> bool:
    """Whether every statement of a file that has one of the names has a use of it that is decided."""
    from patcher.analysis.meaning import Program

    content, facts = project.content(file), project.facts(file)
    if content is None or facts is None or facts.problem:
        return False
    text = content.decode("utf-8", "replace")
    program = Program(project, target, judge)
    decided = set()
    for use in facts.uses:
        match judge(use, program):
            case Fine(symbol=symbol) if _words((symbol,)) & set(words):
                decided.add(use.line)
            case Broken(problems=problems) if any(_words((one.symbol,)) & set(words) for one in problems):
                decided.add(use.line)
    try:
        spans = list(_statements_with(parse(text), words))
    except UnreadableError:
        return False
    return all(any(first <= line <= last for line in decided) for first, last in spans)


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
