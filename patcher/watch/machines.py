"""The machines with processes of the job: this one, a host over ssh, or a node of a Ray cluster.

Each is a `Machine`, which answers two questions: how much the processes have used so far (`pulse`), and their stacks.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from patcher.errors import UkyError
from patcher.i18n import Phrase, phrase
from patcher.watch.agent.members import Members, Order
from patcher.watch.agent.sampler import Sampler, UsageMeter, process_namespace
from patcher.watch.agent.stacks import take_stacks
from patcher.watch.stacks.processes import MachineStacks
from patcher.watch.stacks.read_stacks import read_stacks

if TYPE_CHECKING:
    from patcher.cluster.joining import Cluster
    from patcher.cluster.model import Node
    from patcher.remote.connection import Connection
    from patcher.session.session import Session

T = TypeVar("T")


class Machine(Protocol):
    """A machine that has processes of the job."""

    name: str

    def pulse(self, gpus: bool = False) -> Mapping[str, Any]:
        """What the processes have used so far, as the agent's `pulse` answers it. `gpus`: also look at the GPUs."""

    def stacks(self, native: bool = False) -> MachineStacks:
        """The stack of each process. `native`: also frames of compiled code."""


class ThisMachine:
    """This machine. The agent's own code is called in this process."""

    def __init__(self, order: Order, name: str, root: str = "") -> None:
        self.name = name
        self._root = root
        self._order = {"folders": [str(Path(sys.executable).parent)], **order}
        self.members = Members(self._order)
        self._meter = UsageMeter(self.members)

    def pulse(self, gpus: bool = False) -> Mapping[str, Any]:
        return self._meter.look(gpus)

    def stacks(self, native: bool = False) -> MachineStacks:
        return read_stacks(take_stacks(self.members, self._order, native), self.name, self._root)


class HostMachine:
    """A host, where the agent runs the same code. If the connection breaks, it is opened again."""

    def __init__(
        self, name: str, order: Order, do: Callable[[Callable[[Connection], Any]], Any], root: str = ""
    ) -> None:
        self.name = name
        self._order = order
        self._do = do
        self._root = root

    def pulse(self, gpus: bool = False) -> Mapping[str, Any]:
        return dict(self._do(lambda link: link.channel.ask("pulse", order=self._order, gpus=gpus).values))

    def stacks(self, native: bool = False) -> MachineStacks:
        answer = self._do(lambda link: link.channel.ask("stacks", order=self._order, native=native).values)
        return read_stacks(answer, self.name, self._root)


_BEGIN, _PULSE, _STACKS = 60.0, 5.0, 60.0
"""Seconds that a node has to start, to answer `pulse`, and to answer `stacks`. Set by hand."""


class NodeMachine:
    """A node of a Ray cluster. If it does not answer in time, it is left out of that look, and this is reported
    once."""

    def __init__(self, cluster: Cluster, node: Node, order: Order, problem: Callable[[Phrase], object]) -> None:
        self.name = node.name
        self._cluster, self._node, self._order, self._trouble = cluster, node, order, problem
        self._silent = False

    def pulse(self, gpus: bool = False) -> Mapping[str, Any]:
        answer = self._ask("pulse", _PULSE, gpus=gpus)
        return answer if answer is not None else {"processes": [], "gpus": None, "rays": []}

    def stacks(self, native: bool = False) -> MachineStacks:
        answer = self._ask("stacks", _STACKS, native=native)
        return read_stacks(answer, self.name) if answer is not None else MachineStacks(self.name, [], [], None)

    def _ask(self, verb: str, limit: float, **args: Any) -> Any:
        found = self._cluster.see(Sampler, verb, {"order": self._order, **args}, limit, only=[self._node.id])
        if self._node.id in found:
            self._silent = False
            return found[self._node.id][1]
        if not self._silent:
            self._silent = True
            self._trouble(phrase("{node} gives no answer: it is watched without", node=self.name))
        return None


def other_nodes(
    session: Session, address: str, mark: str | None, problem: Callable[[Phrase], object], stack: ExitStack
) -> tuple[str, list[NodeMachine]]:
    """The address of the cluster as its raylets have it, and its nodes whose processes are not visible from this
    machine.

    The nodes can be asked until `stack` is closed. If the cluster cannot be joined, this is reported, and there are no
    nodes.

    Args:
        mark: the id of the job, if there is one. Processes of the job are found by it.
        problem: called with what goes wrong.
    """
    from patcher.cluster.joining import joined
    from patcher.cluster.nodes import interpreter

    try:
        cluster = stack.enter_context(joined(address, interpreter(session)))
        found = cluster.see(Sampler, "where", {}, _BEGIN)
    except UkyError as error:
        problem(phrase("other nodes are not looked at: {why}", why=error.title))
        return address, []
    for name, node in cluster.looked_at.items():
        if name not in found:
            problem(phrase("{node} gives no answer: it is watched without", node=node.name))
    order = {"ray": cluster.gcs, "mark": mark}
    others = {place: node for node, place in found.values() if place != process_namespace()}
    kept = {node.id for node in others.values()}
    cluster.see(Sampler, "where", {}, _BEGIN, only=[], leave=[name for name in found if name not in kept])
    return cluster.gcs, [NodeMachine(cluster, node, order, problem) for node in others.values()]
