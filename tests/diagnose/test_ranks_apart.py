"""What the ranks of a collective that timed out report, set side by side."""

from __future__ import annotations

import pytest

from patcher.diagnose.diagnosis import Finding
from tests.diagnose.test_other_programs import SHIPPED, diagnosed

TIMEOUTS = tuple(one for one in SHIPPED if one.id.startswith("nccl-timeout"))
SUM, BIG = "OpType=ALLREDUCE, NumelIn=4, NumelOut=4", "OpType=ALLREDUCE, NumelIn=5000, NumelOut=5000"
GATHER = "OpType=_ALLGATHER_BASE, NumelIn=3000000, NumelOut=12000000"
MORE_TIME = "timeout="
WAYS = "NCCL_P2P_DISABLE"


def timed_out(rank: int, number: int, work: str, *, among: int | None = None) -> str:
    """What the watchdog of a rank says, below frames of another; `among`: which rank of all it is."""
    return (
        f"[rank{rank if among is None else among}]:[E710 11:02:07.120 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog "
        f"caught collective operation timeout: WorkNCCL(SeqNum={number}, {work}, Timeout(ms)=600000) ran for 600055 "
        "milliseconds before timing out.\n" + "frame #3: <unknown function> + 0xdbbf4 (0x7f00 in /lib/libc.so.6)\n" * 12
    )


def root_of(*said: str) -> Finding:
    root = diagnosed("".join(said), TIMEOUTS).root
    assert root is not None
    assert root.id == "nccl-timeout"
    return root


def said(root: Finding) -> str:
    return str(root.explanation.sentence) if root.explanation is not None else ""


def commands(root: Finding) -> str:
    return "\n".join(command for fix in root.fixes for command in fix.commands)


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        (
            (41, SUM),
            (40, BIG),
            "the ranks are out of step: rank 1: SeqNum=40 ALLREDUCE NumelIn=5000; rank 0, 2: SeqNum=41 ALLREDUCE "
            "NumelIn=4. Behind: rank 1",
        ),
        (
            (40, SUM),
            (40, BIG),
            "the ranks run different collectives under one number: rank 0, 2: SeqNum=40 ALLREDUCE NumelIn=4; "
            "rank 1: SeqNum=40 ALLREDUCE NumelIn=5000",
        ),
    ],
)
def test_ranks_in_different_collectives_are_out_of_step(
    one: tuple[int, str], other: tuple[int, str], told: str
) -> None:
    root = root_of(timed_out(0, *one), timed_out(1, *other), timed_out(2, *one))
    assert said(root) == told
    assert root.fixes[0].text.startswith("Look for what one rank runs and another does not")
    assert WAYS not in commands(root)
    assert MORE_TIME not in commands(root)


def test_ranks_that_all_wait_in_the_same_are_told_of_the_ways_between_them_first() -> None:
    root = root_of(*(timed_out(rank, 40, GATHER) for rank in (2, 0, 3, 1)))
    assert said(root).startswith("rank 0, 1, 2, 3 all wait in SeqNum=40 _ALLGATHER_BASE NumelIn=3000000: they have")
    assert any(WAYS in command for command in root.fixes[0].commands)


@pytest.mark.parametrize(("work", "missing"), [(GATHER, "rank 0, 3"), (BIG, "rank 0")])
def test_a_rank_that_reports_nothing_is_named(work: str, missing: str) -> None:
    """The sizes of a gather tell how many ranks there are: 12000000 / 3000000."""
    root = root_of(timed_out(1, 40, work), timed_out(2, 40, work))
    assert said(root).endswith(f"and {missing} reports nothing: what does it do?")
    assert WAYS not in commands(root)
    assert MORE_TIME in commands(root)
    assert ("sharded model" in root.fixes[0].text) == (work == GATHER)


def test_a_rank_that_gathers_many_elements_alone_waits_for_sharded_parameters() -> None:
    root = root_of(timed_out(2, 40, GATHER))
    assert said(root).startswith("rank 2 waits where sharded parameters (FSDP, ZeRO-3) are put together, in SeqNum=40")
    assert "sharded model" in root.fixes[0].text


@pytest.mark.parametrize(
    "lines",
    [
        (timed_out(0, 40, SUM),),
        (timed_out(0, 40, SUM), timed_out(1, 900, BIG)),
        (timed_out(0, 40, SUM), timed_out(0, 41, BIG, among=2), timed_out(1, 41, BIG, among=3)),
    ],
)
def test_ranks_of_several_groups_are_not_compared(lines: tuple[str, ...]) -> None:
    root = root_of(*lines)
    assert said(root) == ""
    assert WAYS in commands(root)
    assert MORE_TIME in commands(root)


def test_a_timeout_of_milliseconds_is_the_cause_itself() -> None:
    log = timed_out(0, 1, SUM).replace("600000", "600") + timed_out(1, 1, SUM).replace("600000", "600")
    root = diagnosed(log, TIMEOUTS).root
    assert root is not None
    assert root.id == "nccl-timeout-too-short"


def test_a_rank_whose_watchdog_speaks_of_the_work_is_not_missing() -> None:
    work = "OpType=ALLREDUCE, NumelIn=466, NumelOut=466"
    other = (
        "[rank1]:[E321 ProcessGroupNCCL.cpp:1664] [PG 1 Rank 1] Exception (either an error or timeout) detected by "
        "watchdog at work: 90, last enqueued NCCL work: 92, last completed NCCL work: 89.\n"
    )
    assert "rank 1 reports nothing" in said(root_of(timed_out(0, 90, work), timed_out(2, 90, work)))
    assert "reports nothing" not in said(root_of(timed_out(0, 90, work), timed_out(2, 90, work), other))
