"""What nodes say, held against each other: who is odd, and what is said of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from patcher.checks import Check
from patcher.cluster.comparing import compare, grouped
from patcher.cluster.model import Clock, Node, Room, named
from tests.cluster.made import GIB, PLENTY, alike, facts, node

ADDRESS = "10.0.0.1:6379"


def bad(nodes: tuple[Node, ...]) -> dict[str, tuple[str, str, tuple[str, ...]]]:
    """What does not hold, by check: status, detail, nodes."""
    return {
        one.check.name: (one.check.status, str(one.check.detail), one.nodes)
        for one in compare(nodes, ADDRESS).verdicts
        if one.check.status in ("warn", "fail")
    }


def test_alike_nodes_have_nothing_to_mend() -> None:
    found = compare(alike("head", "n1", "n2"), ADDRESS)
    assert {check.status for check in found.checks} == {"ok"}
    assert [check.name for check in found.checks] == [
        *("tree", "records", "versions", "variables", "gpus", "clock", "disk", "disk of /tmp", "shared memory")
    ]
    assert found.odd() == {}


ODD: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "tree": ({"files": {"verl/a.py": "1", "verl/b.py": "9", "verl/c.py": "3"}}, "tree", "fail", "verl/b.py, verl/c.py"),
    "pending": ({"records": {"one": "pending"}}, "records", "fail", "not applied on odd: one"),
    "outcomes": ({"records": {"one": "applied", "two": "applied"}}, "records", "warn", "odd: 2 records"),
    "version": (
        {"versions": {"verl": "0.6.1", "vllm": "0.21.0"}},
        "version of vllm",
        "fail",
        "odd: 0.21.0; 0.20.2 on 2",
    ),
    "absent": ({"versions": {"verl": "0.6.1"}}, "version of vllm", "fail", "odd: –; 0.20.2 on 2"),
    "python": ({"python": "3.11.9"}, "version of python", "fail", "odd: 3.11.9; 3.11.7 on 2"),
    "import": ({"imported": "/env/verl"}, "import", "warn", "imports verl from /env/verl, and not from this tree"),
    "no import": ({"imported": None}, "import", "warn", "a worker on odd finds no verl by itself"),
    "variable": ({"variables": {}}, "variable NCCL_DEBUG", "warn", "head, n1: WARN; odd: not set"),
    "gpus": ({"gpus": ("H200",), "driver": "580.1"}, "gpus", "warn", "head, n1: –; odd: 1 x H200, driver 580.1"),
    "disk": ({"disks": {"tree": Room(GIB, GIB), "tmp": PLENTY, "shm": PLENTY}}, "disk", "warn", "odd: 1.0 GiB free"),
    "shm": (
        {"disks": {"tree": PLENTY, "tmp": PLENTY, "shm": Room(64 << 20, 1)}},
        "shared memory",
        "warn",
        "odd: 0.1 GiB",
    ),
    "check": (
        {"checks": (Check("file verl/a.py", "markers", "fail", 0.1, "changed since"),)},
        *("file verl/a.py", "fail", "odd: changed since"),
    ),
}


@pytest.mark.parametrize("what", ODD)
def test_the_odd_one_is_named_with_what_is_odd(what: str) -> None:
    changes, name, status, detail = ODD[what]
    found = bad(alike("head", "n1", odd=facts(**changes)))
    assert found[name][0] == status
    assert detail in found[name][1]
    assert found[name][2] == ("odd",)
    assert {nodes for _, _, nodes in found.values()} == {("odd",)}


def test_what_ray_or_a_launcher_sets_for_each_worker_is_not_compared() -> None:
    varying = {"RAY_JOB_ID": "1", "LOCAL_RANK": "3", "CUDA_VISIBLE_DEVICES": "7", "SLURM_PROCID": "2", "RANK": "1"}
    assert bad(alike("head", "n1", odd=facts(variables={"NCCL_DEBUG": "WARN", **varying}))) == {}


def test_where_all_nodes_are_meant_they_are_not_listed() -> None:
    pending = facts(records={"one": "pending"})
    found = bad(alike(head=pending, n1=pending, n2=pending))
    assert found["records"] == ("fail", "not applied on all 3 nodes: one", ("head", "n1", "n2"))


def test_of_many_nodes_the_first_are_named_and_the_others_counted() -> None:
    pending = {f"n{number}": facts(records={"one": "pending"}) for number in range(15)}
    _, detail, nodes = bad(alike("head", **pending))["records"]
    assert detail == "not applied on n0, n1, n2 and 12 more: one"
    assert len(nodes) == 15


def test_a_single_node_is_compared_with_nothing() -> None:
    assert bad(alike("head")) == {}
    assert bad(alike(head=facts(records={"one": "pending"})))["records"][1] == "not applied on head: one"


@pytest.mark.parametrize(
    ("state", "detail", "told"),
    [
        ("died", "", "left the cluster while it was being asked"),
        ("late", "", "gave no answer in time"),
        ("failed", "WorkerCrashedError: the worker died", "could not answer: WorkerCrashedError: the worker died"),
    ],
)
def test_a_node_without_an_answer_is_told_and_the_others_compared(state: Any, detail: str, told: str) -> None:
    nodes = (*alike("head", "n1"), node("gone", state=state, detail=detail))
    assert bad(nodes) == {"node gone": ("fail", told, ("gone",))}


def test_a_node_whose_apply_failed_is_told_though_it_answers_later() -> None:
    nodes = alike("head", "n1")
    found = bad((nodes[0], replace(nodes[1], state="failed", detail="killed")))
    assert found == {"node n1": ("fail", "could not answer: killed", ("n1",))}


def test_a_node_without_a_tree_is_told_and_its_machine_still_compared() -> None:
    empty = facts(error="no verl there", fix="bring it", files={}, identity=None, disks={"tmp": Room(1, 2)})
    found = bad(alike("head", bare=empty))
    assert found["node bare"] == ("fail", "no verl there", ("bare",))
    assert found["disk of /tmp"][2] == ("bare",)
    assert "tree" not in found


def test_a_node_that_joined_is_told() -> None:
    nodes = alike("head", "n1")
    assert bad((nodes[0], replace(nodes[1], added=True)))["node n1"][:2] == (
        "warn",
        "joined while the others were being asked",
    )


def test_ray_counting_other_gpus_than_there_are_is_told() -> None:
    two = facts(gpus=("H200", "H200"))
    nodes = tuple(replace(one, gpus=count) for one, count in zip(alike(head=two, n1=two), (2, 1), strict=True))
    assert bad(nodes)["gpus of Ray"][1:] == ("n1: Ray counts 1 GPUs, nvidia-smi 2", ("n1",))


def test_a_clock_is_wrong_only_beyond_what_its_reading_leaves_open() -> None:
    nodes = alike("head", "n1", "n2")

    def with_clock(clock: Clock) -> tuple[Node, ...]:
        return (*nodes[:2], replace(nodes[2], clock=clock))

    assert bad(with_clock(Clock(0.9, 0.001))) == {}
    assert bad(with_clock(Clock(3.0, 2.0))) == {}
    assert bad(with_clock(Clock(3.0, 0.1)))["clock"][1:] == ("off the others: n2: +3.0 s", ("n2",))


def test_this_machines_own_clock_does_not_matter() -> None:
    nodes = tuple(replace(one, clock=Clock(-500.0, 0.01)) for one in alike("head", "n1", "n2"))
    assert bad(nodes) == {}


def test_the_largest_group_is_the_usual_one_and_of_equal_ones_the_heads() -> None:
    def versions(*nodes: Node) -> list[tuple[str, list[str]]]:
        groups = grouped(nodes, lambda there: there.python)
        return [(value, [one.name for one in group]) for value, group in groups.groups]

    old = facts(python="3.10.1")
    assert versions(*alike(head=old), *alike("n1", "n2")) == [("3.11.7", ["n1", "n2"]), ("3.10.1", ["head"])]
    assert versions(*alike(a=old), *alike("head")) == [("3.11.7", ["head"]), ("3.10.1", ["a"])]


def test_names_are_as_short_as_tells_nodes_apart() -> None:
    def names(*nodes: Node) -> list[str]:
        return [one.name for one in named(nodes)]

    bare = [
        replace(node(f"x{number}"), label="", hostname="box", address=f"10.0.0.{number}", id=f"{number}abcdefgh")
        for number in range(3)
    ]
    assert names(bare[0], replace(bare[1], hostname="other")) == ["box", "other"]
    assert names(*bare[:2]) == ["box/10.0.0.0", "box/10.0.0.1"]
    assert names(bare[0], replace(bare[1], address="10.0.0.0")) == ["box/10.0.0.0/0abcde", "box/10.0.0.0/1abcde"]
    assert names(replace(bare[0], label="10.0.0.0"), replace(bare[1], label="gpu-7")) == ["box", "gpu-7"]


def test_the_head_comes_first_and_the_others_by_number() -> None:
    nodes = named([node(name) for name in ("n10", "n9", "head", "n1")])
    assert [one.name for one in nodes] == ["head", "n1", "n9", "n10"]
