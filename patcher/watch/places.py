"""Where the processes of a job are: this machine, or a host at the other end of a connection."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from patcher.watch.agent.finding import Members, Order
from patcher.watch.agent.pulse import Watch
from patcher.watch.agent.taking import take
from patcher.watch.stacks.model import Taken
from patcher.watch.stacks.reading import taken

if TYPE_CHECKING:
    from patcher.remote.connection import Connection

T = TypeVar("T")


class Place(Protocol):
    """A machine that has processes of the job. What a cluster's other nodes are reached by is another one of these."""

    name: str

    def pulse(self, gpus: bool = False) -> Mapping[str, Any]:
        """What they have used so far, as the agent's `pulse` tells it."""

    def stacks(self, native: bool = False) -> Taken:
        """Where each of them stands."""


class Here:
    """This machine: the agent's own code, called in this process."""

    def __init__(self, order: Order, name: str, root: str = "") -> None:
        self.name = name
        self._root = root
        self._order = {"folders": [str(Path(sys.executable).parent)], **order}
        self.members = Members(self._order)
        self._watch = Watch(self.members)

    def pulse(self, gpus: bool = False) -> Mapping[str, Any]:
        return self._watch.look(gpus)

    def stacks(self, native: bool = False) -> Taken:
        return taken(take(self.members, self._order, native), self.name, self._root)


class There:
    """A host: the same code, asked over a connection that is opened anew where it is cut."""

    def __init__(
        self, name: str, order: Order, do: Callable[[Callable[[Connection], Any]], Any], root: str = ""
    ) -> None:
        self.name = name
        self._order = order
        self._do = do
        self._root = root

    def pulse(self, gpus: bool = False) -> Mapping[str, Any]:
        return dict(self._do(lambda link: link.channel.ask("pulse", order=self._order, gpus=gpus).values))

    def stacks(self, native: bool = False) -> Taken:
        told = self._do(lambda link: link.channel.ask("stacks", order=self._order, native=native).values)
        return taken(told, self.name, self._root)
