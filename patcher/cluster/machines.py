"""GPUs, clocks and room of the nodes, held against each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median

from patcher.cluster.majority import grouped
from patcher.cluster.model import Facts, Node
from patcher.cluster.verdicts import Verdict, names, verdict
from patcher.i18n import Phrase, Phrases, phrase

NONE = "–"
SKEW = 1.0
"""Seconds between clocks from which on the logs of several nodes mislead."""
ROOM = 5 << 30
SHM = 1 << 30
"""Bytes that are free at the least: of the disk, of shared memory."""


def verdicts(nodes: Sequence[Node]) -> Iterator[Verdict]:
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
        told = [
            phrase("{nodes}: {files}", nodes=names(group, len(nodes)), files=_with_driver(*value))
            for value, group in groups.groups
        ]
        yield verdict("gpus", "warn", Phrases(tuple(told)), nodes=groups.odd_names)
    else:
        same = phrase("{gpus} on each node", gpus=_with_driver(*groups.usual))
        yield verdict("gpus", "ok", same if groups.usual[0] != NONE else phrase("no node has any"))
    for node in nodes:
        assert node.facts is not None
        if node.facts.gpus and len(node.facts.gpus) != node.gpus:
            told_by = {"node": node.name, "ray": node.gpus, "there": len(node.facts.gpus)}
            detail = phrase("{node}: Ray counts {ray} GPUs, nvidia-smi {there}", **told_by)
            fix = phrase("ray start --num-gpus, or CUDA_VISIBLE_DEVICES before it")
            yield verdict("gpus of Ray", "warn", detail, fix, nodes=[node.name])


def _with_driver(told: str, driver: str) -> Phrase | str:
    return phrase("{gpus}, driver {driver}", gpus=told, driver=driver) if driver else told


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
        told = Phrases(
            tuple(phrase("{node}: {seconds} s", node=name, seconds=f"{skew:+.1f}") for name, skew in wrong.items())
        )
        detail = phrase("off the others: {nodes}", nodes=told)
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
        told = [
            phrase("{node}: {free} GiB free", node=node, free=f"{there / (1 << 30):.1f}")
            for node, there in short.items()
        ]
        if short:
            yield verdict(name, "warn", Phrases(tuple(told)), nodes=short)
        else:
            smallest = min(free.values()) / (1 << 30)
            yield verdict(name, "ok", phrase("at least {free} GiB free on each node", free=f"{smallest:.1f}"))
