"""docs/matrix.md is what a matrix of its own releases gives today, and the records keep what they claim there."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from patcher.check.matrix import Matrix
from patcher.check.matrix_run import survey_releases
from patcher.report.documents import MATRIX_DOCUMENTS, matrix_document
from patcher.session.session import Session
from tests.report.matrices import asked_in

pytestmark = [pytest.mark.network, pytest.mark.slow, pytest.mark.xdist_group("document")]  # One worker: minutes.

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/matrix.md").read_text(encoding="utf-8")
ORDER = asked_in(TEXT)


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Matrix:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("elsewhere"))
        return survey_releases(Session(), ORDER, lambda _message, _done, _total: None)


def test_the_documents_are_up_to_date_but_for_the_date(matrix: Matrix, subtests: pytest.Subtests) -> None:
    date = TEXT.partition(" by `make docs-matrix`")[0].rpartition(" on ")[2]
    for name in MATRIX_DOCUMENTS:
        with subtests.test(name=name):
            rendered = matrix_document(name, matrix, command=ORDER.command, date=date)
            assert (ROOT / name).read_text(encoding="utf-8") == rendered, "run: make docs-matrix"


@pytest.mark.parametrize(
    ("verl", "vllm", "breaks"),
    [("0.7.0", "0.20.2", 2), ("0.7.1", "0.20.2", 0), ("0.8.0", "0.20.2", 0), ("0.9.1", "0.24.0", 0)],
)
def test_pairs_that_were_run_on_a_gpu(matrix: Matrix, verl: str, vllm: str, breaks: int) -> None:
    cell = matrix.cells[verl, vllm]
    assert (cell.breaks, cell.left) == (breaks, 0)


def test_records_name_in_repairs_what_check_finds_without_them(matrix: Matrix) -> None:
    findings = [one for cell in matrix.cells.values() for one in cell.findings if one.severity != "guarded"]
    found = {(one.repaired_by, one.symbol) for one in findings if one.repaired_by}
    patterns = {(record.id, pattern) for record in Session().records_anywhere for pattern in record.repairs}
    missing = {
        (name, symbol)
        for name, symbol in found
        if not any(name == other and fnmatchcase(symbol, pattern) for other, pattern in patterns)
    }
    assert not missing
    by_name = {name for name, _ in found}
    idle = {
        (name, pattern)
        for name, pattern in patterns
        if name in by_name and not any(name == other and fnmatchcase(symbol, pattern) for other, symbol in found)
    }
    assert not idle
