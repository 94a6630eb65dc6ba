"""Put files in the place of others, all of them in the end: a journal says what is under way until it is done.

What is kept aside gets its second name, and new folders are made, before the journal is written; after it there are
renames only, each of which is done or not. So a process that is killed leaves each file whole, and whoever opens the
tree next finishes the work.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from typing import Any, Iterable, Iterator

from patcher.messages import Refusal, phrase
from patcher.worktree import files
from patcher.worktree.host import disk, inside, keeping, manifest, trouble
from patcher.worktree.host.manifest import Manifest
from patcher.worktree.json_text import parse_json

JOURNAL = inside.HOST + "/journal.json"
_NEXT = inside.HOST + "/manifest.next"
_RESERVE = inside.HOST + "/reserve"
_ROOM = 8192
"""Bytes to hold free for each folder that gets entries."""
_FORMAT = 1


def replace(root: str, put: list[str], keep: list[str], away: list[str], wanted: Manifest) -> str | None:
    """Put the incoming files at `put` into the tree, those at `keep` having got a second name; move those at `away`.

    Gives the dated folder that `keep` and `away` are in now, None where there are none.

    Raises:
        OSError: nothing has changed.
        Refusal: the work has begun and cannot be finished now.
    """
    made: list[str] = []
    kept = keeping.dated(root) if keep or away else None
    try:
        new = list(_new_folders(root, set(put)))
        folders = {os.path.dirname(path) for path in put if not path.startswith(tuple(name + "/" for name in new))}
        ground = inside.Ground(root)
        for folder in sorted(folders):
            if not ground.obstacle(folder + "/x" if folder else "x"):
                disk.make_folders(os.path.join(root, folder), made)
        held = [path for path in keep if not keeping.second_name(root, path)]
        disk.reserve(os.path.join(root, _RESERVE), _ROOM * (len(folders) + len(away) + 8))
        disk.create(os.path.join(root, _NEXT), manifest.render(wanted), sync=True)
        journal = {"format": _FORMAT, "kept": kept, "away": held + away, "new": new, "put": put}
        disk.create(os.path.join(root, JOURNAL + ".new"), json.dumps(journal).encode("ascii"), sync=True)
        disk.move(os.path.join(root, JOURNAL + ".new"), os.path.join(root, JOURNAL))
    except BaseException:
        _take_back(root, made)
        raise
    _finish(root, journal)
    return kept


def settle(root: str) -> bool:
    """Finish what was begun, or clear what has not: whether there was anything to finish. Raises Refusal."""
    place = os.path.join(root, JOURNAL)
    try:
        content = files.read(place, files.DATA_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        try:
            _clear(root)
        except OSError as error:
            raise trouble.refused(error, root, 0) from error
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
    try:
        disk.remove(os.path.join(root, _RESERVE))
        kept = journal["kept"]
        if kept is not None:
            keeping.open_folder(root, kept)
        away = [path for path in journal["away"] if keeping.move(root, kept, path)]
        for folder in journal["new"]:
            _put_folder(root, folder)
        ground = _Ready(root, kept)
        for path in journal["put"]:
            incoming = os.path.join(root, inside.INCOMING, path)
            if disk.status(incoming) is not None:
                ground.make(path)
                disk.move(incoming, os.path.join(root, path))
        _forget_bytecode(root, (*journal["put"], *away))
        _sweep(root, away)
        if disk.status(os.path.join(root, _NEXT)) is not None:
            disk.move(os.path.join(root, _NEXT), os.path.join(root, manifest.PATH))
        disk.remove(os.path.join(root, JOURNAL))
    except OSError as error:
        raise _unfinished(error) from error
    try:
        _clear(root)
        discard(root)
    except OSError:
        pass  # All is done. The next comparison clears it.


def discard(root: str) -> None:
    """Remove what came in and was not put to use."""
    for name in (inside.INCOMING, inside.PARTIAL):
        disk.remove_all(os.path.join(root, name))


def _clear(root: str) -> None:
    """Remove what a run that was ended before its journal has left."""
    for name in (_RESERVE, _NEXT, JOURNAL + ".new", manifest.PATH + ".new"):
        if disk.status(os.path.join(root, name)) is not None:
            disk.remove(os.path.join(root, name))
    disk.remove_all(os.path.join(root, keeping.ASIDE))


def _take_back(root: str, made: list[str]) -> None:
    try:
        _clear(root)
        for folder in reversed(made):
            disk.remove_folder(folder)
    except OSError:
        pass  # The error that led here is the one to tell.


def _new_folders(root: str, put: set[str], folder: str = "") -> Iterator[str]:
    """The outermost folders that came in whole and are not in the tree in any form: they can be put there at once."""
    incoming = os.path.join(root, inside.INCOMING)
    for name in disk.folders(os.path.join(incoming, folder)):
        path = folder + "/" + name if folder else name
        there = disk.status(os.path.join(root, path))
        if there is None:
            if all(file in put for file in disk.files(incoming, path)):
                yield path
        elif stat.S_ISDIR(there.st_mode):
            yield from _new_folders(root, put, path)


def _put_folder(root: str, folder: str) -> None:
    """Put a folder into the tree, if it is still to be put and nothing has come in its way: else file by file."""
    incoming, place = os.path.join(root, inside.INCOMING, folder), os.path.join(root, folder)
    above = os.path.dirname(place)
    if disk.status(incoming) is not None and disk.status(place) is None and os.path.realpath(above) == above:
        try:
            disk.rename(incoming, place)
        except OSError as error:
            if error.errno not in (errno.EXDEV, errno.ENOENT):
                raise


class _Ready:
    """Makes place for files. What has come in the way since the comparison is moved aside like the rest."""

    def __init__(self, root: str, kept: str | None) -> None:
        self._root = root
        self._kept = kept
        self._made: set[str] = set()

    def make(self, path: str) -> None:
        folder = os.path.dirname(path)
        if folder not in self._made:
            obstacle = inside.Ground(self._root).obstacle(path)
            if obstacle:
                self._aside(obstacle)
            disk.make_folders(os.path.join(self._root, folder))
            self._made.add(folder)
        place = os.path.join(self._root, path)
        there = disk.status(place)
        if there is not None and stat.S_ISDIR(there.st_mode):
            for inner in disk.files(place):
                if inner.endswith(".pyc"):
                    disk.remove(os.path.join(place, inner))
            if not disk.remove_empty(place):
                self._aside(path)

    def _aside(self, path: str) -> None:
        if self._kept is None:
            self._kept = keeping.dated(self._root)
            keeping.open_folder(self._root, self._kept)
        keeping.move(self._root, self._kept, path)


def _forget_bytecode(root: str, paths: Iterable[str]) -> None:
    """Remove what Python has compiled of files that are replaced or gone."""
    stems: dict[str, set[str]] = {}
    for path in paths:
        folder, name = os.path.split(path)
        if name.endswith(".py"):
            stems.setdefault(folder, set()).add(name[:-3])
    for folder, names in stems.items():
        cache = os.path.join(root, folder, "__pycache__")
        try:
            compiled = os.listdir(cache) if not os.path.islink(cache) else []
        except OSError:
            continue
        for name in compiled:
            if name.endswith(".pyc") and name.split(".")[0] in names:
                disk.remove(os.path.join(cache, name))


def _sweep(root: str, away: Iterable[str]) -> None:
    """Remove the folders that are empty now."""
    for folder in sorted({os.path.dirname(path) for path in away}, reverse=True):
        while folder:
            place = os.path.join(root, folder)
            if os.path.islink(place):
                break
            disk.remove_folder(os.path.join(place, "__pycache__"))
            if not disk.remove_folder(place):
                break
            folder = os.path.dirname(folder)


def _unfinished(error: OSError) -> Refusal:
    said = phrase("{path}: {reason}", path=str(error.filename2 or error.filename), reason=error.strerror or str(error))
    title = phrase("the files of the tree on the host are replaced only in part")
    advice = phrase("Set that right there and run the command again: it finishes the work first. No file is half.")
    return Refusal("unfinished", title, said, advice)
