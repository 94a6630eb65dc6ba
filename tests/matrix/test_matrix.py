"""Every verl release with every vLLM release: apply, a clean status, nothing left to write, and every byte back."""

from __future__ import annotations

from pathlib import Path

import pytest

from patcher.operations.applying import Order, apply
from patcher.operations.reverting import revert
from patcher.operations.standing import standing
from tests.matrix.pairs import VERL, contents, copy_of, parsed, session, surroundings, vllm_releases

pytestmark = [pytest.mark.network, pytest.mark.slow]


@pytest.fixture(scope="module", params=VERL)
def tree(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of(request.param, tmp_path_factory.mktemp("matrix"))


def test_every_vllm_release_can_be_patched_for_and_taken_back(tree: Path, subtests: pytest.Subtests) -> None:
    before = contents(tree)
    for vllm in vllm_releases():
        with subtests.test(vllm=vllm):
            round_trip(tree, vllm, before)


def round_trip(tree: Path, vllm: str, before: dict[str, bytes]) -> None:
    here = session(tree, surroundings(vllm))
    first = apply(here, Order(here.request()))
    try:
        assert not first.failed, [(o.id, o.kind, str(o.detail)) for o in first.plan.failed]
        by_hand = [o.id for o in first.plan.outcomes if o.kind == "adopted"]
        assert not by_hand, f"a pristine release has no hand edits: {by_hand}"
        for path in first.written:
            parsed((tree / path).read_bytes())
            assert b"# Uky[" in (tree / path).read_bytes()
        assert standing(session(tree, surroundings(vllm))).clean
        assert not standing(session(tree, surroundings(vllm))).unrecorded
        second = session(tree, surroundings(vllm))
        assert not apply(second, Order(second.request())).written
    finally:
        revert(session(tree, surroundings(vllm)), frozenset(), dry_run=False, tampering="restore")
    assert contents(tree) == before


def test_opt_in_records_land_too(tree: Path) -> None:
    before = contents(tree)
    here = session(tree, surroundings("0.20.2"))
    tags = tuple(sorted({tag for record in here.records for tag in record.tags if not record.enabled}))
    done = apply(here, Order(here.request(tags=tags)))
    assert not done.failed, [(o.id, o.kind, str(o.detail)) for o in done.plan.failed]
    for path in done.written:
        parsed((tree / path).read_bytes())
    revert(session(tree, surroundings("0.20.2")), frozenset(), dry_run=False)
    assert contents(tree) == before
