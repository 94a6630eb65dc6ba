"""Trees, records, versions, imports and variables of the nodes, held against each other."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath

from patcher.checks import Check
from patcher.cluster.majority import grouped
from patcher.cluster.model import Facts, Node
from patcher.cluster.verdicts import Verdict, names, some, verdict
from patcher.i18n import Phrases, phrase

VARYING = ("RAY_", "SLURM_", "NVIDIA_VISIBLE", "CUDA_VISIBLE", "LOCAL_", "GROUP_", "ROLE_", "OMPI_COMM_WORLD_")
"""What the names of variables begin with that Ray or a launcher sets for each worker."""
_VARYING = ("RANK", "NODE_RANK", "UKY_PATCH_JOB")
_MISSING = "–"


def verdicts(nodes: Sequence[Node], address: str) -> Iterator[Verdict]:
    """Of nodes with a tree; `address` is the cluster's."""
    if nodes:
        yield _trees(nodes, address)
        yield from _records(nodes, address)
        yield from _node_checks(nodes)
        yield from _versions(nodes)
        yield from _imports(nodes)
        yield from _variables(nodes)


def tree_digest(facts: Facts) -> str:
    """One digest over the files of a tree, 12 hexadecimal digits."""
    return hashlib.sha256(repr(sorted(facts.files.items())).encode()).hexdigest()[:12]


def _trees(nodes: Sequence[Node], address: str) -> Verdict:
    groups = grouped(nodes, tree_digest)
    if not groups.odd:
        same = phrase("the same on all {count} nodes: {digest}", count=len(nodes), digest=groups.usual)
        return verdict("tree", "ok", same)
    usual = groups.groups[0][1]
    assert usual[0].facts is not None
    told = [
        phrase(
            "{nodes}: {files}", nodes=names(group, len(nodes)), files=some(_differing(usual[0].facts.files, group[0]))
        )
        for _, group in groups.odd
    ]
    most = phrase("{count} {count:node|nodes} {count:has|have} {digest}", count=len(usual), digest=groups.usual)
    fix = phrase("send them the same tree with rsync -a, then: uky-patch apply --ray {address}", address=address)
    return verdict("tree", "fail", Phrases((*told, most)), fix, nodes=groups.odd_names)


def _differing(usual: Mapping[str, str], node: Node) -> list[str]:
    assert node.facts is not None
    found = node.facts.files
    return sorted(path for path in usual.keys() | found.keys() if usual.get(path) != found.get(path))


def _records(nodes: Sequence[Node], address: str) -> Iterator[Verdict]:
    """What is still to be applied; and outcomes that differ, as versions or trees do."""
    pending = [node for node in nodes if node.facts is not None and node.facts.pending]
    if pending:
        groups = grouped(pending, lambda facts: facts.pending)
        told = [
            phrase("{nodes}: {files}", nodes=names(group, len(nodes)), files=some(ids)) for ids, group in groups.groups
        ]
        detail = phrase("not applied on {what}", what=Phrases(tuple(told)))
        yield verdict(
            "records", "fail", detail, f"uky-patch apply --ray {address}", nodes=[one.name for one in pending]
        )
        return
    groups = grouped(nodes, _holding)
    if groups.odd:
        told = [
            phrase("{nodes}: {count} {count:record|records}", nodes=names(group, len(nodes)), count=len(ids))
            for ids, group in groups.groups
        ]
        yield verdict("records", "warn", Phrases(tuple(told)), nodes=groups.odd_names)
        return
    count = phrase("{count} {count:record|records} {count:holds|hold} on all nodes", count=len(groups.usual))
    yield verdict("records", "ok", count)


def _holding(facts: Facts) -> tuple[str, ...]:
    return tuple(sorted(name for name, kind in facts.records.items() if kind != "not-needed"))


def _node_checks(nodes: Sequence[Node]) -> Iterator[Verdict]:
    """Each check that does not hold somewhere, once, with where; pending records have been told."""
    found: dict[str, list[tuple[Node, Check]]] = {}
    for node in nodes:
        assert node.facts is not None
        for check in node.facts.checks:
            told = check.name.removeprefix("record ") in node.facts.pending
            if check.status in ("warn", "fail") and not told:
                found.setdefault(check.name, []).append((node, check))
    for places in found.values():
        where = [node for node, _ in places]
        first = min((check for _, check in places), key=lambda check: check.status != "fail")
        detail = phrase("{nodes}: {files}", nodes=names(where, len(nodes)), files=first.detail)
        yield Verdict(replace(first, seconds=0.0, detail=detail), tuple(node.name for node in where))


def _versions(nodes: Sequence[Node]) -> Iterator[Verdict]:
    known = {name for node in nodes if node.facts is not None for name in node.facts.versions}
    different = []
    for name in ("python", *sorted(known - {"python"})):
        groups = grouped(nodes, lambda facts, name=name: _version(facts, name))  # type: ignore[misc]
        if groups.odd:
            different.append(name)
            told = [
                phrase("{nodes}: {files}", nodes=names(group, len(nodes)), files=value)
                for value, group in groups.groups[1:]
            ]
            most = phrase("{version} on {count}", version=groups.usual, count=len(groups.groups[0][1]))
            yield verdict(f"version of {name}", "fail", Phrases((*told, most)), nodes=groups.odd_names)
    if not different:
        yield verdict("versions", "ok", phrase("the same on all {count} nodes", count=len(nodes)))


def _version(facts: Facts, name: str) -> str:
    return facts.python if name == "python" else facts.versions.get(name, _MISSING)


def _imports(nodes: Sequence[Node]) -> Iterator[Verdict]:
    """Nodes whose workers import another verl than the tree that was looked at."""
    groups = grouped(nodes, _elsewhere)
    if groups.groups and not groups.odd and groups.usual == "":
        yield verdict(
            "import", "skip", phrase("workers have no verl of their own: a job brings the folder it starts in")
        )
        return
    for place, group in groups.groups:
        if place is None:
            continue
        where = names(group, len(nodes))
        told = phrase("a worker on {nodes} imports verl from {place}, and not from this tree", nodes=where, place=place)
        none = phrase("a worker on {nodes} finds no verl by itself", nodes=where)
        fix = phrase("workers take their environment from the raylet: set PYTHONPATH before ray start, on every node")
        yield verdict("import", "warn", told if place else none, fix, nodes=[node.name for node in group])


def _elsewhere(facts: Facts) -> str | None:
    """Where a worker's verl is, empty where it has none; None where it is this tree's."""
    if facts.imported is None:
        return ""
    ours = PurePath(facts.root or "/") / "verl"
    return None if PurePath(facts.imported) == ours else facts.imported


def _variables(nodes: Sequence[Node]) -> Iterator[Verdict]:
    every = {name for node in nodes if node.facts is not None for name in node.facts.variables}
    wanted = sorted(name for name in every if not name.startswith(VARYING) and name not in _VARYING)
    different = []
    for name in wanted:
        groups = grouped(nodes, lambda facts, name=name: facts.variables.get(name))  # type: ignore[misc]
        if groups.odd:
            different.append(name)
            told = [
                phrase(
                    "{nodes}: {files}",
                    nodes=names(group, len(nodes)),
                    files=phrase("not set") if value is None else value,
                )
                for value, group in groups.groups
            ]
            fix = phrase("workers take their environment from the raylet: set these before ray start, on every node")
            yield verdict(f"variable {name}", "warn", Phrases(tuple(told)), fix, nodes=groups.odd_names)
    if not different:
        yield verdict(
            "variables",
            "ok",
            phrase("{count} {count:variable|variables} {count:is|are} the same in every worker", count=len(wanted)),
        )
