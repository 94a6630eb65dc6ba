"""The sources of a package that is installed on a host: fetched, laid out in a folder here, and kept in the cache."""

from __future__ import annotations

import shutil
import zlib
from hashlib import sha256
from pathlib import Path, PurePosixPath

from patcher.errors import ReleaseError
from patcher.i18n import phrase
from patcher.packages.releases.cache import build, cache_root, note_of, whole
from patcher.remote.agent.sources import MOST_BYTES
from patcher.remote.channel import RefusedError
from patcher.remote.connection import Connection
from patcher.worktree.json_text import parse_json

_KEPT = 3
"""How many states of one package on one host are kept. A guess: an editable install changes often."""
_SUFFIXES = (".py", ".so", ".pyd")


def package_sources(connection: Connection, package: str) -> Path | None:
    """A folder here with the sources of the package whose folder on the host is `package`; None where it has none.

    Compiled modules are empty files in it. Nothing is sent where the newest state that is kept is the host's.

    Raises CutError, and ReleaseError where the cache cannot be written to or the package is too large.
    """
    place = PurePosixPath(package)
    whose = f"{connection.host.target}\n{connection.host.port}\n{package}"
    shelf = cache_root() / "hosts" / sha256(whose.encode(errors="replace")).hexdigest()[:16]
    known = _newest(shelf)
    if known is not None and not whole(known):
        known = None
    try:
        answer = connection.channel.ask("sources", package=package, known=known.name if known is not None else None)
    except RefusedError:
        return None
    stamp = str(answer["stamp"])
    if known is not None and stamp == known.name:
        return known / place.name
    if len(stamp) != 64 or not stamp.isalnum():
        return None  # It is no SHA-256, and would become the name of a folder here.
    try:
        folder = build(shelf / stamp, lambda made: _lay_out(made / place.name, answer.body), lambda *_: None)
    except (zlib.error, ValueError, TypeError):
        return None
    folder.touch()
    for old in sorted(_layouts(shelf), key=lambda path: path.stat().st_mtime, reverse=True)[_KEPT:]:
        shutil.rmtree(old, ignore_errors=True)
        note_of(old).unlink(missing_ok=True)
    return folder / place.name


def _newest(shelf: Path) -> Path | None:
    return max(_layouts(shelf), key=lambda path: path.stat().st_mtime, default=None)


def _layouts(shelf: Path) -> list[Path]:
    return [path for path in shelf.glob("*") if path.is_dir() and not path.name.startswith(".")]


def _lay_out(package: Path, packed: bytes) -> None:
    """Write the files of an answer (`patcher.remote.agent.sources.sources` describes its body) into `package`.

    A host is not trusted: only sources below the package are written, and no more than `MOST_BYTES` are unpacked.
    """
    unpacking = zlib.decompressobj()
    content = unpacking.decompress(packed, MOST_BYTES)
    if unpacking.unconsumed_tail:
        raise ReleaseError(phrase("{path}: too large to be read over the line", path=package.name))
    head, _, _ = content.partition(b"\n")
    at = len(head) + 1
    package.mkdir()
    for name, size in parse_json(head):
        if not isinstance(name, str) or type(size) is not int:
            raise ValueError("no list of files")
        parts = PurePosixPath(name).parts
        body = content[at : at + max(size, 0)]
        at += max(size, 0)
        if not parts or parts[0] == "/" or ".." in parts or not name.endswith(_SUFFIXES) or "\0" in name:
            continue
        file = package.joinpath(*parts)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(body if name.endswith(".py") else b"")
