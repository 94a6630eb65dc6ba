"""What the nodes say, held against each other: one check for each thing that should be alike, the odd ones named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from patcher.checks import Check
from patcher.cluster import machines, software
from patcher.cluster.model import Node
from patcher.cluster.verdicts import LEVEL, Verdict, verdict
from patcher.i18n import NOTHING, Phrase, Phrases, phrase


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
    """Nodes that did not answer or have no tree are told first; the others are compared with each other."""
    there = [node for node in nodes if node.facts is not None]
    with_tree = [node for node in there if node.facts is not None and not node.facts.error]
    return Comparison(
        (
            *(_alone(node) for node in nodes if node.state != "answered" or node not in with_tree),
            *(_joined(node) for node in nodes if node.added),
            *software.verdicts(with_tree, address),
            *machines.verdicts(there),
        )
    )


def _alone(node: Node) -> Verdict:
    told: Phrase | Phrases | str
    fix: Phrase | Phrases | str = NOTHING
    match node.state:
        case "died":
            told = phrase("left the cluster while it was being asked")
        case "late":
            told = phrase("gave no answer in time")
            fix = phrase("its raylet may start no worker; see the raylet's log there, or allow more with --wait")
        case "failed":
            told = phrase("could not answer: {why}", why=node.detail)
        case _:
            assert node.facts is not None
            told, fix = node.facts.error, node.facts.fix
    return verdict(f"node {node.name}", "fail", told, fix, nodes=(node.name,))


def _joined(node: Node) -> Verdict:
    return verdict(f"node {node.name}", "warn", phrase("joined while the others were being asked"), nodes=(node.name,))
