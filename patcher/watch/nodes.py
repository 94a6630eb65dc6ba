"""The other nodes of a Ray cluster as places: an actor on each looks at the cluster's processes there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from patcher.errors import UkyError
from patcher.i18n import Phrase, phrase
from patcher.watch.agent.eye import where
from patcher.watch.agent.finding import Order
from patcher.watch.stacks.model import Taken
from patcher.watch.stacks.reading import taken

if TYPE_CHECKING:
    from patcher.cluster.asking import Cluster
    from patcher.cluster.model import Node
    from patcher.session.session import Session

_BEGIN, _PULSE, _STACKS = 60.0, 5.0, 60.0
"""Seconds that a node has to begin, to say what its processes have used, and where they stand."""


class OnNode:
    """One node. What it does not answer in time is left out, and told once."""

    def __init__(self, cluster: Cluster, node: Node, order: Order, trouble: Callable[[Phrase], object]) -> None:
        self.name = node.name
        self._cluster, self._node, self._order, self._trouble = cluster, node, order, trouble
        self._silent = False

    def pulse(self, gpus: bool = False) -> Mapping[str, Any]:
        told = self._ask("pulse", _PULSE, gpus=gpus)
        return told if told is not None else {"processes": [], "gpus": None, "rays": []}

    def stacks(self, native: bool = False) -> Taken:
        told = self._ask("stacks", _STACKS, native=native)
        return taken(told, self.name) if told is not None else Taken(self.name, [], [], None)

    def _ask(self, verb: str, limit: float, **args: Any) -> Any:
        found = self._cluster.see(verb, {"order": self._order, **args}, limit, only=[self._node.id])
        if self._node.id in found:
            self._silent = False
            return found[self._node.id][1]
        if not self._silent:
            self._silent = True
            self._trouble(phrase("{node} gives no answer: it is watched without", node=self.name))
        return None


def other_nodes(
    session: Session, address: str, mark: str | None, trouble: Callable[[Phrase], object], stack: ExitStack
) -> tuple[str, list[OnNode]]:
    """The cluster's address as its raylets say it, and the nodes that see other processes than this machine does.

    Good until `stack` is closed. Where the cluster cannot be joined that is told, and there are no nodes. `mark` is
    the job's id, if there is one.
    """
    from patcher.cluster.asking import joined
    from patcher.cluster.nodes import interpreter

    try:
        cluster = stack.enter_context(joined(address, interpreter(session), b""))
        found = cluster.see("where", {}, _BEGIN)
    except UkyError as error:
        trouble(phrase("other nodes are not looked at: {why}", why=error.title))
        return address, []
    for name, node in cluster.looked_at.items():
        if name not in found:
            trouble(phrase("{node} gives no answer: it is watched without", node=node.name))
    order = {"ray": cluster.gcs, "mark": mark}
    others = {place: node for node, place in found.values() if place != where()}
    kept = {node.id for node in others.values()}
    cluster.see("where", {}, _BEGIN, only=[], leave=[name for name in found if name not in kept])
    return cluster.gcs, [OnNode(cluster, node, order, trouble) for node in others.values()]
