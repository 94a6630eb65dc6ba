"""What a folder of the cache holds: noted beside it when it was made, and compared whenever it is used.

A disk that was full, a crash, a cleaning script or an editor can damage what was fetched whole. Each use compares names
and sizes, and the times and inodes by which a file shows that nobody has written to it; where one of these differs, as
after the cache was copied, the file's hash decides.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from patcher.packages.releases.unpack import KEPT, whole_wheel
from patcher.worktree import files
from patcher.worktree.json_text import parse_json

_FORMAT = 1
_AT_ONCE = 16
_NOT_OURS = "__pycache__"
"""What Python makes where modules of the folder are imported; nothing is read from it."""

Stamp: TypeAlias = "list[int]"
"""Size, time of the last writing, time of the last change of any kind (both in nanoseconds), inode."""
_Noted: TypeAlias = "dict[str, list[object]]"
"""By path: the SHA-256, and the stamp."""


def note_of(place: Path) -> Path:
    """The file beside `place` that says what is in it."""
    return place.with_name(f".{place.name}.json")


def noted(place: Path, named: Path) -> None:
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
        doubtful = [path for path, stamp in found.items() if known[path][1:] != stamp]
        for path in doubtful:
            if known[path][1] != found[path][0] or known[path][0] != _sha256(place / path):
                return path
    except OSError as error:
        return str(error.filename or place.name)
    if doubtful:
        _write_if_allowed(place, {path: [known[path][0], *stamp] for path, stamp in found.items()})
    return ""


def listed(folder: Path) -> Mapping[str, tuple[str, int]]:
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
    """The first file that a wheel's RECORD describes otherwise; "" where there is none. Raises OSError."""
    for path, (sha256, size) in listed(folder).items():
        place = next((place for name in (path, whole_wheel(path)) if name and (place := folder / name).is_file()), None)
        if place is not None and (place.stat().st_size != size or _sha256(place) != sha256):
            return path
    return ""


def _by_record(place: Path, found: Mapping[str, Stamp]) -> str | None:
    told = listed(place)
    if not told:
        emptied = (path for path, stamp in found.items() if path.endswith("RECORD") and not stamp[0])
        return next(emptied, None if found else place.name)
    if wrong := against_record(place):
        return wrong
    names = {name for path in told for name in (path, whole_wheel(path)) if name}
    unknown = [path for path in found if path.endswith(KEPT) and path not in names]
    missing = [path for path in told if path.endswith(KEPT) and not {path, whole_wheel(path)} & found.keys()]
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
        told = parse_json(files.read(note_of(place), files.SOURCE_BYTES))
        found = told["files"]
        if told["format"] == _FORMAT and all(len(one) == 5 for one in found.values()):
            return dict(found)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        pass
    return None


def _write(place: Path, found: _Noted) -> None:
    files.replace(note_of(place), json.dumps({"format": _FORMAT, "files": found}).encode())


def _write_if_allowed(place: Path, found: _Noted) -> None:
    try:
        _write(place, found)
    except OSError:  # A cache that is only read is compared by hashes each time.
        return
