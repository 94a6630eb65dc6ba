"""Send to the host what it lacks of a payload, and put it into the tree there, all files together.

Files are sent with rsync if both machines have it and the amount is worth its start, else as tar archives over the
open connection. The agent checks the digest of every file before it changes the tree.
"""

from __future__ import annotations

import errno
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from patcher.errors import HostError, TreeError, UkyError
from patcher.i18n import Phrase, phrase
from patcher.migrate import rsync, tar
from patcher.migrate.listing import Item
from patcher.migrate.payload import Payload
from patcher.migrate.wording import first_paths
from patcher.profiles.rendered_file import Text
from patcher.remote.channel import Answer, RefusedError
from patcher.remote.connection import Connection
from patcher.worktree import hashing
from patcher.worktree.manifest import pack

Progress: TypeAlias = Callable[[Phrase | str, int, int | None], None]
"""Called with what is being done, the bytes of content that have arrived, and the bytes in all."""
SLOW = 0.005
"""Seconds of a round trip from which on a line counts as slow, so that compression is worth its time. A guess between
what was seen: below 1 ms within a cluster, 10 ms over the internet."""
LITTLE = 256 << 10
"""Bytes up to which rsync is not started. A guess: its start takes some round trips, longer than sending so few."""

RSYNC_INTERRUPTED = 20
"""The exit code of rsync after a signal (rsync's manual, EXIT VALUES)."""


@dataclass(frozen=True, slots=True)
class Difference:
    """How the tree on the host differs from the payload. Paths are below the tree's root."""

    send: tuple[str, ...]
    """Files that are missing there or have another content."""
    same: int
    """How many files are there already, byte for byte."""
    retire: tuple[str, ...] = ()
    """Files that the last migration brought and that are not in the payload: they will be moved aside."""
    overwritten: tuple[str, ...] = ()
    """Those of `send` and `retire` that were changed on the host since the last migration, or that none brought."""
    removed: tuple[str, ...] = ()
    """Those of `send` that the last migration brought and that somebody has removed there."""
    modes: tuple[str, ...] = ()
    """Files with the same content and other permission bits."""
    number: int = 0
    """The number of the comparison. The host remembers the last one as long as the connection lasts."""

    @property
    def nothing(self) -> bool:
        """Whether the tree there is as planned."""
        return not (self.send or self.retire or self.modes)


Way: TypeAlias = Literal["rsync", "tar", "copy", "none"]
"""`tar`: over the open connection; `copy`: the host is this machine; `none`: no content had to be sent."""


@dataclass(frozen=True, slots=True)
class Sent:
    """What a transfer has done."""

    files: int
    bytes: int
    """Bytes of content. Compressed, fewer are sent."""
    seconds: float
    way: Way
    aside: str | None = None
    """The dated folder with the replaced and retired files, below the tree's root."""
    moved: tuple[str, ...] = ()
    """The paths of these files."""
    notes: tuple[Text, ...] = ()
    """Why rsync could not be used."""


def compare(connection: Connection, payload: Payload, pulled: Mapping[str, str] = MappingProxyType({})) -> Difference:
    """Compare the payload with the tree in the folder that is open. An interrupted transfer there is finished first.

    `pulled`: the digests, by path, of edits made there that `uky-patch pull` has taken over here. Files with these
    digests do not count as overwritten.

    Raises:
        CutError: the connection was cut.
        RefusedError: a path leads out of the tree there, or something that this tool did not send is in the way.
    """
    answer = connection.channel.ask("compare", body=pack(payload.manifest), pulled=dict(pulled))
    paths = sorted(payload.items)
    return Difference(
        send=tuple(paths[number] for number in answer["send"]),
        same=answer["same"],
        retire=tuple(answer["retire"]),
        overwritten=tuple(answer["overwritten"]),
        removed=tuple(answer["removed"]),
        modes=tuple(paths[number] for number in answer["modes"]),
        number=answer["comparison"],
    )


