"""What a pair comes to, and since which column a finding is there."""

from __future__ import annotations

from patcher.analysis.findings import Finding, Report
from patcher.check.matrix import Breaks, Matrix, Works, WorksWithRecords, cell_of, with_since
from tests.report.matrices import CONFIG, GUARDED, HELPER, LORA, METHOD, cell, sample


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
