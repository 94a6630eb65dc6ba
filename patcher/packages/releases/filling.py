"""Fill a folder with what is wanted of a release, the cheapest way first."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from patcher.errors import ReleaseError
from patcher.i18n import phrase
from patcher.packages.releases.contents import against_record
from patcher.packages.releases.index import File
from patcher.packages.releases.request import Request
from patcher.packages.releases.transfer import MOST_WHOLE, RangeFile, RangeRefusedError, TooLargeError
from patcher.packages.releases.unpack import Wanted, sdist_sources, unpack_tar, unpack_zip, wheel_sources, whole_wheel

Fill: TypeAlias = Callable[[Request, "list[File]", Path], None]


def fill_sources(request: Request, files: list[File], folder: Path) -> None:
    """Fill from the cheapest file: a local one, a pure wheel, parts of a wheel, a source archive, a whole wheel.

    Of what is not on this machine, at most `MOST_WHOLE` bytes are fetched of a file as a whole.
    """
    wheels = sorted((file for file in files if file.is_wheel), key=_preference)
    archives = [file for file in files if not file.is_wheel]
    ways: list[tuple[File, Callable[[Request, File, Path], None]]] = []
    if wheels:
        whole = _pure_wheel if wheels[0].is_pure else _wheel_for_sources
        ways += [(wheels[0], whole)] if wheels[0].is_pure or wheels[0].local is not None else []
        ways += [(wheels[0], _parts_of_wheel)] if wheels[0].local is None else []
    ways += [(file, _archive) for file in archives[:1]]
    if wheels and wheels[0].local is None and not wheels[0].is_pure:
        ways.append((wheels[0], _wheel_for_sources))
    refused: dict[str, int | None] = {}
    for file, way in ways:
        try:
            way(request, file, folder)
        except RangeRefusedError:
            _empty(folder)
        except TooLargeError as error:
            refused[file.filename] = error.size
            _empty(folder)
        else:
            return
    raise _too_large(request, refused)


def _too_large(request: Request, refused: Mapping[str, int | None]) -> ReleaseError:
    """Nothing small enough is offered: the wheel would have to come whole."""
    name, size = list(refused.items())[-1]
    most = MOST_WHOLE / 1e6
    sizes = {"file": name, "size": f"{size / 1e6:.0f}" if size is not None else f"> {most:.0f}", "most": f"{most:.0f}"}
    whole = "{file} has {size} MB, and files are fetched whole up to {most} MB"
    no_parts = "{places} sends no parts of files, {file} has {size} MB, and files are fetched whole up to {most} MB"
    cause = phrase(no_parts if name.endswith(".whl") else whole, places=request.index.places, **sizes)
    return ReleaseError(
        phrase("the sources of {name} {version} cannot be had in a small download", **request.asked),
        cause=cause,
        advice=phrase(
            "Use an index that answers range requests, put the wheel or the source archive into a folder named in "
            "PIP_FIND_LINKS, or give the folder of an installed {name} or of a checkout in place of the version.",
            name=request.name,
        ),
    )


def _pure_wheel(request: Request, file: File, folder: Path) -> None:
    _unpack_wheel(request, file, folder, whole_wheel, MOST_WHOLE)


def _wheel_for_sources(request: Request, file: File, folder: Path) -> None:
    _unpack_wheel(request, file, folder, wheel_sources, MOST_WHOLE)


def _parts_of_wheel(request: Request, file: File, folder: Path) -> None:
    remote = RangeFile(request.index.client, file.url, file.filename, request.progress)
    _expect_some(request, file, unpack_zip(remote, folder, wheel_sources, remote.expect))
    _expect_record(file, folder)


def _archive(request: Request, file: File, folder: Path) -> None:
    path = request.whole(file, folder, MOST_WHOLE)
    wanted = sdist_sources(request.module, f"{request.module}-{request.version}")
    unpack = unpack_zip if file.filename.endswith(".zip") else unpack_tar
    _expect_some(request, file, unpack(path, folder, wanted))
    if file.local is None:
        path.unlink()


def fill_wheel(request: Request, files: list[File], folder: Path) -> None:
    """Fill with everything in a wheel, however large it is."""
    wheels = sorted((file for file in files if file.is_wheel), key=_preference)
    if not wheels:
        raise ReleaseError(
            phrase("{name} {version} has no wheel", name=request.name, version=request.version),
            cause=phrase("looked in {places}", places=request.index.places),
        )
    _unpack_wheel(request, wheels[0], folder, whole_wheel, None)


def _unpack_wheel(request: Request, file: File, folder: Path, wanted: Wanted, most: int | None) -> None:
    path = request.whole(file, folder, most)
    _expect_some(request, file, unpack_zip(path, folder, wanted))
    _expect_record(file, folder)
    if file.local is None:
        path.unlink()


def _expect_record(file: File, folder: Path) -> None:
    """What was unpacked is what the wheel's own list says."""
    if wrong := against_record(folder):
        raise ReleaseError(
            phrase("{file} is damaged", file=file.filename),
            cause=phrase("{path} is not what its RECORD says", path=wrong),
            advice="Run the command again; if it stays so, report it to whoever runs the index.",
        )


def _empty(folder: Path) -> None:
    """Remove what a way that failed has left."""
    for part in folder.iterdir():
        if part.is_dir():
            shutil.rmtree(part)
        else:
            part.unlink()


def _expect_some(request: Request, file: File, count: int) -> None:
    if count == 0:
        raise ReleaseError(
            phrase("{file} holds no sources of {name}", file=file.filename, name=request.name),
            cause=phrase("fetched from {url}", url=file.shown),
        )


def _preference(file: File) -> tuple[bool, bool, bool, str]:
    """Wheels of one release differ in compiled parts alone; a stable choice makes every machine see the same."""
    return (
        not file.is_pure,
        file.local is None,
        "linux" not in file.filename or "x86_64" not in file.filename,
        file.filename,
    )
