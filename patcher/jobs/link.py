"""The tree on a host, open on a connection that can be opened anew."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from patcher.remote.connection import Connection, connect
from patcher.remote.tree_folder import open_tree_folder

if TYPE_CHECKING:
    from pathlib import Path

    from patcher.remote.host import Host
    from patcher.remote.survey import TreeFolder


@dataclass(slots=True)
class Link:
    """`connection` is the one that is open, `place` the tree's folder."""

    host: Host
    name: str
    """What the folder is called in the home, where the host names no path."""
    connection: Connection | None = None
    _stack: ExitStack = field(default_factory=ExitStack)

    def open(self, purpose: str | None = None) -> tuple[Connection, TreeFolder]:
        """Close the connection that there was, and open one. With a purpose the tree is locked for as long as it lasts.

        Raises HostError, UsageError as `open_tree_folder` does.
        """
        self._stack.close()
        self.connection = None
        connection = self.connection = self._stack.enter_context(connect(self.host))
        return connection, open_tree_folder(connection, self.name, purpose)

    def again(self) -> Connection:
        """The same without a lock, for reading on."""
        return self.open()[0]

    def close(self) -> None:
        self._stack.close()


@contextlib.contextmanager
def linked(host: Host, root: Path) -> Iterator[Link]:
    """A link to the tree that is at `root` here; on this machine to that very folder."""
    link = Link(replace(host, path=str(root)) if host.here else host, root.name)
    try:
        yield link
    finally:
        link.close()