def _silent(what: Phrase | str, done: int, total: int | None) -> None:
    pass


def send(connection: Connection, payload: Payload, difference: Difference, *, progress: Progress = _silent) -> Sent:
    """Send what differs, have it checked, and put it into the tree there: all files or none.

    Raises:
        CutError: the connection was cut. What has arrived is not sent again next time.
        TreeError: a file here has changed since it was listed.
        HostError: the host has no room, or lacks the right to write, or something is in the way.
    """
    began = time.monotonic()
    if difference.nothing:
        return Sent(0, 0, 0.0, "none")
    work = _Transfer(connection, payload, progress)
    try:
        work.prepare(difference)
    except RefusedError as error:
        if error.kind != "forgotten":
            raise
        # The connection is a new one, so the host has lost the comparison.
        difference = compare(connection, payload)
        work.prepare(difference)
    way = work.bring()
    received = _receive(connection, payload, difference)
    return Sent(
        files=len(difference.send),
        bytes=work.total,
        seconds=time.monotonic() - began,
        way=way,
        aside=received["aside"],
        moved=tuple(received["moved"]),
        notes=tuple(work.notes),
    )


class _Transfer:
    """Brings the bytes of files to the folder on the host in which they are collected, by one of the ways."""

    def __init__(self, connection: Connection, payload: Payload, progress: Progress) -> None:
        self._connection = connection
        self._payload = payload
        self._progress = progress
        self._done = 0
        self._items: list[Item] = []
        self.total = 0
        self.notes: list[Text] = []

    def prepare(self, difference: Difference) -> None:
        """Have the host prepare the folder, and find out which files have arrived before, and how slow the line is."""
        self._number = difference.number
        sources = any(self._payload.items[path].source for path in difference.send)
        self._by_rsync = sources and self._connection.ssh is not None
        began = time.monotonic()
        waiting = self._waiting()
        self._slow = time.monotonic() - began - self._prepared["seconds"] > SLOW
        items = (self._payload.items[path] for path in difference.send if path not in waiting)
        self._items = [item for item in items if item.link is None]
        self.total = sum(item.size for item in self._items)

    def _waiting(self) -> set[str]:
        """The files that have arrived whole already. Raises HostError if there is no room for the others."""
        self._prepared = self._connection.channel.ask("prepare", comparison=self._number, rsync=self._by_rsync)
        paths = sorted(self._payload.items)
        return {paths[number] for number in self._prepared["waiting"]}

    def bring(self) -> Way:
        """Send the files, and return the way. Raises as `send`."""
        made = [item for item in self._items if item.source is None]
        files = [item for item in self._items if item.source is not None]
        if not (made or files):
            return "none"
        if self._connection.ssh is not None and sum(item.size for item in files) > LITTLE and self._rsync_fits():
            return self._rsync(files, made)
        self._tar(made)
        if files and self._connection.host.here:
            self._copy(files)
            return "copy"
        self._tar(files)
        return "tar"

    def _more(self, count: int) -> None:
        self._done = min(self._done + count, self.total)
        self._progress(phrase("sending"), self._done, self.total)

    def _tar(self, items: Sequence[Item]) -> None:
        channel = self._connection.channel
        tar.send(channel, items, number=self._number, packed=self._slow, on_bytes=self._more)

    def _copy(self, items: Sequence[Item]) -> None:
        incoming = Path(self._prepared["incoming"])
        for item in items:
            assert item.source is not None
            target = incoming / item.path
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(item.source, target, follow_symlinks=False)
                shutil.copystat(item.source, target, follow_symlinks=False)
            except OSError as error:
                if error.errno in (errno.ENOSPC, errno.EDQUOT):
                    raise self._full(quota=error.errno == errno.EDQUOT) from error
                raise tar.unreadable(item.path, error.strerror or str(error)) from error
            self._more(item.size)

    def _rsync_fits(self) -> bool:
        """Whether both machines have an rsync that can be used; if not, a note says which has none."""
        here, there = rsync.here(), self._prepared["rsync"]
        if here is None or here < rsync.OLDEST:
            self.notes.append(phrase("this machine has no rsync {oldest} or newer", oldest="3.1"))
        elif there is None or rsync.version(there) < rsync.OLDEST:
            self.notes.append(phrase("the host has no rsync {oldest} or newer", oldest="3.1"))
        else:
            return True
        return False

    def _rsync(self, files: Sequence[Item], made: Sequence[Item]) -> Way:
        """Send `files` by rsync, and `made`, which are in memory alone, over the connection while it runs."""
        ssh, first = self._connection.ssh, files[0]
        assert ssh is not None
        assert first.source is not None
        root = first.source.parents[first.path.count("/")]  # The folder here that all paths start from.
        prepared = self._prepared
        basis = prepared["root"] if prepared["basis"] else None
        paths = rsync.Paths(root, prepared["incoming"], prepared["partial"], basis)
        names = [item.path for item in files]
        end = rsync.transfer(
            ssh, paths, names, compress=self._slow, on_bytes=self._more, meanwhile=lambda: self._tar(made)
        )
        if end.code == 0:
            return "rsync"
        if end.full or end.quota:
            raise self._full(quota=end.quota)
        if error := _rsync_error(end):
            raise error
        # Here rsync itself failed, or its way over the connection. If the connection still works, tar can be used.
        waiting = self._waiting()
        self.notes.append(phrase("rsync ended with {code}: {message}", code=end.code, message=end.message))
        rest = [item for item in files if item.path not in waiting]
        self._done = self.total - sum(item.size for item in rest)
        self._tar(rest)
        return "tar"

    def _full(self, *, quota: bool) -> HostError:
        """The error for a full disk. The host removes what has arrived, and says how much room is missing."""
        try:
            self._connection.channel.ask("discard", comparison=self._number, quota=quota)
        except RefusedError as refused:
            return refused
        raise AssertionError("discard refuses")


