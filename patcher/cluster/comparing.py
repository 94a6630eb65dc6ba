"""Compare what the nodes of a cluster say of themselves: one check for each thing that should be alike on all.

A failed check names the nodes that differ from the largest group. Nobody says which group is right.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePath
from statistics import median
from typing import Generic, TypeVar

from patcher.checks import Check, Status
from patcher.cluster.model import Facts, Node
from patcher.i18n import NOTHING, Phrase, Phrases, phrase

LEVEL = "nodes"
"""The level of these checks, beside those of the preflight."""
NAMED = 3
"""How many nodes or files are named; of the others only the number is shown. A guess at what fits on a line."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A check, and the nodes that it is about."""

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
    """A verdict of this level. `fix` says what to do; `nodes` are the names of those that do not meet the check."""
    return Verdict(Check(name, LEVEL, status, 0.0, detail, fix), tuple(nodes))


def names(nodes: Sequence[Node], of: int) -> Phrase | str:
    """The names of these nodes; `all 8 nodes` where they are all `of` the cluster."""
    if len(nodes) == of > 1:
        return phrase("all {count} nodes", count=of)
    return some([node.name for node in nodes])


def some(things: Sequence[str]) -> Phrase | str:
    """`a, b, c and 5 more`."""
    if len(things) <= NAMED + 1:
        return ", ".join(things)
    return phrase("{some} and {count} more", some=", ".join(things[:NAMED]), count=len(things) - NAMED)


T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Groups(Generic[T]):
    """Nodes by a value that they have: the largest group first, of equal ones that with the cluster's head."""

    groups: tuple[tuple[T, tuple[Node, ...]], ...]

    @property
    def usual(self) -> T:
        """The value that most have. Raises IndexError where there are no nodes."""
        return self.groups[0][0]

    @property
    def odd(self) -> tuple[tuple[T, tuple[Node, ...]], ...]:
        """The groups with another value."""
        return self.groups[1:]

    @property
    def odd_names(self) -> tuple[str, ...]:
        return tuple(node.name for _, nodes in self.odd for node in nodes)


def grouped(nodes: Sequence[Node], of: Callable[[Facts], T]) -> Groups[T]:
    """The nodes that answered, grouped by what `of` gives for their facts."""
    found: dict[T, list[Node]] = {}
    for node in nodes:
        if node.facts is not None:
            found.setdefault(of(node.facts), []).append(node)
    in_order = sorted(found.items(), key=lambda item: (-len(item[1]), not any(node.head for node in item[1])))
    return Groups(tuple((value, tuple(group)) for value, group in in_order))


def _by_group(
    groups: Iterable[tuple[T, tuple[Node, ...]]], of: int, shown: Callable[[T], Phrase | str]
) -> tuple[Phrase, ...]:
    """`n1, n2: 0.20.2` for each group: its nodes, `of` so many in all, and its value as `shown` writes it."""
    return tuple(phrase("{nodes}: {files}", nodes=names(group, of), files=shown(value)) for value, group in groups)


@dataclass(frozen=True, slots=True)
class Comparison:
    """All verdicts, in the order in which they are shown."""

    verdicts: tuple[Verdict, ...]

    @property
    def checks(self) -> tuple[Check, ...]:
        return tuple(one.check for one in self.verdicts)

    def odd(self) -> Mapping[str, tuple[str, ...]]:
        """By node, the names of the checks that it does not meet; `LEVEL: NAME` for one of another level than ours."""
        found: dict[str, tuple[str, ...]] = {}
        for one in self.verdicts:
            check = one.check
            name = check.name if check.level == LEVEL else f"{check.level}: {check.name}"
            for node in one.nodes:
                found[node] = (*found.get(node, ()), name)
        return found


def compare(nodes: Sequence[Node], address: str) -> Comparison:
    """Compare the nodes of the cluster at `address`, which is part of commands that are proposed.

    Nodes that did not answer or have no tree are reported first; only the others are compared with each other.
    """
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
    """Why a node is not compared."""
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


_VARYING = ("RAY_", "SLURM_", "NVIDIA_VISIBLE", "CUDA_VISIBLE", "LOCAL_", "GROUP_", "ROLE_", "OMPI_COMM_WORLD_")
_VARYING_NAMES = ("RANK", "NODE_RANK", "UKY_PATCH_JOB")
"""Variables that Ray or a launcher sets for each worker, so that they differ from node to node: by the beginnings of
their names, and by their names."""
_NONE = "–"
"""Stands for a package that is not installed, and for no GPU."""


def _of_software(nodes: Sequence[Node], address: str) -> Iterator[Verdict]:
    """Verdicts on trees, records, packages and variables, for nodes with a tree."""
    if nodes:
        yield _trees(nodes, address)
        yield from _records(nodes, address)
        yield from _node_checks(nodes)
        yield from _versions(nodes)
        yield from _imports(nodes)
        yield from _variables(nodes)


def tree_digest(facts: Facts) -> str:
    """One digest over the files of a tree, of 12 hexadecimal digits: short enough to be compared by eye."""
    return hashlib.sha256(repr(sorted(facts.files.items())).encode()).hexdigest()[:12]


def _trees(nodes: Sequence[Node], address: str) -> Verdict:
    groups = grouped(nodes, tree_digest)
    if not groups.odd:
        same = phrase("the same on all {count} nodes: {digest}", count=len(nodes), digest=groups.usual)
        return verdict("tree", "ok", same)
    usual = groups.groups[0][1]
    assert usual[0].facts is not None
    differing = [(tuple(_differing(usual[0].facts.files, group[0])), group) for _, group in groups.odd]
    most = phrase("{count} {count:node|nodes} {count:has|have} {digest}", count=len(usual), digest=groups.usual)
    fix = phrase("send them the same tree with rsync -a, then: uky-patch apply --ray {address}", address=address)
    detail = Phrases((*_by_group(differing, len(nodes), some), most))
    return verdict("tree", "fail", detail, fix, nodes=groups.odd_names)


