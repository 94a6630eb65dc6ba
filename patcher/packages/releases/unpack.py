"""Take the wanted members out of a wheel or a source archive. Names and sizes in an archive are not to be trusted.

Refused are members whose path leads out of the folder, members of another size than the archive says, archives that
would unpack to more than `MOST_BYTES` (a zip bomb), and those with more than `MOST_MEMBERS` wanted files.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable
from io import RawIOBase
from pathlib import Path, PurePosixPath
from typing import IO

from patcher.errors import ReleaseError
from patcher.i18n import phrase

KEPT = (".py", ".yaml", ".yml")
MOST_BYTES = 1 << 30
"""Bytes that one release may unpack to. A guess above the sources of torch; an archive that claims more is a bomb."""
MOST_MEMBERS = 100_000
"""How many of its files are wanted: of vLLM 2,000, of torch 15,000."""

Wanted = Callable[[str], "str | None"]
"""The path that a member is to have below the target folder, or None to leave it out."""


def wheel_sources(name: str) -> str | None:
    """Of a wheel: Python and YAML files, METADATA, and RECORD for the names of compiled modules."""
    return name if name.endswith(KEPT) or re.fullmatch(r"[^/]+\.dist-info/(METADATA|RECORD)", name) else None


def whole_wheel(name: str) -> str | None:
    """Of a wheel: everything, with the parts that installers move (`….data/purelib`) where they belong."""
    parts = name.split("/")
    if len(parts) > 2 and parts[0].endswith(".data") and parts[1] in ("purelib", "platlib"):
        return "/".join(parts[2:])
    return None if name.endswith("/") else name


def sdist_sources(module: str, distribution: str) -> Wanted:
    """Of a source archive: the package `module`, at the top or below `src` or `python`, and the metadata."""

    def wanted(name: str) -> str | None:
        parts = name.split("/")[1:]
        if parts == ["PKG-INFO"]:
            return f"{distribution}.dist-info/METADATA"
        if parts and parts[0] in ("src", "python"):
            parts = parts[1:]
        return "/".join(parts) if len(parts) > 1 and parts[0] == module and name.endswith(KEPT) else None

    return wanted


def unpack_zip(
    source: Path | RawIOBase,
    target: Path,
    wanted: Wanted,
    expect: Callable[[list[tuple[int, int]]], None] = lambda _: None,
) -> int:
    """Unpack the wanted members, checksums verified; return how many. Members are read in the archive's order.

    `expect` is called with the bytes from and to which each will be read.
    """
    import zipfile  # A release that is in the cache needs neither this nor tarfile.

    try:
        with zipfile.ZipFile(source) as archive:
            members = sorted(archive.infolist(), key=lambda member: member.header_offset)
            chosen = [(member, path) for member in members if (path := wanted(member.filename)) is not None]
            _check_count(len(chosen))
            _check_size(member.file_size for member, _ in chosen)
            begins = [member.header_offset for member in members]
            ends = dict(zip(members, [*begins[1:], archive.start_dir], strict=True))
            expect([(member.header_offset, ends[member]) for member, _ in chosen])
            for member, path in chosen:
                with archive.open(member) as opened:
                    _write(target, path, _read(opened, member.file_size))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise ReleaseError("the downloaded wheel is damaged", cause=str(error)) from error
    return len(chosen)


def unpack_tar(source: Path, target: Path, wanted: Wanted) -> int:
    """Unpack the wanted members that are plain files; return how many."""
    import tarfile

    count, total = 0, 0
    try:
        with tarfile.open(source, "r:*") as archive:
            for member in archive:
                if not member.isfile() or (path := wanted(member.name)) is None:
                    continue
                total += member.size
                _check_count(count)
                _check_size([total])
                if (file := archive.extractfile(member)) is not None:
                    _write(target, path, _read(file, member.size))
                    count += 1
    except (tarfile.TarError, zlib.error, EOFError) as error:
        raise ReleaseError("the downloaded source archive is damaged", cause=str(error)) from error
    return count


def _write(target: Path, name: str, content: bytes) -> None:
    pure = PurePosixPath(name)
    # A member must not leave the target folder: `../../etc/passwd`, `C:\\x`.
    if pure.is_absolute() or ".." in pure.parts or "\\" in name or "\0" in name or not pure.parts:
        raise ReleaseError(
            phrase("the archive holds a member with an unsafe path: {name!r}", name=name),
            advice="Do not use this file; report it to whoever runs the index.",
        )
    path = target.joinpath(*pure.parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _read(member: IO[bytes], size: int) -> bytes:
    """The member's bytes, which may be more than the archive says of it, or less."""
    content = member.read(size + 1)
    if len(content) != size:
        raise ReleaseError("the archive holds a member of another size than it says")
    return content


def _check_count(members: int) -> None:
    if members > MOST_MEMBERS:
        raise ReleaseError(
            phrase("the archive holds more than {count} files, more than any release does", count=MOST_MEMBERS)
        )


def _check_size(sizes: Iterable[int]) -> None:
    if (total := sum(sizes)) > MOST_BYTES:
        raise ReleaseError(
            phrase("the archive would unpack to {size} MB, more than any release does", size=total >> 20)
        )
