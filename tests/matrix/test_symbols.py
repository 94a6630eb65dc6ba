"""What records say of versions and of symbols agrees: inside its range, a record's symbols never say no."""

from __future__ import annotations

import pytest

from patcher.analysis.symbols import Symbols
from patcher.packages.releases import sources
from patcher.packages.versions import Yes, satisfies
from patcher.records.load import load
from tests.matrix.pairs import vllm_releases

pytestmark = [pytest.mark.network, pytest.mark.slow]


def test_symbols_and_versions_agree(subtests: pytest.Subtests) -> None:
    asked = 0
    for vllm in vllm_releases():
        with subtests.test(vllm=vllm):
            asked += agreeing(vllm)
    assert asked > 100


def agreeing(vllm: str) -> int:
    """How many symbols were looked up for the records that claim this release."""
    index = Symbols(sources("vllm", vllm) / "vllm")
    asked = 0
    for record in load():
        if not isinstance(satisfies(vllm, record.when.versions.get("vllm", "<0"), kind="dependency"), Yes):
            continue
        for wanted, symbols in ((True, record.when.has), (False, record.when.lacks)):
            for symbol in symbols:
                if symbol.startswith("vllm."):
                    asked += 1
                    assert index.has(symbol) is wanted, f"{record.id}: {symbol}"
    return asked
