"""docs/gpu-runs.md shows what was kept of the runs, and nothing else."""

from __future__ import annotations

from bench.gpu.report import DOCUMENT, known, rendered, tables


def test_the_tables_are_those_of_the_runs_that_are_kept() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert text == rendered(text, tables(known())), "run: python -m bench.gpu.report"
    for table in tables(known()).values():
        assert table.count("\n") > 2
