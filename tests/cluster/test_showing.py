"""The table of nodes, the checks below it, the JSON, and the exit codes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from patcher.cluster.model import Node, TreePlan
from patcher.cluster.nodes import Applied
from patcher.report.nodes import applied_exit_code, applied_report, verified_exit_code, verified_report
from patcher.terminal.document import print_report
from tests.cluster.made import alike, facts, identity, node

if TYPE_CHECKING:
    import pytest

ADDRESS = "10.0.0.1:6379"
DONE = TreePlan({}, ())
TODO = TreePlan({}, ("verl/a.py",))


def _show_verified(nodes: tuple[Node, ...], address: str, output: Literal["text", "json"]) -> int:
    print_report(verified_report(nodes, address, output))
    return verified_exit_code(nodes, address)


def _show_applied(done: Applied, address: str, output: Literal["text", "json"], *, dry_run: bool) -> int:
    print_report(applied_report(done, address, output, dry_run=dry_run))
    return applied_exit_code(done, address, dry_run=dry_run)


def verified(nodes: tuple[Node, ...], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = _show_verified(nodes, ADDRESS, "text")
    return code, capsys.readouterr().out


def as_json(code: int, capsys: pytest.CaptureFixture[str]) -> tuple[int, Any]:
    return code, json.loads(capsys.readouterr().out)


def test_the_table_marks_what_is_odd(capsys: pytest.CaptureFixture[str]) -> None:
    odd = facts(versions={"verl": "0.6.1", "vllm": "0.21.0"}, records={"one": "applied", "two": "pending"})
    code, out = verified(alike("head", "n1", odd=odd), capsys)
    assert code == 1
    rows = {line.split()[0]: line.split() for line in out.splitlines()[:4]}
    assert rows["head"][2:5] == ["1", "0.6.1", "0.20.2"]
    assert rows["odd"][2:7] == ["1", "+", "1*", "0.6.1", "0.21.0*"]
    assert out.count("*") == 2


def test_a_table_of_sixteen_nodes_fits_a_wide_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    many = {f"gpu-node-{number:02}": facts(gpus=("NVIDIA H200",) * 8, driver="580.1") for number in range(16)}
    nodes = tuple(replace(one, gpus=8) for one in alike(**many))
    code, out = verified(nodes, capsys)
    assert code == 0
    assert max(map(len, out.splitlines()[:17])) <= 120
    assert len(out.splitlines()) == 17 + 1 + 9


def test_in_chinese(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    _, out = verified((*alike("head", "n1"), node("gone", state="died")), capsys)
    assert "在询问期间离开了集群" in out
    assert out.split()[0] == "节点"


def test_only_lost_nodes_make_no_table(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = verified((node("gone", state="late"),), capsys)
    assert code == 1
    assert out.startswith("  fail  node gone")


def test_a_warning_alone_is_no_finding(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = verified(alike("head", "n1", odd=facts(variables={})), capsys)
    assert code == 0
    assert "variable NCCL_DEBUG" in out


def test_the_json_of_verify(capsys: pytest.CaptureFixture[str]) -> None:
    nodes = (*alike("head", "n1", odd=facts(variables={})), node("gone", state="failed", detail="crashed"))
    code, answer = as_json(_show_verified(nodes, ADDRESS, "json"), capsys)
    assert code == 1
    assert set(answer) == {"checks", "nodes"}
    assert all(set(c) == {"name", "level", "status", "seconds", "detail", "fix", "nodes"} for c in answer["checks"])
    head, _, odd, gone = answer["nodes"]
    assert set(head) == {
        *("name", "id", "address", "head", "added", "state", "detail", "odd", "root", "imported", "python", "tree"),
        *("shares", "versions", "records", "variables", "gpus", "driver", "clock", "disks", "seconds"),
    }
    assert (head["odd"], odd["odd"]) == ([], ["variable NCCL_DEBUG"])
    assert gone["state"] == "failed"
    assert gone["detail"] == "crashed"
    assert "root" not in gone


def test_the_json_of_apply(capsys: pytest.CaptureFixture[str]) -> None:
    head, sharer, own = alike(head=facts(plan=DONE), n1=facts(plan=DONE), n2=facts(plan=DONE))
    same = facts(plan=DONE, identity=identity())
    done = Applied(
        (replace(head, facts=same), replace(sharer, facts=same), own),
        {head.id: ("verl/a.py",), own.id: ("verl/a.py",)},
        {sharer.id: head.id},
    )
    code, answer = as_json(_show_applied(done, ADDRESS, "json", dry_run=False), capsys)
    assert code == 0
    assert [(one["name"], one["written"], one["shares"]) for one in answer["nodes"]] == [
        ("head", ["verl/a.py"], ["n1"]),
        ("n1", [], ["head"]),
        ("n2", ["verl/a.py"], []),
    ]
    _show_applied(done, ADDRESS, "text", dry_run=False)
    out = capsys.readouterr().out
    assert "head, n2: 1 file changed, for n1 too\n" in out


def test_a_refused_apply_ends_with_three_and_says_where(capsys: pytest.CaptureFixture[str]) -> None:
    drifted = facts(plan=TreePlan({"one": "fewer places than expected"}, ()))
    done = Applied(alike("head", n1=drifted), {}, {}, refused=True)
    assert _show_applied(done, ADDRESS, "text", dry_run=False) == 3
    captured = capsys.readouterr()
    assert "nothing was written on any node" in captured.err
    assert "n1  one  fewer places than expected" in captured.err
    code, answer = as_json(_show_applied(done, ADDRESS, "json", dry_run=False), capsys)
    assert code == 3
    assert [one["failed"] for one in answer["nodes"]] == [{}, {"one": "fewer places than expected"}]


def test_a_dry_run_counts_trees_and_not_nodes(capsys: pytest.CaptureFixture[str]) -> None:
    shared = facts(plan=TODO, records={"one": "pending"})
    nodes = alike(head=shared, n1=shared, n2=shared)
    done = Applied(nodes, {}, {nodes[1].id: nodes[0].id})
    assert _show_applied(done, ADDRESS, "text", dry_run=True) == 1
    assert "2 trees would change; nothing was written" in capsys.readouterr().out


def test_an_apply_that_left_a_node_behind_does_not_say_that_there_was_nothing_to_do(
    capsys: pytest.CaptureFixture[str],
) -> None:
    done = Applied((*alike(head=facts(plan=DONE)), node("gone", state="died")), {}, {})
    assert _show_applied(done, ADDRESS, "text", dry_run=False) == 1
    assert "nothing to do" not in capsys.readouterr().out
    assert _show_applied(Applied(alike(head=facts(plan=DONE)), {}, {}), ADDRESS, "text", dry_run=False) == 0
    assert "nothing to do" in capsys.readouterr().out
