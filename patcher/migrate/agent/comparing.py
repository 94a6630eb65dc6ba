"""The tree as it is to be, against what is on this machine. Reads only, but for finishing what was interrupted."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Any, Iterable

from patcher.messages import Refusal, phrase
from patcher.remote.agent.place import root as root_of
from patcher.worktree import disk, hashing, layout, manifest, os_errors, path_guard, placement
from patcher.worktree.digest_cache import DigestCache
from patcher.worktree.manifest import Entry, Manifest

if TYPE_CHECKING:
    from patcher.remote.agent.serving import Request


class Difference:
    """Paths below the root. See `patcher.migrate.transfer.Difference`; `absent`: not there in any form."""

    def __init__(self) -> None:
        self.send: list[str] = []
        self.retire: list[str] = []
        self.overwritten: list[str] = []
        self.modes: list[str] = []
        self.absent: set[str] = set()
        self.same = 0

    @property
    def nothing(self) -> bool:
        return not (self.send or self.retire or self.modes)


class Comparison:
    """What `compare` was given and found, for `prepare` and `receive` on the same connection."""

    def __init__(self, wanted: Manifest, last: Manifest | None, difference: Difference, number: int) -> None:
        self.wanted = wanted
        self.last = last
        self.difference = difference
        self.number = number


def compare(request: Request) -> dict[str, Any]:
    """Body: the payload's manifest, packed. Of the answer, `send` and `modes` are numbers in its sorted paths.

    `pulled`: digests, by path, of what was edited here and taken over by the sender; that is not in `overwritten`.
    """
    root = root_of(request)
    wanted = manifest.unpack(request.body)
    _check(wanted)
    locked = request.kept.get("begun") is not None
    if locked:
        placement.recover(root)
    last = manifest.read(root)
    cache = DigestCache(root, os.path.join(root, layout.DIGESTS))
    found = differ(root, wanted, last, known=cache)
    if locked and last is not None:
        cache.save()
    earlier = request.kept.get("comparison")
    comparison = request.kept["comparison"] = Comparison(wanted, last, found, earlier.number + 1 if earlier else 1)
    if locked and found.nothing:
        _settle_down(root, None if _tells_the_same(last, wanted) else wanted)
    number = {path: at for at, path in enumerate(sorted(wanted.files))}
    pulled = request.args.get("pulled", {})
    there, _ = hashing.digests(root, [path for path in found.overwritten if path in pulled])
    known = {path for path, digest in there.items() if digest.sha256 == pulled[path]}
    return {
        "comparison": comparison.number,
        "send": [number[path] for path in found.send],
        "modes": [number[path] for path in found.modes],
        "retire": found.retire,
        "overwritten": [
            path for path in found.overwritten if path not in known and not path.startswith(layout.FOLDER + "/")
        ],
        "same": found.same,
    }


def _check(wanted: Manifest) -> None:
    folders = set()
    for path, entry in wanted.files.items():
        path_guard.check(path)
        if entry.link is not None:
            path_guard.check_link(path, entry.link)
        folders.add(os.path.dirname(path))
    for folder in folders:
        while folder:
            if folder in wanted.files:
                raise Refusal("path", phrase("{path}: is to be a file and a folder", path=ascii(folder)))
            folder = os.path.dirname(folder)


def differ(
    root: str,
    wanted: Manifest,
    last: Manifest | None,
    only: Iterable[str] | None = None,
    known: DigestCache | None = None,
) -> Difference:
    """Compare by content. `only`: of what is wanted these paths alone. Raises Refusal for what is in the way.

    `known`: digests of files that have not changed since they were read; without it all are read.
    """
    before = last.files if last else {}
    ground = path_guard.PathGuard(root)
    found = Difference()
    look = _Look(root, before, known)
    obstacles: set[str] = set()
    folders: list[str] = []
    doubtful: list[str] = []
    for path in sorted(wanted.files if only is None else only):
        obstacle = ground.obstacle(path)
        there = disk.status(os.path.join(root, path)) if ground.has_folder(path) else None
        if obstacle:
            obstacles.add(obstacle)
        if there is None:
            found.send.append(path)
            found.absent.add(path)
        elif stat.S_ISDIR(there.st_mode):
            found.send.append(path)
            found.absent.add(path)
            folders.append(path)
        else:
            look.at(path, there, wanted.files[path])
            doubtful.append(path)
    look.read()
    keeps_modes = _keeps_modes(root)
    for path in doubtful:
        entry = wanted.files[path]
        if not look.matches(path, entry):
            found.send.append(path)
            if not look.matches(path, before.get(path)):
                found.overwritten.append(path)
        elif entry.link is None and keeps_modes and look.mode(path) != entry.mode:
            found.modes.append(path)
        else:
            found.same += 1
    found.send.sort()
    _retire(root, wanted, before, found, obstacles)
    _refuse_foreign(root, folders, set(found.retire))
    return found


class _Look:
    """Files and links that are there; contents are read where size alone does not decide."""

    def __init__(self, root: str, before: dict[str, Entry], known: DigestCache | None = None) -> None:
        self._known = known
        self._root = root
        self._before = before
        self._there: dict[str, os.stat_result] = {}
        self._unread: list[str] = []
        self._digests: dict[str, hashing.Digest] = {}

    def at(self, path: str, there: os.stat_result, *entries: Entry | None) -> None:
        self._there[path] = there
        sizes = [entry.size for entry in (*entries, self._before.get(path)) if entry is not None]
        if stat.S_ISREG(there.st_mode) and there.st_size in sizes:
            self._unread.append(path)

    def read(self) -> None:
        known = self._known
        self._digests, _ = known.digests(self._unread) if known else hashing.digests(self._root, self._unread)

    def matches(self, path: str, entry: Entry | None) -> bool:
        """Whether what is at `path` has the content, or as a link the target, of `entry`."""
        if entry is None:
            return False
        if entry.link is not None:
            place = os.path.join(self._root, path)
            return stat.S_ISLNK(self._there[path].st_mode) and os.readlink(place) == entry.link
        digest = self._digests.get(path)
        return digest is not None and digest.sha256 == entry.sha256

    def mode(self, path: str) -> int:
        return stat.S_IMODE(self._there[path].st_mode) & 0o777


def _retire(root: str, wanted: Manifest, before: dict[str, Entry], found: Difference, obstacles: set[str]) -> None:
    """What goes: files of the last manifest, what stands in the way of a folder, the records' notes of another time."""
    ground = path_guard.PathGuard(root)
    look = _Look(root, before)
    going: list[str] = []
    for path in sorted({path for path in before if path not in wanted.files} | obstacles | _notes(root, wanted)):
        try:
            if ground.obstacle(path) or not ground.has_folder(path):
                continue
        except Refusal:
            continue
        there = disk.status(os.path.join(root, path))
        if there is not None and not stat.S_ISDIR(there.st_mode):
            look.at(path, there)
            going.append(path)
    look.read()
    found.retire = going
    found.overwritten += [path for path in going if not look.matches(path, before.get(path))]


