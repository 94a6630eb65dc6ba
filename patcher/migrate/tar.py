"""Files over the open connection, as small tar archives: for hosts without rsync, and for contents in memory."""

from __future__ import annotations

import io
import os
import tarfile
import time
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import IO

from patcher.errors import TreeError
from patcher.i18n import phrase
from patcher.migrate.listing import Item
from patcher.migrate.rsync import OnBytes
from patcher.remote.channel import Channel
from patcher.worktree import files

PIECE = 4 << 20
"""Bytes of content in one archive. A guess. Larger files are sent in pieces, so that none is in memory as a whole."""


def send(channel: Channel, items: Iterable[Item], *, number: int, packed: bool, on_bytes: OnBytes) -> None:
    """Send the items to the folder on the host in which they are collected.

    `number` is that of the comparison. `packed`: compress. `on_bytes` is called with the bytes of each archive that has
    arrived.

    Raises:
        TreeError: a file here can no longer be read.
        CutError, RefusedError: as every request.
    """
    for archive in _archives(items):
        body = archive.bytes()
        channel.ask("unpack", body=zlib.compress(body, 1) if packed else body, comparison=number, packed=packed)
        on_bytes(archive.size)


@dataclass(slots=True)
class _Archive:
    """A tar archive in memory."""

    size: int = 0
    """Bytes of content so far."""
    _buffer: io.BytesIO = field(default_factory=io.BytesIO)
    _tar: tarfile.TarFile = field(init=False)

    def __post_init__(self) -> None:
        self._tar = tarfile.TarFile(
            fileobj=self._buffer, mode="w", format=tarfile.PAX_FORMAT, encoding="utf-8", errors="surrogateescape"
        )

    def add(self, path: str, offset: int, content: bytes, modified: float) -> None:
        """Add a file, or a piece of one that begins at `offset`. `modified`: its time in seconds since 1970."""
        head = tarfile.TarInfo(path)
        head.size = len(content)
        head.mtime = int(modified)
        head.pax_headers = {"UKY.offset": str(offset)} if offset else {}
        self._tar.addfile(head, io.BytesIO(content))
        self.size += len(content)

    def bytes(self) -> bytes:
        """The finished archive."""
        self._tar.close()
        return self._buffer.getvalue()


def _archives(items: Iterable[Item]) -> Iterator[_Archive]:
    """The items in archives of at most PIECE bytes. Small files share an archive, large ones are cut."""
    archive, count = _Archive(), 0
    for item in items:
        for offset, content, modified in _pieces(item):
            if archive.size and archive.size + len(content) > PIECE:
                yield archive
                archive, count = _Archive(), 0
            archive.add(item.path, offset, content, modified)
            count += 1
    if count:
        yield archive


def _pieces(item: Item) -> Iterator[tuple[int, bytes, float]]:
    """Offset, content and time of the pieces of an item; one empty piece for an empty file. Raises TreeError."""
    if item.content is not None:
        now = time.time()
        for offset in range(0, max(1, len(item.content)), PIECE):
            yield offset, item.content[offset : offset + PIECE], now
        return
    assert item.source is not None
    try:
        with files.open_binary(item.source, follow=False) as file:
            modified = os.fstat(file.fileno()).st_mtime
            yield from ((offset, content, modified) for offset, content in _read(file))
    except OSError as error:
        raise unreadable(item.path, error.strerror or str(error)) from error


def _read(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    offset = 0
    while True:
        content = file.read(PIECE)
        if content or not offset:
            yield offset, content
        if not content:
            return
        offset += len(content)


def unreadable(path: str, reason: str) -> TreeError:
    """The error for a file that was listed and can no longer be read."""
    return TreeError(
        phrase("{path}: cannot be read any more", path=path),
        cause=reason,
        advice="The tree has changed while it was sent; nothing has changed on the host. Run the command again.",
    )