def _rsync_error(end: rsync.RsyncEnd) -> UkyError | None:
    """The error for an end of rsync after which no other way would work either; None if one may."""
    if end.code < 0 or end.code == RSYNC_INTERRUPTED:
        return HostError(
            phrase("rsync was ended from outside"),
            cause=phrase("it ended with {code}", code=end.code),
            advice="Run the command again: what has arrived is not sent again.",
        )
    if end.vanished:
        return tar.unreadable(", ".join(end.vanished[:5]), end.message)
    if end.refused:
        return HostError(
            phrase("the files cannot be written on the host; the tree there is as it was"),
            cause=end.message,
            advice="Set that right there and run the command again.",
        )
    return None


def _receive(connection: Connection, payload: Payload, difference: Difference) -> Answer:
    """Have the files put into the tree.

    If a file arrived with another digest than it was listed with, it is read here again, to tell a file that has
    changed here (TreeError) from one that was damaged on the way (RefusedError).
    """
    mismatches: list[str] = []

    def on_event(event: Mapping[str, Any], _: bytes) -> None:
        mismatches.extend(event.get("mismatch", ()))

    try:
        return connection.channel.ask("receive", on_event=on_event, comparison=difference.number)
    except RefusedError as error:
        changed = [path for path in mismatches if _has_changed(payload.items[path])]
        if not changed:
            raise
        raise TreeError(
            phrase("{count} {count:file|files} changed here during the transfer", count=len(changed)),
            cause=first_paths(changed),
            advice="Nothing has changed on the host. Run the command again. A file that a program keeps writing to, "
            "such as a log, is not sent if .gitignore names it.",
        ) from error


def _has_changed(item: Item) -> bool:
    try:
        return item.source is not None and hashing.digest(str(item.source)).sha256 != item.sha256
    except OSError:
        return True
