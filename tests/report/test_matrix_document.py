"""The published matrix: both tables, and the order it was made with read back from it."""

from __future__ import annotations

import pytest

from patcher.check.matrix_run import MatrixRequest
from patcher.report.documents import MATRIX_DOCUMENTS, matrix_document
from tests.report.matrices import asked_in, sample

ORDER = MatrixRequest(">=0.6.1,<=0.8.0", ("vllm>=0.12.0,<=0.20.2",))


@pytest.mark.parametrize("name", MATRIX_DOCUMENTS)
def test_both_tables_and_what_is_missing(name: str) -> None:
    text = matrix_document(name, sample(), command=ORDER.command, date="2026-11-20")
    rows = [line for line in text.splitlines() if line.startswith("| 0.")]
    assert "| 0.18.0 | ×1 | +2 | ✓ |" in rows
    assert "| 0.18.0 | ×3 | ×2 | ✓ |" in rows
    assert rows.count("| 0.19.0 | – | – | – |") == 2
    assert "vllm 0.19.0" in text.splitlines()[-1]
    assert "2026-11-20" in text
    assert max(map(len, text.splitlines())) < 200


@pytest.mark.parametrize("name", MATRIX_DOCUMENTS)
def test_the_order_is_read_back(name: str) -> None:
    assert asked_in(matrix_document(name, sample(), command=ORDER.command, date="2026-11-20")) == ORDER
