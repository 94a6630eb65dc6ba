"""What the nodes say, held against each other: one check for each thing that should be alike, the odd ones named."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from statistics import median
from typing import Generic, TypeVar

from patcher.checks import Check, Status
from patcher.cluster.model import Facts, Node
from patcher.i18n import NOTHING, Phrase, Phrases, phrase

LEVEL = "nodes"
NAMED = 3
"""Things of a kind that are named; of the others only the number is shown."""


@dataclass(frozen=True, slots=True)
class Verdict:
    check: Check
    nodes: tuple[str, ...] = ()
    """Names of the nodes that do not meet it."""


def verdict(
    name: str,
    status: Status,
    detail: Phrase | Phrases | str,
    fix: Phrase | Phrases | str = NOTHING,
    *,
    nodes: Iterable[str] = (),
) -> Verdict:
    return Verdict(Check(name, LEVEL, status, 0.0, detail, fix), tuple(nodes))


def names(nodes: Sequence[Node], of: int) -> Phrase | str:
    """Which these are of so many."""
    if len(nodes) == of > 1:
        return phrase("all {count} nodes", count=of)
    return some([node.name for node in nodes])


def some(things: Sequence[str]) -> Phrase | str:
    """The first of them, and how many more there are."""
    if len(things) <= NAMED + 1:
        return ", ".join(things)
    return phrase("{some} and {count} more", some=", ".join(things[:NAMED]), count=len(things) - NAMED)


T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Groups(Generic[T]):
    """Nodes by what they have: the largest group first, of equal ones the head's."""

    groups: tuple[tuple[T, tuple[Node, ...]], ...]

    @property
    def usual(self) -> T:
        """What most have. Raises IndexError where there are no nodes."""
        return self.groups[0][0]

    @property
    def odd(self) -> tuple[tuple[T, tuple[Node, ...]], ...]:
        return self.groups[1:]

    @property
    def odd_names(self) -> tuple[str, ...]:
        return tuple(node.name for _, nodes in self.odd for node in nodes)


def grouped(nodes: Sequence[Node], of: Callable[[Facts], T]) -> Groups[T]:
    """Nodes that answered, by what `of` says of their facts."""
    found: dict[T, list[Node]] = {}
    for node in nodes:
        if node.facts is not None:
            found.setdefault(of(node.facts), []).append(node)
    in_order = sorted(found.items(), key=lambda item: (-len(item[1]), not any(node.head for node in item[1])))
    return Groups(tuple((value, tuple(group)) for value, group in in_order))


@dataclass(frozen=True, slots=True)
class Comparison:
    """All verdicts, in the order in which they are shown."""

    verdicts: tuple[Verdict, ...]

    @property
    def checks(self) -> tuple[Check, ...]:
        return tuple(one.check for one in self.verdicts)

    def odd(self) -> Mapping[str, tuple[str, ...]]:
        """The names of the checks that are not met, by the node that they name; with the level where it is another."""
        found: dict[str, tuple[str, ...]] = {}
        for one in self.verdicts:
            check = one.check
            name = check.name if check.level == LEVEL else f"{check.level}: {check.name}"
            for node in one.nodes:
                found[node] = (*found.get(node, ()), name)
        return found


def compare(nodes: Sequence[Node], address: str) -> Comparison:
    """Nodes that did not answer or have no tree are reported first; the others are compared with each other."""
    there = [node for node in nodes if node.facts is not None]
    with_tree = [node for node in there if node.facts is not None and not node.facts.error]
    return Comparison(
        (
            *(_alone(node) for node in nodes if node.state != "answered" or node not in with_tree),
            *(_joined(node) for node in nodes if node.added),
            *_of_software(with_tree, address),
            *_of_machines(there),
        )
    )


def _alone(node: Node) -> Verdict:
    detail: Phrase | Phrases | str
    fix: Phrase | Phrases | str = NOTHING
    match node.state:
        case "died":
            detail = phrase("left the cluster while it was being asked")
        case "late":
            detail = phrase("gave no answer in time")
            fix = phrase("its raylet may start no worker; see the raylet's log there, or allow more with --wait")
        case "failed":
            detail = phrase("could not answer: {why}", why=node.detail)
        case _:
            assert node.facts is not None
            detail, fix = node.facts.error, node.facts.fix
    return verdict(f"node {node.name}", "fail", detail, fix, nodes=(node.name,))


