"""A tree of a few lines, judged against a package of a few lines or a real release."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import pytest

from patcher.analysis.findings import Broken, Fine, Problem, Undecided, Unrelated
from patcher.analysis.meaning import Program
from patcher.analysis.project import Project
from patcher.analysis.symbols import Symbols
from patcher.analysis.target import Target
from patcher.check.pair import judge
from patcher.packages.releases import sources


class Judged:
    """What was found in one file, sorted out."""

    def __init__(self, problems: list[Problem], undecided: list[str], fine: list[str]) -> None:
        self.problems, self.undecided, self.fine = problems, undecided, fine

    @property
    def told(self) -> set[tuple[str, str]]:
        return {(problem.kind, problem.symbol) for problem in self.problems}


@lru_cache(maxsize=4)
def released(version: str) -> Symbols:
    return Symbols(sources("vllm", version) / "vllm")


def judged(root: Path, package: str, symbols: Symbols, before: Symbols | None = None) -> Judged:
    project = Project(root)
    program = Program(project, Target({package: "1"}, {package: symbols}, {package: "1"}), judge)
    baseline = Program(project, Target({package: "0"}, {package: before}, {package: "0"}), judge) if before else None
    found = Judged([], [], [])
    for file in project.files([package]):
        facts = project.facts(file)
        assert facts is not None
        assert not facts.problem
        for use in facts.uses:
            match judge(use, program, baseline):
                case Broken(problems=problems):
                    found.problems += problems
                case Undecided(symbol=symbol):
                    found.undecided.append(symbol)
                case Fine(symbol=symbol):
                    found.fine.append(symbol)
                case Unrelated():
                    pass
    return found


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in {"__init__.py": "", **files}.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text))


@pytest.fixture
def on_package(tmp_path: Path) -> Callable[..., Judged]:
    """`on_package(tree, package)`: the tree's one file against the package `pkg` made of these files."""

    def run(tree: str, package: dict[str, str], before: dict[str, str] | None = None) -> Judged:
        write(tmp_path / "tree" / "verl", {"file.py": tree})
        write(tmp_path / "new" / "pkg", package)
        old = None
        if before is not None:
            write(tmp_path / "old" / "pkg", before)
            old = Symbols(tmp_path / "old" / "pkg")
        return judged(tmp_path / "tree", "pkg", Symbols(tmp_path / "new" / "pkg"), old)

    return run


@pytest.fixture
def on_vllm(tmp_path: Path) -> Callable[[str, str], Judged]:
    """`on_vllm(tree, version)`: the tree's one file against a release."""

    def run(tree: str, version: str) -> Judged:
        write(tmp_path / "verl", {"file.py": tree})
        return judged(tmp_path, "vllm", released(version))

    return run
