"""What a pair comes to, and since which column a finding is there."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from patcher.analysis.findings import Finding, Report
from patcher.analysis.symbols import module_summary, sources
from patcher.check.matrix import Breaks, Matrix, Works, WorksWithRecords, cell_of, with_since
from patcher.check.matrix_run import MatrixInputs, judge_pairs
from tests.report.matrices import CONFIG, GUARDED, HELPER, LORA, METHOD, cell, sample

if TYPE_CHECKING:
    import pytest


def report(*findings: Finding) -> Report:
    return Report("0.7.0", {"vllm": "0.20.2"}, 67, (), findings)


def test_only_breaks_make_a_cell_red() -> None:
    assert cell_of("0.20.2", report(HELPER, GUARDED), report(HELPER, GUARDED)).state == Works()
    assert cell_of("0.20.2", report(LORA, HELPER), report(LORA, HELPER)).state == Breaks(1)


def test_a_cell_works_with_the_records_that_take_its_breaks_away() -> None:
    found = cell_of("0.20.2", report(CONFIG, METHOD, HELPER), report(HELPER))
    assert found.state == WorksWithRecords(("vllm-run-method", "vllm-worker-wrapper-config"))
    assert found.breaks == 2


def test_a_break_that_only_the_records_bring_counts_as_left() -> None:
    found = cell_of("0.20.2", report(CONFIG), report(LORA))
    assert found.state == Breaks(1)
    assert found.added == (LORA,)


def test_since_is_the_first_column_of_the_run_that_shows_a_finding() -> None:
    row = {one.release: one for one in sample().row("0.6.1")}
    assert [one.since for one in row["0.14.0"].findings] == ["0.14.0"]
    assert [one.since for one in row["0.20.2"].findings] == ["0.14.0", "0.18.0", "0.18.0", "0.20.2", "0.20.2"]


def test_since_is_open_where_the_run_begins_at_the_first_column_and_anew_after_a_gap() -> None:
    shown = {"1": (LORA,), "2": (LORA,), "3": (), "4": (LORA,), "5": (LORA,)}
    cells = {("0.7.0", release): cell("0.7.0", release, *found) for release, found in shown.items()}
    row = with_since(Matrix("vllm", ("0.7.0",), tuple(shown), cells)).row("0.7.0")
    assert [[one.since for one in found.findings] for found in row] == [[None], [None], [], ["4"], ["4"]]


def test_a_second_matrix_parses_no_module_of_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UKY_PATCH_CACHE", str(tmp_path / "cache"))
    releases = {"1.0": "class Engine:\n    def start(self): ...\n", "2.0": "class Engine:\n    def begin(self): ...\n"}
    for release, text in releases.items():
        (tmp_path / release / "vllm").mkdir(parents=True)
        (tmp_path / release / "vllm/__init__.py").write_text(text)
    tree = tmp_path / "tree/verl"
    tree.mkdir(parents=True)
    (tree / "__init__.py").touch()
    (tree / "use.py").write_text("from vllm import Engine\n\nEngine().start()\n")
    folders = {release: tmp_path / release / "vllm" for release in releases}
    inputs = MatrixInputs("vllm", {"0.9.1": tree}, folders)
    parsed: list[bytes] = []
    for module in (sources, module_summary):

        def noted(source: bytes, parse: Callable[..., ast.Module] = module.parse) -> ast.Module:  # type: ignore[attr-defined]
            parsed.append(source)
            return parse(source)

        monkeypatch.setattr(module, "parse", noted)
    first = judge_pairs(inputs, lambda *_: None, processes=1)
    assert [len(first.cells["0.9.1", release].findings) for release in releases] == [0, 1]
    assert parsed
    parsed.clear()
    assert judge_pairs(inputs, lambda *_: None, processes=1).cells == first.cells
    assert parsed == []
