"""Receive the files that the comparison found missing: collect them, check each, and only then change the tree."""

from __future__ import annotations

import errno
import io
import os
import time
import zlib
from typing import TYPE_CHECKING, Any

from patcher.messages import Refusal, phrase
from patcher.migrate.agent import comparing
from patcher.migrate.agent.comparing import Comparison
from patcher.remote.agent.facts import UnknownFact, rsync_version
from patcher.remote.agent.frames import MOST_BODY
from patcher.remote.agent.place import root as root_of
from patcher.worktree import disk, hashing, layout, os_errors, placement
from patcher.worktree.ledger import folders_above

if TYPE_CHECKING:
    from patcher.remote.agent.serving import Request

_BLOCK = 4096
"""Bytes that a file's size is rounded up to when the space is counted: the block size of most file systems."""
_PATIENCE = 10.0
"""Seconds to wait for another command on this machine that holds the tree's lock. A guess: an apply takes two."""
_ANSWERING = 20.0
"""Seconds that rsync may take to tell its version. A guess."""
_SHOWN = 5
"""The most paths that an error names."""


def prepare(request: Request) -> dict[str, Any]:
    """Make the folder in which files are collected.

    Answers the paths that rsync needs; `waiting`: which files have arrived whole before, as indices into the manifest's
    sorted paths; `basis`: whether the tree has older versions of some; `rsync`: its version, if asked for; `seconds`:
    how long this took, so that the sender can compute the round trip.
    """
    began = time.monotonic()
    root, comparison = root_of(request), _comparison(request)
    files = [path for path in comparison.difference.send if comparison.wanted.files[path].link is None]
    incoming = os.path.join(root, layout.INCOMING)
    try:
        waiting = _waiting(incoming, files, comparison)
        _require_room(root, comparison, [path for path in files if path not in waiting])
        disk.make_folders(os.path.join(root, layout.HOST), mode=0o700)
        disk.make_folders(incoming)
        disk.make_folders(os.path.join(root, layout.PARTIAL))
        disk.hide_from_git(os.path.join(root, layout.FOLDER))
    except OSError as error:
        raise _refused(error, root, comparison) from error
    number = {path: at for at, path in enumerate(sorted(comparison.wanted.files))}
    return {
        "root": root,
        "incoming": incoming,
        "partial": os.path.join(root, layout.PARTIAL),
        "waiting": sorted(number[path] for path in waiting),
        "basis": any(path not in comparison.difference.absent for path in files),
        "rsync": installed_rsync() if request.args.get("rsync") else None,
        "seconds": time.monotonic() - began,
    }


def unpack(request: Request) -> dict[str, Any]:
    """Unpack a tar archive, the body, into the folder. A piece of a file has its offset in the header UKY.offset."""
    import tarfile

    root, comparison = root_of(request), _comparison(request)
    awaited = set(comparison.difference.send)
    body = _unpacked(request.body) if request.args.get("packed") else request.body
    try:
        with tarfile.open(fileobj=io.BytesIO(body), mode="r:", encoding="utf-8", errors="surrogateescape") as archive:
            for member in archive:
                if member.name not in awaited or not member.isreg():
                    raise Refusal("path", phrase("{path}: refused", path=ascii(member.name)))
                content = archive.extractfile(member)
                place = os.path.join(root, layout.INCOMING, member.name)
                disk.make_folders(os.path.dirname(place))
                offset = int(member.pax_headers.get("UKY.offset", "0"))
                disk.append(place, offset, content.read() if content else b"")
                os.utime(place, (member.mtime, member.mtime))
    except OSError as error:
        raise _refused(error, root, comparison) from error
    return {}


def _unpacked(packed: bytes) -> bytes:
    unpacking = zlib.decompressobj()
    body = unpacking.decompress(packed, MOST_BODY)
    if unpacking.unconsumed_tail:
        raise Refusal("path", phrase("what arrived unpacks to more than {count} MB", count=MOST_BODY >> 20))
    return body


def discard(request: Request) -> dict[str, Any]:
    """Remove what has arrived, as rsync found the disk full or the `quota` used up. Always raises Refusal."""
    number = errno.EDQUOT if request.args.get("quota") else errno.ENOSPC
    raise _refused(OSError(number, os.strerror(number)), root_of(request), _comparison(request))


def receive(request: Request) -> dict[str, Any]:
    """Check the files that have arrived and put them into the tree.

    Answers `moved`, the paths of files that were moved aside, and `aside`, the folder that they were moved to. The tree
    is compared again first, as somebody may have edited it during the transfer.
    """
    root, comparison = root_of(request), _comparison(request)
    try:
        disk.make_folders(os.path.join(root, layout.HOST), mode=0o700)
        with placement.locked(root, wait=_PATIENCE):
            placement.recover(root)
            return _receive(request, root, comparison)
    except OSError as error:
        raise _refused(error, root, comparison) from error


