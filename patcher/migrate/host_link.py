"""The connection of a migration to its host. After a cut it is opened anew, and the tree's folder is locked again."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from types import TracebackType

from patcher.errors import UsageError
from patcher.i18n import phrase
from patcher.remote.connection import Connection, connect
from patcher.remote.host import Host
from patcher.remote.survey import TreeFolder
from patcher.remote.tree_folder import open_tree_folder


class HostLink:
    """A context manager; on leaving it the connection is closed, and the folder's lock is released."""

    def __init__(self, host: Host, folder_name: str, purpose: str | None) -> None:
        """`folder_name` and `purpose` are those of `open_tree_folder`. Nothing is opened yet."""
        self._host = host
        self._folder_name = folder_name
        self._purpose = purpose
        self._stack = ExitStack()
        self._connection: Connection | None = None
        self._folder: TreeFolder | None = None

    def __enter__(self) -> HostLink:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._stack.close()

    @property
    def connection(self) -> Connection:
        """The connection that is open now."""
        assert self._connection is not None
        return self._connection

    def connect(self) -> None:
        """Open the connection. Raises what `patcher.remote.connection.connect` raises."""
        self._connection = self._stack.enter_context(connect(self._host))

    def reconnect(self) -> Connection:
        """Open a new connection in place of one that was cut, and the folder again if it was open."""
        self._stack.close()
        self.connect()
        if self._folder is not None:
            self.open_folder()
        return self.connection

    def open_folder(self) -> TreeFolder:
        """Open the tree's folder on the host. Raises what `open_tree_folder` raises."""
        self._folder = open_tree_folder(self.connection, self._folder_name, self._purpose)
        return self._folder

    def note_tree_received(self) -> None:
        """From now on a tree is in the folder."""
        assert self._folder is not None
        self._folder = replace(self._folder, exists=True, empty=False, manifest=True)

    def require_tree(self) -> None:
        """Raise UsageError if no migration has brought a tree to the host yet: a later step has nothing to work on."""
        if self._folder is None or not self._folder.manifest:
            raise UsageError(
                phrase("{host}: the tree is not there yet", host=self._host.name),
                advice=phrase("Run it from the beginning: uky-patch migrate {host}", host=self._host.name),
            )
