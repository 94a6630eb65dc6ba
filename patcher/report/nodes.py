"""The report and exit code of `--ray`: one row for each node of the cluster, what differs marked with `*`, and the
checks.

Exit code 3 where records cannot be applied on a node, so that none was written; 1 where a check fails, or
a dry run would change something.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from patcher.checks import Check
from patcher.cluster.comparing import Comparison, compare, gpus, names, skews, tree_digest
from patcher.cluster.model import Node, trees
from patcher.cluster.nodes import Applied
from patcher.errors import ExitCode
from patcher.i18n import Language, Phrases, language, phrase, show
from patcher.report.checks import STATUS_STYLES, as_json
from patcher.terminal.document import Json, Lines, Output, Part, Table
from patcher.terminal.table import Cell

_GIB = 1 << 30
_SHOWN = ("verl", "vllm", "torch", "ray")
_HEADINGS = (
    *(phrase("node"), phrase("tree"), phrase("records")),
    *(phrase(name) for name in _SHOWN),
    *(phrase("gpus"), phrase("clock"), phrase("disk"), phrase("shm")),
)


def verified_report(nodes: Sequence[Node], address: str, output: Output) -> Iterator[Part]:
    """The nodes, and what differs between them."""
    found = compare(nodes, address)
    if output == "json":
        yield Json({"checks": _checks_json(found), "nodes": _nodes_json(nodes, found)})
    else:
        yield from _table_and_checks(nodes, found)


def applied_report(done: Applied, address: str, output: Output, *, dry_run: bool) -> Iterator[Part]:
    """The nodes after an apply, what differs between them, and what was written."""
    found = compare(done.nodes, address)
    if output == "json":
        yield Json(_applied_json(done, found))
    else:
        yield from _table_and_checks(done.nodes, found)
        yield from _what_was_applied(done, dry_run=dry_run)


def verified_exit_code(nodes: Sequence[Node], address: str) -> int:
    """1 where anything fails."""
    failed = any(check.status == "fail" for check in compare(nodes, address).checks)
    return ExitCode.FINDINGS if failed else ExitCode.CLEAN


def applied_exit_code(done: Applied, address: str, *, dry_run: bool) -> int:
    """3 where nothing was written as records cannot be applied, 1 where a node is left behind."""
    if done.refused:
        return ExitCode.NOT_APPLIED
    left = any(check.status == "fail" for check in compare(done.nodes, address).checks)
    return ExitCode.FINDINGS if left or (dry_run and done.would_change) else ExitCode.CLEAN


def _table_and_checks(nodes: Sequence[Node], found: Comparison) -> Iterator[Part]:
    tongue = language()
    odd = found.odd()
    there = [node for node in nodes if node.facts is not None and not node.facts.error]
    ahead = skews(nodes)
    head = tuple(Cell(show(text, tongue)) for text in _HEADINGS)
    if there:
        yield Table([_row(node, odd.get(node.name, ()), ahead) for node in there], head=head)
        yield Lines("")
    yield Table([_line(check, tongue) for check in found.checks])
    yield from _shared_trees(nodes, tongue)


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
        Cell(show(check.status, tongue), STATUS_STYLES[check.status]),
        Cell(show(check.name, tongue)),
        Cell("", reason=Phrases((check.detail, check.fix), "  ->  ")),
    )


def _shared_trees(nodes: Sequence[Node], tongue: Language) -> Iterator[Part]:
    for group in trees(nodes):
        if len(group) > 1:
            message = phrase("one tree on shared storage: {nodes}", nodes=names(group, len(nodes)))
            yield Lines(f"  {show(message, tongue)}")


def _what_was_applied(done: Applied, *, dry_run: bool) -> Iterator[Part]:
    tongue = language()
    yield Lines("")
    if done.refused:
        yield Lines(phrase("nothing was written on any node: records cannot be applied"), err=True)
        for node in done.nodes:
            if node.facts is not None and node.facts.plan is not None:
                for name, why in node.facts.plan.failed.items():
                    yield Lines(f"  {node.name}  {name}  {show(why, tongue)}", err=True)
        return
    if dry_run:
        trees_left = {done.shares.get(node.id, node.id) for node in done.nodes if _would_change(node)}
        yield Lines(phrase("{count} {count:tree|trees} would change; nothing was written", count=len(trees_left)))
        return
    for count in sorted({len(files) for files in done.written.values() if files}):
        writers = [node for node in done.nodes if len(done.written.get(node.id, ())) == count]
        others = [node for node in done.nodes if done.shares.get(node.id) in [writer.id for writer in writers]]
        alone = phrase("{node}: {count} {count:file|files} changed", node=names(writers, len(done.nodes)), count=count)
        shared = phrase(
            "{node}: {count} {count:file|files} changed, for {others} too", **alone.fields, others=names(others, 0)
        )
        yield Lines(f"  {show(shared if others else alone, tongue)}")
    if not any(done.written.values()) and all(node.facts is not None and not node.facts.failed for node in done.nodes):
        yield Lines(phrase("nothing to do"))


def _would_change(node: Node) -> bool:
    return node.facts is not None and node.facts.plan is not None and bool(node.facts.plan.would_change)


def _checks_json(found: Comparison) -> list[dict[str, Any]]:
    return [{**as_json(one.check), "nodes": list(one.nodes)} for one in found.verdicts]


def _applied_json(done: Applied, found: Comparison) -> dict[str, Any]:
    nodes = _nodes_json(done.nodes, found)
    for node, entry in zip(done.nodes, nodes, strict=True):
        came = node.facts.plan if node.facts is not None else None
        entry["written"] = list(done.written.get(node.id, ()))
        entry["would_change"] = list(came.would_change) if came is not None else []
        entry["failed"] = {name: str(why) for name, why in came.failed.items()} if came is not None else {}
    return {"checks": _checks_json(found), "nodes": nodes}


def _nodes_json(nodes: Sequence[Node], found: Comparison) -> list[dict[str, Any]]:
    odd, ahead = found.odd(), skews(nodes)
    with_whom = {
        node.id: [other.name for other in group if other is not node] for group in trees(nodes) for node in group
    }
    return [_node_json(node, odd.get(node.name, ()), ahead, with_whom.get(node.id, [])) for node in nodes]


def _node_json(node: Node, odd: Sequence[str], ahead: Mapping[str, float], shares: Sequence[str]) -> dict[str, Any]:
    fields: dict[str, Any] = {
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
        return fields
    return fields | {
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
