"""The machines with processes of the job: this one, a host over ssh, or a node of a Ray cluster.

On each of them the agent answers two verbs: `pulse`, how much the processes have used so far, and `stacks`. A `Machine`
differs from another only in how it is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from patcher.errors import UkyError
from patcher.i18n import Phrase, phrase
from patcher.watch.agent.members import Order
from patcher.watch.agent.sampler import Sampler, process_namespace
from patcher.watch.stacks.processes import MachineStacks
from patcher.watch.stacks.read_stacks import read_stacks

if TYPE_CHECKING:
    from patcher.cluster.joining import Cluster
    from patcher.cluster.model import Node
    from patcher.remote.connection import Connection
    from patcher.session.session import Session


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine that has processes of the job."""

    name: str
    order: Order
    """What to watch there."""
    ask: Callable[[str, dict[str, Any]], Any]
    """Has the agent's verb answered there, with these arguments; gives None where the machine is silent."""
    root: str = ""
    """The folder of the tree there, from which its files are shown."""

    def pulse(self, gpus: bool = False) -> Mapping[str, Any]:
        """What the processes have used so far, as the agent's `pulse` answers it. `gpus`: also look at the GPUs."""
        found: Mapping[str, Any] | None = self.ask("pulse", {"order": self.order, "gpus": gpus})
        return found if found is not None else {"processes": [], "gpus": None, "rays": []}

    def stacks(self, native: bool = False) -> MachineStacks:
        """The stack of each process. `native`: also frames of compiled code."""
        found = self.ask("stacks", {"order": self.order, "native": native})
        return read_stacks(found, self.name, self.root) if found is not None else MachineStacks(self.name, [])


def this_machine(name: str, order: Order) -> Machine:
    """This machine. The agent's own code is called in this process."""
    return Machine(name, order, Sampler().ask)


def host_machine(name: str, order: Order, do: Callable[[Callable[[Connection], Any]], Any], root: str = "") -> Machine:
    """A host, where the agent runs the same code. `do` opens the connection again if it breaks."""
    return Machine(name, order, lambda verb, args: do(lambda link: link.channel.ask(verb, **args).values), root)


_BEGIN = 60.0
_LIMITS = {"pulse": 5.0, "stacks": 60.0}
"""Seconds that a node has to start, and to answer each verb. Set by hand."""


def node_machine(cluster: Cluster, node: Node, order: Order, problem: Callable[[Phrase], object]) -> Machine:
    """A node of a Ray cluster. If it does not answer in time, it is left out of that look, and this is reported
    once."""
    silent = False

    def ask(verb: str, args: dict[str, Any]) -> Any:
        nonlocal silent
        found = cluster.see(Sampler, verb, args, _LIMITS[verb], only=[node.id])
        if node.id not in found and not silent:
            problem(phrase("{node} gives no answer: it is watched without", node=node.name))
        silent = node.id not in found
        return None if silent else found[node.id][1]

    return Machine(node.name, order, ask)


def other_nodes(
    session: Session, address: str, mark: str | None, problem: Callable[[Phrase], object], stack: ExitStack
) -> tuple[str, list[Machine]]:
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
    return cluster.gcs, [node_machine(cluster, node, order, problem) for node in others.values()]
