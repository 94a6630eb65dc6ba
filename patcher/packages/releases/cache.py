"""A folder per release, complete or not there, and as it was when it was made.

A folder is built beside its place under a lock, then renamed into it, with a note of what it holds beside it. A disk
that was full, a crash, a cleaning script or an editor can damage what was fetched whole, so each use compares names and
sizes, and the times and inodes by which a file shows that nobody has written to it. Where one of these differs, as
after the cache was copied, the file's hash decides.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from patcher.errors import ReleaseError, message_of
from patcher.homes import cache_folder, expanded
from patcher.i18n import phrase
from patcher.packages.releases.unpack import KEPT, whole_wheel
from patcher.worktree import files, locks
from patcher.worktree.json_text import parse_json

if TYPE_CHECKING:
    from patcher.i18n import Phrase

Progress: TypeAlias = Callable[["Phrase | str", int, "int | None"], None]
"""Called with what is being done, how many bytes of it are done, and how many there are (None: not known)."""


PATIENCE = 600
"""Seconds to wait for another process that fetches the same release. A guess above the time that the largest wheel
takes."""


def cache_root() -> Path:
    """The cache's folder: `$UKY_PATCH_CACHE`, or the user's cache folder. Raises UsageError for a name of no folder."""
    if named := os.environ.get("UKY_PATCH_CACHE"):
        return expanded(named)
    return cache_folder()


def stamps(folder: Path, ending: str = ".py") -> list[tuple[str, int, int]]:
    """Path, size and time of each file below whose name ends so, to see that one has changed without reading it."""
    found = []
    for below, _, names in os.walk(folder):
        for name in names:
            if name.endswith(ending):
                with suppress(OSError):
                    status = os.stat(path := f"{below}/{name}")  # noqa: PTH116  # Of thousands a `Path` takes longer.
                    found.append((path, status.st_size, status.st_mtime_ns))
    return sorted(found)


def whole(place: Path) -> bool:
    """Whether a folder of the cache is there, and as it was when it was made."""
    return place.is_dir() and damage(place) == ""


def cached_sources(name: str, version: str) -> Path | None:
    """The sources of a release if they are in the cache."""
    folder = sources_folder(name, version)
    return folder if whole(folder) else None


def sources_folder(name: str, version: str) -> Path:
    """Where the cache keeps the sources of a release."""
    return cache_root() / "releases" / name / version / "sources"


def build(place: Path, make: Callable[[Path], None], progress: Progress, name: Phrase | str = "") -> Path:
    """Return `place`; if it is not there, or damaged, let `make` fill a folder that becomes it as a whole.

    Of several processes one builds and the others wait. What a killed one left behind is removed. `name` is what
    messages call it.

    Raises:
        ReleaseError: the cache cannot be written to, or another process builds it for longer than `PATIENCE`.
    """
    if whole(place):
        return place
    name = name or place.name
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with _locked(place.with_name(f".{place.name}.lock"), progress, name):
            if whole(place):
                return place
            # Folders of killed processes: nobody else builds while the lock is held.
            for left in place.parent.glob(f".{place.name}.building-*"):
                shutil.rmtree(left, ignore_errors=True)
            folder = Path(tempfile.mkdtemp(prefix=f".{place.name}.building-", dir=place.parent))
            try:
                make(folder)
                folder.chmod(0o755)
                _drop(place)
                note_contents(folder, place)
                folder.rename(place)
                files.sync_folder(str(place.parent))
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    except OSError as error:
        raise ReleaseError(
            phrase("cannot write to the cache {folder}", folder=place.parent),
            cause=message_of(error),
            advice="Set UKY_PATCH_CACHE to a folder that can be written to and has room.",
        ) from error
    return place


def _drop(place: Path) -> None:
    """Take away what is damaged, whatever it is by now; it has another name while it goes."""
    if os.path.lexists(place):
        away = Path(tempfile.mkdtemp(prefix=f".{place.name}.building-", dir=place.parent))
        place.rename(away / place.name)
        shutil.rmtree(away, ignore_errors=True)


@contextmanager
def _locked(path: Path, progress: Progress, name: Phrase | str) -> Iterator[None]:
    """Hold the lock file; it is left in place, as removing it would let two processes hold two files of one name.

    Without locks on the file system several processes may fetch the same; the last one's folder stays.
    """
    message = phrase("waiting for another process that fetches {name}", name=name)
    try:
        lock = locks.take(path, locks.signature("fetch"), wait=PATIENCE, on_wait=lambda _: progress(message, 0, None))
    except locks.LockHeldError as error:
        pid, host = (str(error.owner.get(part, "")) for part in ("pid", "host"))
        by = phrase("held by process {pid} on {host}", pid=pid, host=host)
        raise ReleaseError(
            phrase(
                "another process has been fetching {name} for {minutes} {minutes:minute|minutes}",
                name=name,
                minutes=PATIENCE // 60,
            ),
            cause=by if host else phrase("the lock is {path}", path=path),
            advice="Wait until it has ended, or end it, and run the command again. Do not remove the lock file.",
        ) from error
    except locks.LockUnsupportedError:
        yield
        return
    with lock:
        yield


_FORMAT = 1
"""Of the note beside a folder; one of another form counts as none."""
_AT_ONCE = 16
"""Files that are flushed to the disk at a time. A guess: flushing waits, and disks take several requests at once."""
_NOT_OURS = "__pycache__"
"""What Python makes where modules of the folder are imported; nothing is read from it."""

Stamp: TypeAlias = "list[int]"
"""Size, time of the last writing, time of the last change of any kind (both in nanoseconds), inode."""
_Noted: TypeAlias = "dict[str, list[object]]"
"""By path: the SHA-256, and the stamp."""


def note_of(place: Path) -> Path:
    """The file beside `place` that says what is in it."""
    return place.with_name(f".{place.name}.json")


def note_contents(place: Path, named: Path) -> None:
    """Have all of `place` on the disk, and note what it holds beside `named`, where it is going to be.

    Raises OSError.
    """
    from concurrent.futures import ThreadPoolExecutor

    found = dict(_walk(place))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(lambda path: _on_disk(place / path), found))
    for folder, _, _ in os.walk(place):
        files.sync_folder(folder)
    _write(named, {path: [_sha256(place / path), *stamp] for path, stamp in found.items()})


def damage(place: Path) -> str | None:
    """The first file of `place` that is not as it was noted, "" where all are; None where nothing tells.

    A folder that an earlier version has made is compared with the RECORD of the wheel that it came from, once.
    """
    known = _read(place)
    try:
        found = dict(_walk(place))
        if known is None:
            return _by_record(place, found)
        if found.keys() != known.keys():
            return min(found.keys() ^ known.keys())
        # Hashing all files at each use would take seconds. A file with the size, times and inode that were noted is
        # unchanged.
        doubtful = [path for path, stamp in found.items() if known[path][1:] != stamp]
        for path in doubtful:
            # Another size is damage. Other times with the same hash come from copying the cache.
            if known[path][1] != found[path][0] or known[path][0] != _sha256(place / path):
                return path
    except OSError as error:
        return str(error.filename or place.name)
    if doubtful:
        _write_if_allowed(place, {path: [known[path][0], *stamp] for path, stamp in found.items()})
    return ""


def in_record(folder: Path) -> Mapping[str, tuple[str, int]]:
    """By path: the SHA-256 and the size that a wheel's RECORD gives, as far as it gives them. Raises OSError."""
    import base64
    import csv

    found: dict[str, tuple[str, int]] = {}
    for record in folder.glob("*.dist-info/RECORD"):
        text = files.read_text(record, files.SOURCE_BYTES, errors="replace")
        for row in csv.reader(text.splitlines()):
            if len(row) == 3 and row[1].startswith("sha256=") and row[2].isdecimal():
                digest = row[1].removeprefix("sha256=")
                try:
                    found[row[0]] = base64.urlsafe_b64decode(digest + "=" * (-len(digest) % 4)).hex(), int(row[2])
                except ValueError:
                    continue
    return found