def _notes(root: str, wanted: Manifest) -> set[str]:
    """The ledger and pre-images that are there of records which the payload does not have."""
    there = {layout.ORIGINALS + "/" + path for path in disk.files_below(os.path.join(root, layout.ORIGINALS))}
    if disk.status(os.path.join(root, layout.LEDGER)) is not None:
        there.add(layout.LEDGER)
    return {path for path in there if path not in wanted.files}


def _refuse_foreign(root: str, folders: list[str], going: set[str]) -> None:
    for folder in folders:
        for below in disk.files_below(os.path.join(root, folder)):
            path = folder + "/" + below
            if path not in going and not path.endswith(".pyc"):
                cause = phrase("on the host it is a folder, and {path} in it was not sent by uky-patch", path=path)
                advice = phrase("Move the folder away there, and run the command again.")
                raise Refusal("in-the-way", phrase("{path}: is to be a file", path=folder), cause, advice)


def _keeps_modes(root: str) -> bool:
    """Whether the file system keeps permission bits: our own folder was made for its owner alone."""
    ours = disk.status(os.path.join(root, layout.HOST))
    return ours is None or ours.st_uid != os.geteuid() or not stat.S_IMODE(ours.st_mode) & 0o077


def _tells_the_same(last: Manifest | None, wanted: Manifest) -> bool:
    """Whether both hold the same files of the same commit."""
    return last is not None and last._replace(tool="", time="") == wanted._replace(tool="", time="")


def _settle_down(root: str, wanted: Manifest | None) -> None:
    """All is there already: clear what came in for nothing, and write down whose the tree is."""
    try:
        placement.discard(root)
        if wanted is not None:
            disk.make_folders(os.path.join(root, layout.HOST), mode=0o700)
            manifest.save(root, wanted)
    except OSError as error:
        raise os_errors.refusal(error, root, 0) from error