def _receive(request: Request, root: str, comparison: Comparison) -> dict[str, Any]:
    files = comparison.wanted.files
    found = comparing.differ(
        root, comparison.wanted, comparison.last, [*comparison.difference.send, *comparison.difference.modes]
    )
    put = sorted(found.send + found.modes)
    sent = [path for path in found.send if files[path].link is None]
    bad = _mismatches(root, sent, comparison)
    if bad:
        for path in bad:
            disk.remove(os.path.join(root, layout.INCOMING, path))
        request.emit(mismatch=bad)
        paths = ", ".join(ascii(path) for path in bad[:_SHOWN]) + (", …" if len(bad) > _SHOWN else "")
        advice = phrase("Run the command again: it sends these files anew.")
        raise Refusal(
            "mismatch",
            phrase("{count} {count:file|files} did not arrive as {count:it is|they are} to be", count=len(bad)),
            phrase("for example {paths}", paths=paths),
            advice,
        )
    away = sorted({*found.retire, *_unfinished_apply(root)})
    _require_rights(root, put, away)
    for path in put:
        _finish_incoming(root, path, comparison, copied=path in set(found.modes))
    if os.geteuid() == 0:
        _give_folders(root, put)
    gone = set(away)
    keep = [path for path in found.overwritten if path not in gone]
    kept = placement.commit(root, put, keep, away, comparison.wanted)
    return {"aside": kept, "moved": sorted({*keep, *away})}


def _comparison(request: Request) -> Comparison:
    """The comparison that the request is about. Raises Refusal if it was made on another connection."""
    comparison = request.kept.get("comparison")
    if comparison is None or comparison.number != request.args["comparison"]:
        raise Refusal("forgotten", phrase("the comparison was made on another connection"))
    return comparison  # type: ignore[no-any-return]


def _waiting(incoming: str, files: list[str], comparison: Comparison) -> set[str]:
    """Which files have arrived whole already. Files of another transfer are removed."""
    awaited, there = set(files), []
    for path in list(disk.files_below(incoming)):
        if path in awaited:
            there.append(path)
        else:
            disk.remove(os.path.join(incoming, path))
    digests, _ = hashing.digests(incoming, there)
    return {path for path, digest in digests.items() if digest.sha256 == comparison.wanted.files[path].sha256}


def _mismatches(root: str, paths: list[str], comparison: Comparison) -> list[str]:
    """The paths whose file has not arrived, or with another digest."""
    digests, _ = hashing.digests(os.path.join(root, layout.INCOMING), paths)
    wanted = comparison.wanted.files
    return [path for path in paths if path not in digests or digests[path].sha256 != wanted[path].sha256]


def _finish_incoming(root: str, path: str, comparison: Comparison, *, copied: bool) -> None:
    """Make the file in the folder ready for its rename: permission bits and owner set, symlinks made.

    `copied`: only its permission bits differ, so nothing was sent; it is a copy of the tree's file.
    """
    entry = comparison.wanted.files[path]
    incoming, place = os.path.join(root, layout.INCOMING, path), os.path.join(root, path)
    if copied or entry.link is not None:
        disk.make_folders(os.path.dirname(incoming))
    if copied:
        disk.copy(place, incoming, entry.mode)
    elif entry.link is not None:
        disk.symlink(entry.link, incoming)
    else:
        disk.set_mode(incoming, entry.mode)
    if os.geteuid() == 0:
        like = disk.status(place) or os.stat(root)
        if (like.st_uid, like.st_gid) != (0, 0):
            disk.give(incoming, like.st_uid, like.st_gid)


def _give_folders(root: str, put: list[str]) -> None:
    """Give the folders that have arrived to the owner of the tree: new ones are put there as a whole. For root only."""
    owner = os.stat(root)
    for folder in {folder for path in put for folder in folders_above(path)}:
        disk.give(os.path.join(root, layout.INCOMING, folder), owner.st_uid, owner.st_gid)


def _unfinished_apply(root: str) -> list[str]:
    """The journal and staged files of an apply that was killed here: they are about files that are replaced now."""
    found = [layout.STAGED + "/" + path for path in disk.files_below(os.path.join(root, layout.STAGED))]
    if disk.status(os.path.join(root, layout.JOURNAL)) is not None:
        found.append(layout.JOURNAL)
    return found


def _require_rights(root: str, put: list[str], away: list[str]) -> None:
    """Raise PermissionError for a folder in which this user may not make or remove files."""
    for folder in sorted({os.path.dirname(path) for path in put + away}):
        place = os.path.join(root, folder)
        if os.path.isdir(place) and not os.access(place, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), place)


def _needed(comparison: Comparison, paths: list[str]) -> int:
    """The bytes that these files need on the disk, with some for the journal and folders."""
    return sum(-(-comparison.wanted.files[path].size // _BLOCK) * _BLOCK for path in paths) + 64 * _BLOCK


def _require_room(root: str, comparison: Comparison, paths: list[str]) -> None:
    room = disk.free_bytes(root)
    needed = _needed(comparison, paths)
    if room is not None and room < needed:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), root)


def _refused(error: OSError, root: str, comparison: Comparison) -> Refusal:
    """The refusal for an error. If the disk is full, what has arrived is removed first, to free its space."""
    if os_errors.kind(error) in os_errors.FULL:
        try:
            placement.discard(root)
        except OSError:
            pass
    return os_errors.refusal(error, root, _needed(comparison, comparison.difference.send))


def installed_rsync() -> str | None:
    """The version of rsync on this machine; None if there is none, or it does not tell."""
    try:
        return rsync_version(_ANSWERING)
    except UnknownFact:
        return None
