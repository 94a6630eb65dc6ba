"""The tool as one archive, for nodes that do not have it: its own sources and the two libraries that an apply needs."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import patcher
from patcher.data import shipped
from patcher.worktree import files

LIBRARIES = ("click", "packaging", "tomli")
"""Pure Python, all of them. `tomli` is only there, and only needed, before Python 3.11."""
DATA = ("patches", "settings")
OWN = "own-patches"
"""The folder that holds the records of `--patches`, each folder under its number."""
_EPOCH = (1980, 1, 1, 0, 0, 0)


def packed(folders: Sequence[Path] = ()) -> bytes:
    """A zip archive to be unpacked and put on `sys.path`; the same tool gives the same bytes.

    `folders` are further folders of records. Raises OSError where one cannot be read.
    """
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in sorted(_files(folders)):
            archive.writestr(
                zipfile.ZipInfo(name, _EPOCH), files.read(path, files.SOURCE_BYTES, follow=True), zipfile.ZIP_DEFLATED
            )
    return stream.getvalue()


def _files(folders: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    package = Path(patcher.__file__).parent
    for path in package.rglob("*"):
        if path.suffix in (".py", ".toml") and "data" not in path.relative_to(package).parts:
            yield f"patcher/{path.relative_to(package).as_posix()}", path
    for kind in DATA:
        for path in shipped(kind).glob("*.toml"):
            yield f"patcher/data/{kind}/{path.name}", path
    for number, folder in enumerate(folders):
        for path in folder.glob("*.toml"):
            yield f"{OWN}/{number}/{path.name}", path
    for name in LIBRARIES:
        yield from _library(name)


def _library(name: str) -> Iterator[tuple[str, Path]]:
    spec = find_spec(name)
    if spec is None or spec.submodule_search_locations is None:
        return
    folder = Path(spec.submodule_search_locations[0])
    for path in folder.rglob("*.py"):
        yield f"{name}/{path.relative_to(folder).as_posix()}", path