def _differing(usual: Mapping[str, str], node: Node) -> list[str]:
    """The files that a node has otherwise than usual, or that only one of them has."""
    assert node.facts is not None
    found = node.facts.files
    return sorted(path for path in usual.keys() | found.keys() if usual.get(path) != found.get(path))


def _records(nodes: Sequence[Node], address: str) -> Iterator[Verdict]:
    """Records that are still to be applied somewhere; else whether the same ones hold on all nodes."""
    pending = [node for node in nodes if node.facts is not None and node.facts.pending]
    if pending:
        groups = grouped(pending, lambda facts: facts.pending)
        detail = phrase("not applied on {what}", what=Phrases(_by_group(groups.groups, len(nodes), some)))
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
    """The records that are needed on a node; none of them is pending where this is asked."""
    return tuple(sorted(name for name, kind in facts.records.items() if kind != "not-needed"))


def _node_checks(nodes: Sequence[Node]) -> Iterator[Verdict]:
    """Each check of the nodes' own levels that fails somewhere, once, with the nodes. Of several details the first is
    shown. Pending records have been reported before.
    """
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
        groups = grouped(nodes, partial(_version, name=name))
        if groups.odd:
            different.append(name)
            most = phrase("{version} on {count}", version=groups.usual, count=len(groups.groups[0][1]))
            detail = Phrases((*_by_group(groups.odd, len(nodes), str), most))
            yield verdict(f"version of {name}", "fail", detail, nodes=groups.odd_names)
    if not different:
        yield verdict("versions", "ok", phrase("the same on all {count} nodes", count=len(nodes)))


def _version(facts: Facts, name: str) -> str:
    return facts.python if name == "python" else facts.versions.get(name, _NONE)


def _imports(nodes: Sequence[Node]) -> Iterator[Verdict]:
    """Nodes whose workers import another verl than that of the tree which the checks are about."""
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
    """The folder of a worker's verl; empty where it has none, None where it is this tree's."""
    if facts.imported is None:
        return ""
    ours = PurePath(facts.root or "/") / "verl"
    return None if PurePath(facts.imported) == ours else facts.imported


def _variables(nodes: Sequence[Node]) -> Iterator[Verdict]:
    every = {name for node in nodes if node.facts is not None for name in node.facts.variables}
    wanted = sorted(name for name in every if not name.startswith(_VARYING) and name not in _VARYING_NAMES)
    different = []
    for name in wanted:
        groups = grouped(nodes, partial(_variable, name=name))
        if groups.odd:
            different.append(name)
            detail = Phrases(_by_group(groups.groups, len(nodes), _or_not_set))
            fix = phrase("workers take their environment from the raylet: set these before ray start, on every node")
            yield verdict(f"variable {name}", "warn", detail, fix, nodes=groups.odd_names)
    if not different:
        yield verdict(
            "variables",
            "ok",
            phrase("{count} {count:variable|variables} {count:is|are} the same in every worker", count=len(wanted)),
        )


def _variable(facts: Facts, name: str) -> str | None:
    return facts.variables.get(name)


def _or_not_set(value: str | None) -> Phrase | str:
    return phrase("not set") if value is None else value


SKEW = 1.0
"""Seconds between clocks from which on the logs of several nodes mislead. A guess."""
ROOM = 5 << 30
SHM = 1 << 30
"""Bytes that should be free at the least, of a disk and of /dev/shm. A guess."""


def _of_machines(nodes: Sequence[Node]) -> Iterator[Verdict]:
    """Verdicts on GPUs, clocks and disks, for nodes that answered."""
    if nodes:
        yield from _gpus(nodes)
        yield from _clocks(nodes)
        yield from _rooms(nodes)


def gpus(facts: Facts) -> str:
    """`8 x NVIDIA H200`; `–` for none."""
    return ", ".join(f"{count} x {name}" for name, count in sorted(Counter(facts.gpus).items())) or _NONE


def _gpus(nodes: Sequence[Node]) -> Iterator[Verdict]:
    groups = grouped(nodes, lambda facts: (gpus(facts), facts.driver))
    if groups.odd:
        detail = Phrases(_by_group(groups.groups, len(nodes), lambda value: _with_driver(*value)))
        yield verdict("gpus", "warn", detail, nodes=groups.odd_names)
    else:
        same = phrase("{gpus} on each node", gpus=_with_driver(*groups.usual))
        yield verdict("gpus", "ok", same if groups.usual[0] != _NONE else phrase("no node has any"))
    for node in nodes:
        assert node.facts is not None
        if node.facts.gpus and len(node.facts.gpus) != node.gpus:
            counts = {"node": node.name, "ray": node.gpus, "there": len(node.facts.gpus)}
            miscounted = phrase("{node}: Ray counts {ray} GPUs, nvidia-smi {there}", **counts)
            fix = phrase("ray start --num-gpus, or CUDA_VISIBLE_DEVICES before it")
            yield verdict("gpus of Ray", "warn", miscounted, fix, nodes=[node.name])


def _with_driver(gpus: str, driver: str) -> Phrase | str:
    return phrase("{gpus}, driver {driver}", gpus=gpus, driver=driver) if driver else gpus


def skews(nodes: Sequence[Node]) -> dict[str, float]:
    """By node's name, the seconds that its clock is ahead of the median: this machine's own clock may be wrong."""
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
