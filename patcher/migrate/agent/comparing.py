"""Compare the payload of a migration with the tree on this machine; an interrupted commit is finished first."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Any, Iterable, NamedTuple

from patcher.messages import Refusal, phrase
from patcher.remote.agent.place import root as root_of
from patcher.worktree import disk, hashing, layout, manifest, os_errors, path_guard, placement
from patcher.worktree.digest_cache import DigestCache
from patcher.worktree.manifest import Entry, Manifest

if TYPE_CHECKING:
    from patcher.remote.agent.serving import Request


class Difference:
    """As `patcher.migrate.transfer.Difference`, and `absent`: those of `send` that do not exist here."""

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


class Comparison(NamedTuple):
    """What `compare` was given and has found, kept for `prepare` and `receive` on the same connection."""

    wanted: Manifest
    """Of the payload."""
    last: Manifest | None
    """Of the last migration."""
    difference: Difference
    number: int


def compare(request: Request) -> dict[str, Any]:
    """Compare. The body is the payload's manifest, packed.

    `pulled`: the digests, by path, of edits made here that the sender has taken over; they do not count as overwritten.
    The answer is `patcher.migrate.transfer.Difference`; `send` and `modes` are indices into the manifest's sorted
    paths, which take less room than the paths.
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
        _finish_without_transfer(root, None if _same_files(last, wanted) else wanted)
    number = {path: at for at, path in enumerate(sorted(wanted.files))}
    brought = last.files if last is not None else {}
    pulled = request.args.get("pulled", {})
    there, _ = hashing.digests(root, [path for path in found.overwritten if path in pulled])
    known = {path for path, digest in there.items() if digest.sha256 == pulled[path]}
    return {
        "comparison": comparison.number,
        "send": [number[path] for path in found.send],
        "modes": [number[path] for path in found.modes],
        "removed": [
            path for path in sorted(found.absent) if path in brought and not path.startswith(layout.FOLDER + "/")
        ],
        "retire": found.retire,
        "overwritten": [
            path for path in found.overwritten if path not in known and not path.startswith(layout.FOLDER + "/")
        ],
        "same": found.same,
    }


def _check(wanted: Manifest) -> None:
    """Raise Refusal for a path that may not be sent, or that is a file and a folder."""
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
    """Compare by content. `last` is the manifest of the last migration, to tell what was changed since.

    `only`: compare only these paths of `wanted`. `known`: a cache of digests; without it all files are read. Raises
    Refusal if something that this tool did not send is in the way.
    """
    before = last.files if last else {}
    guard = path_guard.PathGuard(root)
    found = Difference()
    look = _Look(root, before, known)
    obstacles: set[str] = set()
    folders: list[str] = []
    doubtful: list[str] = []
    for path in sorted(wanted.files if only is None else only):
        obstacle = guard.obstacle(path)
        there = disk.status(os.path.join(root, path)) if guard.has_folder(path) else None
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
            look.add(path, there, wanted.files[path])
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
    """Compares files and symlinks here with manifest entries. A file is read only if it has the size of an entry."""

    def __init__(self, root: str, before: dict[str, Entry], known: DigestCache | None = None) -> None:
        """`before`: the entries of the last manifest."""
        self._known = known
        self._root = root
        self._before = before
        self._there: dict[str, os.stat_result] = {}
        self._unread: list[str] = []
        self._digests: dict[str, hashing.Digest] = {}

    def add(self, path: str, there: os.stat_result, wanted: Entry | None = None) -> None:
        """Note a file for `read`. `there` is its status; it will be compared with `wanted` and the last manifest."""
        self._there[path] = there
        sizes = [entry.size for entry in (wanted, self._before.get(path)) if entry is not None]
        if stat.S_ISREG(there.st_mode) and there.st_size in sizes:
            self._unread.append(path)

    def read(self) -> None:
        """Read the files noted."""
        known = self._known
        self._digests, _ = known.digests(self._unread) if known else hashing.digests(self._root, self._unread)

    def matches(self, path: str, entry: Entry | None) -> bool:
        """Whether the file at `path` has the content of `entry`, or the symlink its target."""
        if entry is None:
            return False
        if entry.link is not None:
            place = os.path.join(self._root, path)
            return stat.S_ISLNK(self._there[path].st_mode) and os.readlink(place) == entry.link
        digest = self._digests.get(path)
        return digest is not None and digest.sha256 == entry.sha256

    def mode(self, path: str) -> int:
        """The permission bits of the file at `path`."""
        return stat.S_IMODE(self._there[path].st_mode) & 0o777


def _retire(root: str, wanted: Manifest, before: dict[str, Entry], found: Difference, obstacles: set[str]) -> None:
    """Add to `found` the files that will be moved aside.

    They are files of the last manifest that are not wanted any more, what is in the place of a folder, and the ledger
    and pre-images of records that the payload does not have.
    """
    guard = path_guard.PathGuard(root)
    look = _Look(root, before)
    going: list[str] = []
    for path in sorted({path for path in before if path not in wanted.files} | obstacles | _notes(root, wanted)):
        try:
            if guard.obstacle(path) or not guard.has_folder(path):
                continue
        except Refusal:
            continue
        there = disk.status(os.path.join(root, path))
        if there is not None and not stat.S_ISDIR(there.st_mode):
            look.add(path, there)
            going.append(path)
    look.read()
    found.retire = going
    found.overwritten += [path for path in going if not look.matches(path, before.get(path))]


def _notes(root: str, wanted: Manifest) -> set[str]:
    """The ledger and pre-images here that the payload does not have."""
    there = {layout.ORIGINALS + "/" + path for path in disk.files_below(os.path.join(root, layout.ORIGINALS))}
    if disk.status(os.path.join(root, layout.LEDGER)) is not None:
        there.add(layout.LEDGER)
    return {path for path in there if path not in wanted.files}


def _refuse_foreign(root: str, folders: list[str], going: set[str]) -> None:
    """Raise Refusal if a folder that must become a file has files in it that this tool did not send."""
    for folder in folders:
        for below in disk.files_below(os.path.join(root, folder)):
            path = folder + "/" + below
            if path not in going and not path.endswith(".pyc"):
                cause = phrase("on the host it is a folder, and {path} in it was not sent by uky-patch", path=path)
                advice = phrase("Move the folder away there, and run the command again.")
                raise Refusal("in-the-way", phrase("{path}: is to be a file", path=folder), cause, advice)


def _keeps_modes(root: str) -> bool:
    """Whether the file system stores permission bits. Some (FAT, SMB) show the same bits for every file.

    Our own folder was made with mode 0700: if it has other bits now, they are not stored.
    """
    ours = disk.status(os.path.join(root, layout.HOST))
    return ours is None or ours.st_uid != os.geteuid() or not stat.S_IMODE(ours.st_mode) & 0o077


def _same_files(last: Manifest | None, wanted: Manifest) -> bool:
    """Whether both hold the same files of the same commit."""
    return last is not None and last._replace(tool="", time="") == wanted._replace(tool="", time="")


def _finish_without_transfer(root: str, wanted: Manifest | None) -> None:
    """The tree is as wanted already: remove what an interrupted transfer has left, and write a new manifest."""
    try:
        placement.discard(root)
        if wanted is not None:
            disk.make_folders(os.path.join(root, layout.HOST), mode=0o700)
            manifest.save(root, wanted)
    except OSError as error:
        raise os_errors.refusal(error, root, 0) from error
