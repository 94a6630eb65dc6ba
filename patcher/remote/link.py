"""The connection of one command to a host, with the tree's folder open on it, and the tree's lock if it needs that.

After a cut all three are opened anew (`HostLink.reconnect`).
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from patcher.errors import UsageError
from patcher.i18n import phrase
from patcher.remote.connection import Connection, connect

if TYPE_CHECKING:
    from pathlib import Path

    from patcher.remote.host import Host
    from patcher.remote.survey import TreeFolder


_PATIENCE = 2.0
"""Seconds that the end of a command waits for a login that nobody needs any more. A guess."""


class HostLink:
    """One host, and the connection that is open to it now. Nothing is opened before `connect` or `open`."""

    def __init__(self, host: Host, folder_name: str, purpose: str | None = None) -> None:
        """`folder_name` is what the tree's folder is called in the home on the host, unless the host names a path.

        With a `purpose`, such as "migrate", the tree is locked for as long as a connection lasts; others who want it
        are shown that word.
        """
        self.host = host
        self.folder_name = folder_name
        self._purpose = purpose
        self._stack = ExitStack()
        self._connection: Connection | None = None
        self._folder: TreeFolder | None = None
        self._opening: _Opening | None = None

    @property
    def connection(self) -> Connection:
        """The connection that is open now; a mistake to ask for before `connect`."""
        assert self._connection is not None
        return self._connection

    def begin(self) -> None:
        """Begin to connect in a thread; the next `connect` waits for that, and raises what it has raised.

        Worth it because ssh waits some 0.2 s for the other side at a login, in which the caller can do other work.
        """
        self.close()
        self._opening = _begun_early(self.host) or _Opening(self.host)

    def connect(self) -> None:
        """Open a connection in place of the present one, or take the one that `begin` has begun.

        Raises what `patcher.remote.connection.connect` raises.
        """
        if self._opening is not None:
            self._opening.wait()  # Interrupted here, it still stands in `_opening`, and `close` ends it.
            opening, self._opening = self._opening, None
            self._connection = self._stack.enter_context(opening.opened())
            return
        self.close()
        self._connection = self._stack.enter_context(connect(self.host))

    def open(self) -> tuple[Connection, TreeFolder]:
        """Connect, and open the tree's folder. Raises what `connect` and `open_folder` raise."""
        self.connect()
        return self.connection, self.open_folder()

    def open_folder(self) -> TreeFolder:
        """Open the tree's folder on the host. Raises HostError and UsageError as `open_tree_folder` does."""
        from patcher.remote.tree_folder import open_tree_folder  # Loaded while ssh logs in.

        self._folder = open_tree_folder(self.connection, self.folder_name, self._purpose)
        return self._folder

    def reconnect(self) -> Connection:
        """Open a new connection in place of one that was cut, and the folder again if it was open."""
        self.connect()
        if self._folder is not None:
            self.open_folder()
        return self.connection

    @contextmanager
    def locked(self, purpose: str) -> Iterator[None]:
        """Lock the tree on the connection that is open, until the block ends; after an error, until that closes."""
        from patcher.remote.tree_folder import open_tree_folder

        open_tree_folder(self.connection, self.folder_name, purpose)
        yield
        open_tree_folder(self.connection, self.folder_name, None)

    @property
    def has_files(self) -> bool:
        """Whether the tree's folder, which is open, had anything in it; a new one has not."""
        assert self._folder is not None
        return not self._folder.empty

    def note_tree_received(self) -> None:
        """Take down that a migration has put a tree into the folder, without asking the host again."""
        assert self._folder is not None
        self._folder = replace(self._folder, exists=True, empty=False, manifest=True)

    def require_tree(self, *, migrated: bool = False) -> None:
        """Raise UsageError if there is no tree in the folder; with `migrated`, if no migration brought one there."""
        if self._folder is None or not (self._folder.manifest if migrated else self._folder.tree):
            raise UsageError(
                phrase("{host}: the tree is not there yet", host=self.host.name),
                advice=phrase("Run it from the beginning: uky-patch migrate {host}", host=self.host.name),
            )

    def hang_up(self) -> None:
        """Ask for nothing more, so that the agent ends while the caller goes on; `close` still waits for its end."""
        if self._connection is not None:
            self._connection.channel.hang_up()

    def close(self) -> None:
        """Close the connection, which releases the lock."""
        opening, self._opening = self._opening, None
        if opening is not None:
            opening.abandon()
        self._stack.close()
        self._connection = None


class _Opening:
    """A connection that a thread opens while the command goes on."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._stack = ExitStack()
        self._connection: Connection | None = None
        self._error: BaseException | None = None
        self._abandoned = threading.Event()
        # A daemon: an interrupted command does not wait for a host that does not answer.
        self._thread = threading.Thread(target=self._open, name="connect", daemon=True)
        self._thread.start()

    def _open(self) -> None:
        try:
            self._connection = self._stack.enter_context(connect(self.host))
        except BaseException as error:
            self._error = error
        if self._abandoned.is_set():  # `abandon` may have stopped waiting, so nobody else closes it.
            self._stack.close()

    def wait(self) -> None:
        """Wait until the connection is open, or has failed."""
        self._thread.join()

    @contextmanager
    def opened(self) -> Iterator[Connection]:
        """The open connection; it is closed at the end. Raises what `connect` has raised in the thread."""
        with self._stack:
            if self._error is not None:
                raise self._error
            assert self._connection is not None
            yield self._connection

    def abandon(self) -> None:
        """Close the connection. Where the login takes longer than `_PATIENCE`, its thread closes it afterwards."""
        self._abandoned.set()
        self._thread.join(_PATIENCE)
        if not self._thread.is_alive():
            self._stack.close()


_EARLY: list[_Opening] = []
"""The connection that was begun before there was a link for it, if any."""


def begin_early(host: Host) -> None:
    """Begin to connect before there is a link; the next `HostLink.begin` takes the connection if its host is equal."""
    _EARLY.append(_Opening(host))
    atexit.register(_begun_early, None)


def _begun_early(host: Host | None) -> _Opening | None:
    """The connection to this very host that was begun early. One to another host is closed."""
    found = None
    while _EARLY:
        opening = _EARLY.pop()
        if opening.host == host:
            found = opening
        else:
            opening.abandon()
    return found


@contextmanager
def linked(host: Host, root: Path, purpose: str | None = None) -> Iterator[HostLink]:
    """A link to a host's copy of the tree at `root` here; for this machine, to that tree itself. Closed at the end."""
    link = HostLink(replace(host, path=str(root)) if host.here else host, root.name, purpose)
    try:
        yield link
    finally:
        link.close()