def against_record(folder: Path) -> str:
    """The first file that a wheel's RECORD describes otherwise; "" where there is none. Raises OSError.

    METADATA does not count: torch's wheels up to 1.11 have one that was changed after their RECORD was written."""
    for path, (sha256, size) in in_record(folder).items():
        if path.endswith(".dist-info/METADATA"):
            continue
        place = next((place for name in (path, whole_wheel(path)) if name and (place := folder / name).is_file()), None)
        if place is not None and (place.stat().st_size != size or _sha256(place) != sha256):
            return path
    return ""


def _by_record(place: Path, found: Mapping[str, Stamp]) -> str | None:
    recorded = in_record(place)
    if not recorded:
        emptied = (path for path, stamp in found.items() if path.endswith("RECORD") and not stamp[0])
        return next(emptied, None if found else place.name)
    if wrong := against_record(place):
        return wrong
    names = {name for path in recorded for name in (path, whole_wheel(path)) if name}
    unknown = [path for path in found if path.endswith(KEPT) and path not in names]
    missing = [path for path in recorded if path.endswith(KEPT) and not {path, whole_wheel(path)} & found.keys()]
    if unknown or missing:
        return min(unknown + missing)
    _write_if_allowed(place, {path: [_sha256(place / path), *stamp] for path, stamp in found.items()})
    return ""


def _walk(place: Path) -> Iterator[tuple[str, Stamp]]:
    """All that is no folder below `place`, by its path. Raises OSError."""
    folders = [""]
    while folders:
        below = folders.pop()
        with os.scandir(place / below) as entries:
            for entry in entries:
                path = below + entry.name
                if entry.is_dir(follow_symlinks=False):
                    if entry.name != _NOT_OURS:
                        folders.append(path + "/")
                    continue
                status = entry.stat(follow_symlinks=False)
                regular = stat.S_ISREG(status.st_mode)
                yield path, [status.st_size if regular else -1, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with files.open_binary(path, follow=False) as stream:
        while piece := stream.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def _on_disk(path: Path) -> None:
    fd = files.open_regular(path)
    try:
        files.sync(fd)
    finally:
        os.close(fd)


def _read(place: Path) -> _Noted | None:
    try:
        note = parse_json(files.read(note_of(place), files.SOURCE_BYTES))
        found = note["files"]
        if note["format"] == _FORMAT and all(len(one) == 5 for one in found.values()):
            return dict(found)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        pass
    return None


def _write(place: Path, found: _Noted) -> None:
    files.write_whole_file(note_of(place), json.dumps({"format": _FORMAT, "files": found}).encode())


def _write_if_allowed(place: Path, found: _Noted) -> None:
    try:
        _write(place, found)
    except OSError:  # A cache that is only read is compared by hashes each time.
        return
