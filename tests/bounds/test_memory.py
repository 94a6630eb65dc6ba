"""What `check` holds in memory does not grow with the tree, and what it finds does not hang on what it lets go of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench import wide
from patcher.analysis.findings import Report
from patcher.analysis.project import Project, ReadingCache
from patcher.analysis.symbols import Symbols
from patcher.analysis.target import Target
from patcher.check.pair import check_pair
from tests.lanes import ALL_CASES


def _checked(root: Path, vllm: Path, most: int | None) -> tuple[Report, ReadingCache]:
    target = Target({"vllm": "0.20.2"}, {"vllm": Symbols(vllm)}, {"vllm": "0.20.2"})
    known = ReadingCache(most=most)
    told: list[tuple[int, int]] = []
    project = Project(root, known=known, words=target.words)
    report = check_pair(project, target, verl="0.6.1", tell=lambda done, total: told.append((done, total)))
    assert [done for done, _ in told] == list(range(told[0][1]))
    return report, known


@pytest.mark.slow
@pytest.mark.parametrize("most", [0, 5_000, 40_000])
def test_findings_are_those_of_a_project_that_keeps_everything(tmp_path: Path, vllm: Path, most: int) -> None:
    wide.write(tmp_path / "wide", 130)
    kept, everything = _checked(tmp_path / "wide", vllm, None)
    report, known = _checked(tmp_path / "wide", vllm, most)
    assert kept.findings
    assert report.findings == kept.findings
    assert report.unresolved == kept.unresolved
    assert report.uses == kept.uses
    assert known.size < most + 20_000 < everything.size + 40_000
    assert known.generation > 0 == everything.generation


def test_a_variant_lets_go_too(tmp_path: Path, vllm: Path) -> None:
    wide.write(tmp_path / "wide", 40)
    target = Target({"vllm": "0.20.2"}, {"vllm": Symbols(vllm)}, {"vllm": "0.20.2"})
    project = Project(tmp_path / "wide", known=ReadingCache(most=2_000), words=target.words)
    file = "verl/wide/part_0/m_7.py"
    before = check_pair(project, target, verl="0.6.1", files=(file,))
    text = (tmp_path / "wide" / file).read_text().replace("from vllm.utils import FlexibleArgumentParser", "")
    after = check_pair(project.with_texts({file: text}), target, verl="0.6.1", files=(file,))
    again = check_pair(project, target, verl="0.6.1", files=(file,))
    assert len(after.findings) < len(before.findings)
    assert replace(again, broken=()) == replace(before, broken=())


@pytest.mark.slow
@pytest.mark.network
def test_memory_of_a_large_tree_is_that_of_one_half_as_large() -> None:
    """Of 32,000 files with UKY_PATCH_ALL_CASES=1. Of less than 8,000, which are 10 MB, all that was read is held."""
    most = 32_000 if ALL_CASES else 16_000
    small, large = wide.measured(most // 2), wide.measured(most)
    assert large.megabytes < 1.3 * small.megabytes