def _joined(node: Node) -> Verdict:
    return verdict(f"node {node.name}", "warn", phrase("joined while the others were being asked"), nodes=(node.name,))


VARYING = ("RAY_", "SLURM_", "NVIDIA_VISIBLE", "CUDA_VISIBLE", "LOCAL_", "GROUP_", "ROLE_", "OMPI_COMM_WORLD_")
"""What the names of variables begin with that Ray or a launcher sets for each worker."""
_VARYING = ("RANK", "NODE_RANK", "UKY_PATCH_JOB")
_NO_VERSION = "–"


def _of_software(nodes: Sequence[Node], address: str) -> Iterator[Verdict]:
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
    differences = [
        phrase(
            "{nodes}: {files}", nodes=names(group, len(nodes)), files=some(_differing(usual[0].facts.files, group[0]))
        )
        for _, group in groups.odd
    ]
    most = phrase("{count} {count:node|nodes} {count:has|have} {digest}", count=len(usual), digest=groups.usual)
    fix = phrase("send them the same tree with rsync -a, then: uky-patch apply --ray {address}", address=address)
    return verdict("tree", "fail", Phrases((*differences, most)), fix, nodes=groups.odd_names)


def _differing(usual: Mapping[str, str], node: Node) -> list[str]:
    assert node.facts is not None
    found = node.facts.files
    return sorted(path for path in usual.keys() | found.keys() if usual.get(path) != found.get(path))


def _records(nodes: Sequence[Node], address: str) -> Iterator[Verdict]:
    """What is still to be applied; and outcomes that differ, as versions or trees do."""
    pending = [node for node in nodes if node.facts is not None and node.facts.pending]
    if pending:
        groups = grouped(pending, lambda facts: facts.pending)
        differences = [
            phrase("{nodes}: {files}", nodes=names(group, len(nodes)), files=some(ids)) for ids, group in groups.groups
        ]
        detail = phrase("not applied on {what}", what=Phrases(tuple(differences)))
        yield verdict(
            "records", "fail", detail, f"uky-patch apply --ray {address}", nodes=[one.name for one in pending]
        )
        return
    groups = grouped(nodes, _holding)
    if groups.odd:
        differences = [
            phrase("{nodes}: {count} {count:record|records}", nodes=names(group, len(nodes)), count=len(ids))
            for ids, group in groups.groups
        ]
        yield verdict("records", "warn", Phrases(tuple(differences)), nodes=groups.odd_names)
        return
    count = phrase("{count} {count:record|records} {count:holds|hold} on all nodes", count=len(groups.usual))
    yield verdict("records", "ok", count)


def _holding(facts: Facts) -> tuple[str, ...]:
    return tuple(sorted(name for name, kind in facts.records.items() if kind != "not-needed"))


def _node_checks(nodes: Sequence[Node]) -> Iterator[Verdict]:
    """Each check that does not hold somewhere, once, with where; pending records have been reported."""
    found: dict[str, list[tuple[Node, Check]]] = {}
    for node in nodes:
        assert node.facts is not None
        for check in node.facts.checks:
            reported = check.name.removeprefix("record ") in node.facts.pending
            if check.status in ("warn", "fail") and not reported:
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
            differences = [
                phrase("{nodes}: {files}", nodes=names(group, len(nodes)), files=value)
                for value, group in groups.groups[1:]
            ]
            most = phrase("{version} on {count}", version=groups.usual, count=len(groups.groups[0][1]))
            yield verdict(f"version of {name}", "fail", Phrases((*differences, most)), nodes=groups.odd_names)
    if not different:
        yield verdict("versions", "ok", phrase("the same on all {count} nodes", count=len(nodes)))


def _version(facts: Facts, name: str) -> str:
    return facts.python if name == "python" else facts.versions.get(name, _NO_VERSION)


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
        elsewhere = phrase(
            "a worker on {nodes} imports verl from {place}, and not from this tree", nodes=where, place=place
        )
        none = phrase("a worker on {nodes} finds no verl by itself", nodes=where)
        fix = phrase("workers take their environment from the raylet: set PYTHONPATH before ray start, on every node")
        yield verdict("import", "warn", elsewhere if place else none, fix, nodes=[node.name for node in group])


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
            differences = [
                phrase(
                    "{nodes}: {files}",
                    nodes=names(group, len(nodes)),
                    files=phrase("not set") if value is None else value,
                )
                for value, group in groups.groups
            ]
            fix = phrase("workers take their environment from the raylet: set these before ray start, on every node")
            yield verdict(f"variable {name}", "warn", Phrases(tuple(differences)), fix, nodes=groups.odd_names)
    if not different:
        yield verdict(
            "variables",
            "ok",
            phrase("{count} {count:variable|variables} {count:is|are} the same in every worker", count=len(wanted)),
        )


