"""The lane's pure part: blocks of the documents, and what counts as a disagreement."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtime.environment import BUILDS
from tests.runtime.lane.document import DOCUMENTS, block, blocks, stale, with_block
from tests.runtime.lane.model import STATES, Claim, Failure, Pair, Result
from tests.runtime.lane.reasons import disagreements
from tests.runtime.lane.running import ROOT

GONE = Failure("ImportError", "cannot import name 'Gone' from 'vllm.a'", "verl/a.py:2")
CLAIM = Claim("verl/a.py", 3, "symbol-removed", "vllm.a.Gone", "break", True, "broken", "ImportError: gone")
TREE = "import os\nfrom vllm.a import (\n    Gone,\n)\nfrom other import x\n"


def result(named: Failure | None, applied: Failure | None, *claims: Claim) -> Result:
    modules = {"as it comes": {}, "named": {"verl.a": named}, "applied": {"verl.a": applied}}
    return Result(Pair("0.6.1", BUILDS[0]), {state: {} for state in STATES}, modules, claims, 0)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "verl").mkdir()
    (tmp_path / "verl" / "a.py").write_text(TREE)
    return tmp_path


def test_a_failure_that_a_finding_explains_and_the_records_repair(tree: Path) -> None:
    assert list(disagreements(result(GONE, None, CLAIM), tree)) == []


def test_a_failure_at_another_statement_is_not_explained(tree: Path) -> None:
    elsewhere = Failure("ImportError", "cannot import name 'x' from 'transformers'", "verl/a.py:5")
    told = list(disagreements(result(elsewhere, None, CLAIM), tree))
    assert len(told) == 1
    assert "verl.a is clean and does not import" in told[0]


def test_a_package_that_is_not_installed_explains_itself(tree: Path) -> None:
    lacking = Failure("ModuleNotFoundError", "No module named 'megatron'", "verl/a.py:5")
    assert list(disagreements(result(lacking, lacking), tree)) == []
    ours = Failure("ModuleNotFoundError", "No module named 'vllm.worker'", "verl/a.py:5")
    assert len(list(disagreements(result(ours, ours), tree))) == 1


@pytest.mark.parametrize(
    ("named", "applied", "state", "said"),
    [
        (None, None, "broken", "is a break on import, and verl.a imports"),
        (GONE, None, "holds", "is false"),
        (GONE, None, "unknown", "could not be executed"),
        (GONE, Failure("NameError", "Gone", "verl/a.py:9"), "broken", "does not import once the records are applied"),
    ],
)
def test_each_way_to_disagree(
    tree: Path, named: Failure | None, applied: Failure | None, state: str, said: str
) -> None:
    claim = Claim(*(*(getattr(CLAIM, name) for name in Claim.__slots__[:6]), state, "why"))
    told = list(disagreements(result(named, applied, claim), tree))
    assert len(told) == 1
    assert said in told[0]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_documents_have_a_place_for_every_table_and_notice_another(name: str) -> None:
    text, language = (ROOT / name).read_text(encoding="utf-8"), DOCUMENTS[name]
    for build in BUILDS:
        found = Result(Pair("0.6.1", build), {state: {} for state in STATES}, {state: {} for state in STATES}, (), 0)
        assert list(stale(text, [found], language)) == list(blocks([found], language))
        made = text
        for which, inner in blocks([found], language).items():
            made = with_block(made, which, inner)
            assert block(made, which) == inner
        assert list(stale(made, [found], language)) == []
