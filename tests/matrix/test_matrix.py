"""Every verl release with every vLLM release: apply, a clean status, nothing left to write, and every byte back.

Of verl 0.4 and 0.5 with each twelfth vLLM release, of the others with each eighth; with all of them with
UKY_PATCH_ALL_CASES=1.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from patcher.patching.applying import Order, apply
from patcher.patching.reverting import revert
from patcher.patching.status import records_status
from tests.lanes import ALL_CASES
from tests.matrix.pairs import OLDER, VERL, contents, copy_of, parsed, session, vllm_releases

pytestmark = [pytest.mark.network, pytest.mark.slow]

SHARES = 8
"""In which the releases of vLLM are dealt out, for workers beside each other."""


@dataclass(frozen=True)
class Pristine:
    tree: Path
    contents: dict[str, bytes]


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Pristine]:
    """A tree of every verl release, and what is in it."""
    folder = tmp_path_factory.mktemp("matrix")
    trees = {verl: copy_of(verl, folder) for verl in VERL}
    return {verl: Pristine(tree, contents(tree)) for verl, tree in trees.items()}


@pytest.mark.parametrize("share", range(SHARES))
def test_every_pair_can_be_patched_and_taken_back(
    releases: dict[str, Pristine], share: int, subtests: pytest.Subtests
) -> None:
    for number, vllm in list(enumerate(vllm_releases()))[share::SHARES]:
        for verl, pristine in releases.items():
            if number % (12 if verl in OLDER else 8) and not ALL_CASES:
                continue
            with subtests.test(verl=verl, vllm=vllm):
                round_trip(pristine, vllm)


def round_trip(pristine: Pristine, vllm: str) -> None:
    tree = pristine.tree
    now = session(tree, vllm)
    first = apply(now, Order(now.request()))
    try:
        assert not first.failed, [(o.id, o.kind, str(o.detail)) for o in first.plan.failed]
        by_hand = [o.id for o in first.plan.outcomes if o.kind == "adopted"]
        assert not by_hand, f"a pristine release has no hand edits: {by_hand}"
        for path in first.written:
            parsed((tree / path).read_bytes())
            assert b"# Uky[" in (tree / path).read_bytes()
        after = records_status(session(tree, vllm))
        assert after.clean
        assert not after.unrecorded
        second = session(tree, vllm)
        assert not apply(second, Order(second.request())).written
    finally:
        revert(session(tree, vllm), frozenset(), dry_run=False, tampering="restore")
    assert contents(tree) == pristine.contents


@pytest.mark.parametrize("verl", VERL)
def test_opt_in_records_land_too(releases: dict[str, Pristine], verl: str) -> None:
    tree = releases[verl].tree
    here = session(tree, "0.20.2")
    tags = tuple(sorted({tag for record in here.records for tag in record.tags if not record.enabled}))
    done = apply(here, Order(here.request(tags=tags)))
    assert not done.failed, [(o.id, o.kind, str(o.detail)) for o in done.plan.failed]
    for path in done.written:
        parsed((tree / path).read_bytes())
    revert(session(tree, "0.20.2"), frozenset(), dry_run=False)
    assert contents(tree) == releases[verl].contents
