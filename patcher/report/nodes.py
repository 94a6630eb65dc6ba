"""The nodes of a cluster: a table with the odd ones marked, the checks below it, and both for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Literal

from patcher.checks import Check
from patcher.cluster.comparing import Comparison, compare
from patcher.cluster.machines import gpus, skews
from patcher.cluster.model import Node, own_name, trees
from patcher.cluster.nodes import Applied
from patcher.cluster.software import tree_digest
from patcher.cluster.verdicts import names
from patcher.errors import ExitCode
from patcher.i18n import Language, Phrases, language, phrase, show
from patcher.report.answers import show_json
from patcher.report.checks import as_json
from patcher.report.table import Cell, show_rows
from patcher.terminal.printing import say
from patcher.terminal.progress import progress

_STYLES = {"ok": "green", "warn": "yellow", "fail": "red"}
_GIB = 1 << 30
_SHOWN = ("verl", "vllm", "torch", "ray")
_HEADINGS = (
    *(phrase("node"), phrase("tree"), phrase("records")),
    *(phrase(name) for name in _SHOWN),
    *(phrase("gpus"), phrase("clock"), phrase("disk"), phrase("shm")),
)


class Progress:
    """How many nodes have answered, on a terminal, while the others are waited for."""

    def __init__(self) -> None:
        self._count = 0

    def __enter__(self) -> Progress:
        return self

    def take(self, node: Node) -> None:
        self._count += 1
        progress(
            phrase(
                "{count} {count:node|nodes} {count:has|have} answered; {node} was the last",
                count=self._count,
                node=own_name(node),
            )
        )

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        progress("")


def show_verified(nodes: Sequence[Node], address: str, output: Literal["text", "json"]) -> int:
    """The exit code: 1 where anything fails."""
    found = compare(nodes, address)
    if output == "json":
        show_json({"checks": _checks_json(found), "nodes": _nodes_json(nodes, found)})
    else:
        _show(nodes, found)
    return ExitCode.FINDINGS if any(check.status == "fail" for check in found.checks) else ExitCode.CLEAN


def show_applied(done: Applied, address: str, output: Literal["text", "json"], *, dry_run: bool) -> int:
    """The exit code: 3 where nothing was written as records cannot be applied, 1 where a node is left behind."""
    found = compare(done.nodes, address)
    if output == "json":
        show_json(_applied_json(done, found))
    else:
        _show(done.nodes, found)
        _tell_applied(done, dry_run=dry_run)
    if done.refused:
        return ExitCode.NOT_APPLIED
    left = any(check.status == "fail" for check in found.checks)
    return ExitCode.FINDINGS if left or (dry_run and done.would_change) else ExitCode.CLEAN


def _show(nodes: Sequence[Node], found: Comparison) -> None:
    tongue = language()
    odd = found.odd()
    there = [node for node in nodes if node.facts is not None and not node.facts.error]
    ahead = skews(nodes)
    head = tuple(Cell(show(text, tongue)) for text in _HEADINGS)
    if there:
        show_rows([_row(node, odd.get(node.name, ()), ahead) for node in there], head=head)
        say("")
    show_rows([_line(check, tongue) for check in found.checks])
    _tell_shared(nodes, tongue)


def _row(node: Node, odd: Sequence[str], ahead: Mapping[str, float]) -> tuple[Cell, ...]:
    """What differs from the others is marked with a star, and red on a terminal."""
    facts = node.facts
    assert facts is not None

    def cell(text: str, *checks: str) -> Cell:
        marked = any(check in odd for check in checks)
        return Cell(f"{text}*" if marked else text, "red" if marked else "")

    def free(name: str) -> str:
        room = facts.disks.get(name)
        return f"{room.free / _GIB:.0f} GiB" if room is not None and room.free is not None else "–"

    pending, holding = len(facts.pending), sum(kind in ("applied", "adopted") for kind in facts.records.values())
    records = f"{holding} + {pending}" if pending else str(holding)
    skew = ahead.get(node.name)
    return (
        Cell(node.name, "red" if odd else ""),
        cell(tree_digest(facts)[:8], "tree"),
        cell(records, "records"),
        *(cell(facts.versions.get(name, "–"), f"version of {name}") for name in _SHOWN),
        cell(gpus(facts), "gpus", "gpus of Ray"),
        cell(f"{round(skew, 2) + 0.0:+.2f} s" if skew is not None else "–", "clock"),
        cell(free("tree"), "disk"),
        cell(free("shm"), "shared memory"),
    )


def _line(check: Check, tongue: Language) -> tuple[Cell, ...]:
    return (
        Cell(show(check.status, tongue), _STYLES.get(check.status, "")),
        Cell(show(check.name, tongue)),
        Cell("", reason=Phrases((check.detail, check.fix), "  ->  ")),
    )


def _tell_shared(nodes: Sequence[Node], tongue: Language) -> None:
    for group in trees(nodes):
        if len(group) > 1:
            told = phrase("one tree on shared storage: {nodes}", nodes=names(group, len(nodes)))
            say(f"  {show(told, tongue)}")


def _tell_applied(done: Applied, *, dry_run: bool) -> None:
    tongue = language()
    say("")
    if done.refused:
        say(show(phrase("nothing was written on any node: records cannot be applied"), tongue), err=True)
        for node in done.nodes:
            if node.facts is not None and node.facts.plan is not None:
                for name, why in node.facts.plan.failed.items():
                    say(f"  {node.name}  {name}  {show(why, tongue)}", err=True)
        return
    if dry_run:
        trees_left = {done.shares.get(node.id, node.id) for node in done.nodes if _would_change(node)}
        say(show(phrase("{count} {count:tree|trees} would change; nothing was written", count=len(trees_left)), tongue))
        return
    for count in sorted({len(files) for files in done.written.values() if files}):
        writers = [node for node in done.nodes if len(done.written.get(node.id, ())) == count]
        others = [node for node in done.nodes if done.shares.get(node.id) in [writer.id for writer in writers]]
        told = phrase("{node}: {count} {count:file|files} changed", node=names(writers, len(done.nodes)), count=count)
        shared = phrase(
            "{node}: {count} {count:file|files} changed, for {others} too", **told.fields, others=names(others, 0)
        )
        say(f"  {show(shared if others else told, tongue)}")
    if not any(done.written.values()) and all(node.facts is not None and not node.facts.failed for node in done.nodes):
        say(show(phrase("nothing to do"), tongue))


def _would_change(node: Node) -> bool:
    return node.facts is not None and node.facts.plan is not None and bool(node.facts.plan.would_change)


def _checks_json(found: Comparison) -> list[dict[str, Any]]:
    return [{**as_json(one.check), "nodes": list(one.nodes)} for one in found.verdicts]


def _applied_json(done: Applied, found: Comparison) -> dict[str, Any]:
    nodes = _nodes_json(done.nodes, found)
    for node, told in zip(done.nodes, nodes, strict=True):
        came = node.facts.plan if node.facts is not None else None
        told["written"] = list(done.written.get(node.id, ()))
        told["would_change"] = list(came.would_change) if came is not None else []
        told["failed"] = {name: str(why) for name, why in came.failed.items()} if came is not None else {}
    return {"checks": _checks_json(found), "nodes": nodes}


def _nodes_json(nodes: Sequence[Node], found: Comparison) -> list[dict[str, Any]]:
    odd, ahead = found.odd(), skews(nodes)
    with_whom = {
        node.id: [other.name for other in group if other is not node] for group in trees(nodes) for node in group
    }
    return [_node_json(node, odd.get(node.name, ()), ahead, with_whom.get(node.id, [])) for node in nodes]


def _node_json(node: Node, odd: Sequence[str], ahead: Mapping[str, float], shares: Sequence[str]) -> dict[str, Any]:
    told: dict[str, Any] = {
        "name": node.name,
        "id": node.id,
        "address": node.address,
        "head": node.head,
        "added": node.added,
        "state": node.state,
        "detail": str(node.detail),
        "odd": list(odd),
    }
    facts = node.facts
    if facts is None:
        return told
    return told | {
        "detail": str(facts.error) or str(node.detail),
        "root": facts.root,
        "imported": facts.imported,
        "python": facts.python,
        "tree": tree_digest(facts) if facts.files else None,
        "shares": list(shares),
        "versions": dict(facts.versions),
        "records": dict(facts.records),
        "variables": dict(facts.variables),
        "gpus": list(facts.gpus),
        "driver": facts.driver,
        "clock": round(ahead[node.name], 4) if node.name in ahead else None,
        "disks": {name: {"free": room.free, "size": room.size} for name, room in facts.disks.items()},
        "seconds": round(facts.seconds, 3),
    }