NONE = "–"
SKEW = 1.0
"""Seconds between clocks from which on the logs of several nodes mislead."""
ROOM = 5 << 30
SHM = 1 << 30
"""Bytes that are free at the least: of the disk, of shared memory."""


def _of_machines(nodes: Sequence[Node]) -> Iterator[Verdict]:
    """Of nodes that answered."""
    if nodes:
        yield from _gpus(nodes)
        yield from _clocks(nodes)
        yield from _rooms(nodes)


def gpus(facts: Facts) -> str:
    """`8 x NVIDIA H200`; `–` for none."""
    return ", ".join(f"{count} x {name}" for name, count in sorted(Counter(facts.gpus).items())) or NONE


def _gpus(nodes: Sequence[Node]) -> Iterator[Verdict]:
    groups = grouped(nodes, lambda facts: (gpus(facts), facts.driver))
    if groups.odd:
        differences = [
            phrase("{nodes}: {files}", nodes=names(group, len(nodes)), files=_with_driver(*value))
            for value, group in groups.groups
        ]
        yield verdict("gpus", "warn", Phrases(tuple(differences)), nodes=groups.odd_names)
    else:
        same = phrase("{gpus} on each node", gpus=_with_driver(*groups.usual))
        yield verdict("gpus", "ok", same if groups.usual[0] != NONE else phrase("no node has any"))
    for node in nodes:
        assert node.facts is not None
        if node.facts.gpus and len(node.facts.gpus) != node.gpus:
            counts = {"node": node.name, "ray": node.gpus, "there": len(node.facts.gpus)}
            detail = phrase("{node}: Ray counts {ray} GPUs, nvidia-smi {there}", **counts)
            fix = phrase("ray start --num-gpus, or CUDA_VISIBLE_DEVICES before it")
            yield verdict("gpus of Ray", "warn", detail, fix, nodes=[node.name])


def _with_driver(gpus: str, driver: str) -> Phrase | str:
    return phrase("{gpus}, driver {driver}", gpus=gpus, driver=driver) if driver else gpus


def skews(nodes: Sequence[Node]) -> dict[str, float]:
    """Seconds that each node's clock is ahead of the middle one, by the node's name."""
    ahead = {node.name: node.clock.ahead for node in nodes if node.clock is not None}
    middle = median(ahead.values()) if ahead else 0.0
    return {name: seconds - middle for name, seconds in ahead.items()}


def _clocks(nodes: Sequence[Node]) -> Iterator[Verdict]:
    clocks = {node.name: node.clock for node in nodes if node.clock is not None}
    found = skews(nodes)
    if not found:
        return
    wrong = {name: skew for name, skew in found.items() if abs(skew) > max(SKEW, 2 * clocks[name].uncertain)}
    if wrong:
        offsets = Phrases(
            tuple(phrase("{node}: {seconds} s", node=name, seconds=f"{skew:+.1f}") for name, skew in wrong.items())
        )
        detail = phrase("off the others: {nodes}", nodes=offsets)
        yield verdict("clock", "warn", detail, "chronyc tracking", nodes=wrong)
        return
    most = max(abs(skew) for skew in found.values())
    yield verdict("clock", "ok", phrase("within {seconds} s of each other", seconds=f"{most:.2f}"))


def _rooms(nodes: Sequence[Node]) -> Iterator[Verdict]:
    for name, place, least in (("disk", "tree", ROOM), ("disk of /tmp", "tmp", ROOM), ("shared memory", "shm", SHM)):
        free = {
            node.name: room.free
            for node in nodes
            if node.facts is not None and (room := node.facts.disks.get(place)) is not None and room.free is not None
        }
        if not free:
            continue
        short = {node: there for node, there in free.items() if there < least}
        differences = [
            phrase("{node}: {free} GiB free", node=node, free=f"{there / (1 << 30):.1f}")
            for node, there in short.items()
        ]
        if short:
            yield verdict(name, "warn", Phrases(tuple(differences)), nodes=short)
        else:
            smallest = min(free.values()) / (1 << 30)
            yield verdict(name, "ok", phrase("at least {free} GiB free on each node", free=f"{smallest:.1f}"))
