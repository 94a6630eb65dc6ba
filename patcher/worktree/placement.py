"""Put the files of a migration, which have arrived on the host, into the tree there: all of them, under a journal.

Before the journal is written, replaced files get a second name (to be kept), and new folders are made. After it there
are only renames, and each can be repeated. So a process that is killed leaves no half-written file, and the next
migration to this tree finishes the work (`recover`): before it compares, or before it receives. No other command looks
for this journal. An apply has another journal (`patcher.worktree.journal`), because it can
also be taken back.

`.uky-patch/host/incoming/`     files that have arrived           `journal.json`    the commit under way
`.uky-patch/host/aside/`        second names of what is kept      `manifest.next`   becomes `manifest.json` at the end
`.uky-patch/host/partial/`      files that rsync has not ended    `reserve`         room for new entries of folders
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
from typing import Any, Iterable, Iterator

from patcher.messages import Refusal, phrase
from patcher.worktree import backup, disk, files, layout, locks, manifest, os_errors, path_guard
from patcher.worktree.json_text import parse_json
from patcher.worktree.manifest import Manifest

JOURNAL = layout.HOST + "/journal.json"
_NEXT = layout.HOST + "/manifest.next"
_RESERVE = layout.HOST + "/reserve"
_ROOM = 8192
"""Bytes to reserve for each folder that gets entries, which may need a block more. A guess: two blocks of 4 KiB."""
_FORMAT = 1


@contextlib.contextmanager
def locked(root: str, *, wait: float) -> Iterator[None]:
    """Hold the tree's lock, which `uky-patch apply` takes on that machine too.

    Without flock on its file system there is no lock: `apply` refuses to run there, so nobody else writes to the tree.

    Raises:
        Refusal: somebody still holds the lock after `wait` seconds.
        OSError: the lock file cannot be made.
    """
    try:
        lock = locks.take(os.path.join(root, layout.LOCK), locks.signature("migrate"), wait=wait)
    except locks.LockUnsupportedError:
        yield
        return
    except locks.LockHeldError as error:
        cause = phrase("held by a run that reads it, or has only just begun")
        if {"purpose", "pid", "since"} <= set(error.owner):
            holder = {name: str(error.owner[name]) for name in ("purpose", "pid", "since")}
            cause = phrase("held by {purpose} (process {pid} there, since {since})", **holder)
        advice = phrase("Wait until it has ended, and run the command again.")
        title = phrase("uky-patch is at work in the tree on the host")
        raise Refusal("tree-in-use", title, cause, advice) from None
    with lock:
        yield


def commit(root: str, put: list[str], keep: list[str], away: list[str], wanted: Manifest) -> str | None:
    """Put the arrived files `put` into the tree, and `wanted` in place of the manifest.

    All are paths below the root. The files `keep`, which are replaced, and the files `away`, which are removed, are
    moved to a dated folder of kept copies. Returns that folder's path; None if there is nothing to keep.

    Raises:
        OSError: it could not begin; nothing has changed.
        Refusal: it has begun, and cannot be finished now.
    """
    made: list[str] = []
    kept = backup.dated(root) if keep or away else None
    try:
        new = list(_new_folders(root, set(put)))
        folders = {os.path.dirname(path) for path in put if not path.startswith(tuple(name + "/" for name in new))}
        guard = path_guard.PathGuard(root)
        for folder in sorted(folders):
            if not guard.obstacle(folder + "/x" if folder else "x"):
                disk.make_folders(os.path.join(root, folder), made)
        held = [path for path in keep if not backup.link_aside(root, path)]
        disk.reserve(os.path.join(root, _RESERVE), _ROOM * (len(folders) + len(away) + 8))
        disk.create_anew(os.path.join(root, _NEXT), manifest.render(wanted))
        journal = {"format": _FORMAT, "kept": kept, "away": held + away, "new": new, "put": put}
        place = os.path.join(root, JOURNAL)
        files.write_whole_file(place, json.dumps(journal).encode("ascii"), draft=place + ".new")
    except BaseException:
        _roll_back(root, made)
        raise
    _finish(root, journal)
    return kept


def recover(root: str) -> bool:
    """Finish an interrupted commit, or remove what one had prepared before its journal.

    Returns whether there was one to finish. Raises Refusal if that is not possible now.
    """
    place = os.path.join(root, JOURNAL)
    try:
        content = files.read(place, files.DATA_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        try:
            _clear(root)
        except OSError as error:
            raise os_errors.refusal(error, root, 0) from error
        return False
    except OSError as error:
        raise _unfinished(error) from error
    try:
        journal = parse_json(content)
        known = journal["format"] == _FORMAT
    except (ValueError, KeyError, TypeError):
        known = False
    if not known:
        advice = phrase("Look at it there; if no newer uky-patch is in use, remove it and run the command again.")
        raise Refusal("journal", phrase("{path}: cannot be understood", path=JOURNAL), advice=advice)
    _finish(root, journal)
    return True


def _finish(root: str, journal: dict[str, Any]) -> None:
    """Do what the journal says. Each step first looks whether it is done, so this can be repeated."""
    try:
        disk.remove(os.path.join(root, _RESERVE))
        kept = journal["kept"]
        if kept is not None:
            backup.open_dated(root, kept)
        away = [path for path in journal["away"] if backup.move(root, kept, path)]
        for folder in journal["new"]:
            _move_folder(root, folder)
        way = _WayMaker(root, kept)
        for path in journal["put"]:
            incoming = os.path.join(root, layout.INCOMING, path)
            if disk.status(incoming) is not None:
                way.clear(path)
                disk.move(incoming, os.path.join(root, path))
        for path in (*journal["put"], *away):
            disk.remove_bytecode(os.path.join(root, path))
        _remove_empty_folders(root, away)
        if disk.status(os.path.join(root, _NEXT)) is not None:
            disk.move(os.path.join(root, _NEXT), os.path.join(root, layout.MANIFEST))
        disk.remove(os.path.join(root, JOURNAL))
    except OSError as error:
        raise _unfinished(error) from error
    try:
        _clear(root)
        discard(root)
    except OSError:
        pass  # The commit is done. The next comparison removes the rest.


def discard(root: str) -> None:
    """Remove the files that have arrived and were not put into the tree. Raises OSError."""
    for name in (layout.INCOMING, layout.PARTIAL):
        disk.remove_all(os.path.join(root, name))


def _clear(root: str) -> None:
    """Remove what a run has left that died before it wrote its journal."""
    for name in (_RESERVE, _NEXT, JOURNAL + ".new", layout.MANIFEST + ".new"):
        if disk.status(os.path.join(root, name)) is not None:
            disk.remove(os.path.join(root, name))
    disk.remove_all(os.path.join(root, layout.ASIDE))


def _roll_back(root: str, made: list[str]) -> None:
    try:
        disk.remove(os.path.join(root, JOURNAL))  # First: with a journal, the next run needs what is removed below.
        _clear(root)
        for folder in reversed(made):
            disk.remove_folder_if_allowed(folder)
    except OSError:
        pass  # The caller raises the error that made this necessary.


def _new_folders(root: str, put: set[str], folder: str = "") -> Iterator[str]:
    """The outermost folders that have arrived whole and do not exist in the tree: each is put there by one rename."""
    incoming = os.path.join(root, layout.INCOMING)
    for name in disk.folders(os.path.join(incoming, folder)):
        path = folder + "/" + name if folder else name
        there = disk.status(os.path.join(root, path))
        if there is None:
            if all(file in put for file in disk.files_below(incoming, path)):
                yield path
        elif stat.S_ISDIR(there.st_mode):
            yield from _new_folders(root, put, path)


def _move_folder(root: str, folder: str) -> None:
    """Put a new folder into the tree by one rename. If something is in its way now, its files follow one by one."""
    incoming, place = os.path.join(root, layout.INCOMING, folder), os.path.join(root, folder)
    above = os.path.dirname(place)
    if disk.status(incoming) is not None and disk.status(place) is None and os.path.realpath(above) == above:
        try:
            disk.replace(incoming, place)
        except OSError as error:
            if error.errno not in (errno.EXDEV, errno.ENOENT):
                raise


class _WayMaker:
    """Makes the folders that files need, and moves away what is in their place.

    The comparison has found nothing in the way. But the tree may have changed since: for example there is now a file
    `verl` where `verl/trainer.py` must go. It is moved to the dated folder of kept copies.
    """

    def __init__(self, root: str, kept: str | None) -> None:
        self._root = root
        self._kept = kept
        self._made: set[str] = set()

    def clear(self, path: str) -> None:
        """Make sure that a file can be renamed to `path`. Raises OSError or Refusal."""
        folder = os.path.dirname(path)
        if folder not in self._made:
            obstacle = path_guard.PathGuard(self._root).obstacle(path)
            if obstacle:
                self._aside(obstacle)
            disk.make_folders(os.path.join(self._root, folder))
            self._made.add(folder)
        place = os.path.join(self._root, path)
        there = disk.status(place)
        if there is not None and stat.S_ISDIR(there.st_mode):
            for inner in disk.files_below(place):
                if inner.endswith(".pyc"):
                    disk.remove(os.path.join(place, inner))
            if not disk.remove_empty(place):
                self._aside(path)

    def _aside(self, path: str) -> None:
        if self._kept is None:
            self._kept = backup.dated(self._root)
            backup.open_dated(self._root, self._kept)
        backup.move(self._root, self._kept, path)


def _remove_empty_folders(root: str, away: Iterable[str]) -> None:
    """Remove the folders that are empty, now that the files `away` are gone, and empty ones above them."""
    for folder in sorted({os.path.dirname(path) for path in away}, reverse=True):
        while folder:
            place = os.path.join(root, folder)
            if os.path.islink(place):
                break
            disk.remove_folder_if_allowed(os.path.join(place, "__pycache__"))
            if not disk.remove_folder_if_allowed(place):
                break
            folder = os.path.dirname(folder)


def _unfinished(error: OSError) -> Refusal:
    cause = phrase("{path}: {reason}", path=str(error.filename2 or error.filename), reason=error.strerror or str(error))
    title = phrase("the files of the tree on the host are replaced only in part")
    advice = phrase("Set that right there and run the command again: it finishes the work first. No file is half.")
    return Refusal("unfinished", title, cause, advice)
