"""A folder per release, complete or not there: built beside its place under a lock, then renamed into it."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from patcher.errors import ReleaseError
from patcher.homes import cache_folder, expanded
from patcher.language import phrase
from patcher.language.said import said

if TYPE_CHECKING:
    from patcher.language import Phrase

Progress: TypeAlias = Callable[["Phrase | str", int, "int | None"], None]
"""Told what is being done, how many bytes of it are done, and how many there are (None: not known)."""


def cache_root(given: Path | None) -> Path:
    """The cache's folder: as given, `$UKY_PATCH_CACHE`, or the user's cache folder. Raises UsageError."""
    if given is not None:
        return given
    if named := os.environ.get("UKY_PATCH_CACHE"):
        return expanded(named)
    return cache_folder()


def build(place: Path, make: Callable[[Path], None], progress: Progress) -> Path:
    """Return `place`; if it is not there, let `make` fill a folder that becomes it as a whole.

    Of several processes one builds and the others wait. What a killed one left behind is removed.
    """
    if place.is_dir():
        return place
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with _locked(place.with_name(f".{place.name}.lock"), progress, place.name):
            if place.is_dir():
                return place
            for left in place.parent.glob(f".{place.name}.building-*"):
                shutil.rmtree(left, ignore_errors=True)
            folder = Path(tempfile.mkdtemp(prefix=f".{place.name}.building-", dir=place.parent))
            try:
                make(folder)
                folder.chmod(0o755)
                folder.rename(place)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    except OSError as error:
        raise ReleaseError(
            phrase("cannot write to the cache {folder}", folder=place.parent),
            cause=said(error),
            advice="Set UKY_PATCH_CACHE to a folder that can be written to and has room.",
        ) from error
    return place


@contextmanager
def _locked(path: Path, progress: Progress, name: str) -> Iterator[None]:
    """Hold the lock file; it is left in place, as removing it would let two processes hold two files of one name."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(phrase("waiting for another process that fetches {name}", name=name), 0, None)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
