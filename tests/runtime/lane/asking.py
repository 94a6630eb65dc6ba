"""What the tool says of a pair: its findings, what is left after the records, and the modules of the plain path."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from patcher.analysis.findings import Finding
from patcher.analysis.meaning import Program
from patcher.analysis.project import Project
from patcher.analysis.severity.guards import guards_of
from patcher.analysis.symbols import Symbols
from patcher.analysis.target import Target
from patcher.check.pair import check_pair, judge
from patcher.check.repairs import repair
from patcher.check.targets import locate, parse_all, target_of
from patcher.session.session import Session

AGAINST = ("vllm", "transformers")
"""The packages whose findings are executed: those that bench/accuracy labels."""


@dataclass(frozen=True, slots=True)
class Said:
    findings: tuple[Finding, ...]
    left: tuple[Finding, ...]
    modules: tuple[str, ...]


def ask(root: Path, python: Path) -> Said:
    """What `check` says of an untouched tree against what is installed under `python`.

    The modules are those whose import, or a function of which, the plain job runs there.
    """
    session = Session(root_option=root, python=python)
    target = _target(session)
    project = Project(session.tree.root, words=target.words)
    report = check_pair(project, target, verl=session.environment.version("verl") or "")
    repaired = repair(session, project, target, report, None)
    program = Program(project, target, judge)
    files = {file for file, _ in guards_of(program).reached.here}
    modules = tuple(sorted(module_of(file) for file in files))
    return Said(report.findings, repaired.repairs.after.findings, modules)


def _target(session: Session) -> Target:
    """As for `check`; what was read of the packages is kept for the next tree."""
    located = [locate(one, session) for one in parse_all(AGAINST)]
    fresh = target_of(located, session)
    packages = {one.asked.module: _symbols(one.package) for one in located if one.package is not None}
    return Target(fresh.against, packages, fresh.versions)


@lru_cache(maxsize=2)
def _symbols(package: Path) -> Symbols:
    return Symbols(package)


def module_of(file: str) -> str:
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def claim_of(finding: Finding, root: Path) -> list[str]:
    """The finding as the witness takes it: kind, symbol, and for an override the source of the tree's method."""
    source = ""
    if finding.kind == "override-mismatch":
        text = (root / finding.file).read_text()
        methods = [
            node
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and node.lineno <= finding.line <= (node.end_lineno or node.lineno)
        ]
        source = "\n".join(text.splitlines()[methods[-1].lineno - 1 : methods[-1].end_lineno])
    return [finding.kind, finding.symbol, source]
