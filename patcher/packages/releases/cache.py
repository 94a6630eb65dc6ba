"""A folder per release, complete or not there: built beside its place under a lock, then renamed into it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from patcher.error_messages import said
from patcher.errors import ReleaseError
from patcher.homes import cache_folder, expanded
from patcher.i18n import phrase
from patcher.packages.releases import contents
from patcher.worktree import files, locks

if TYPE_CHECKING:
    from patcher.i18n import Phrase

Progress: TypeAlias = Callable[["Phrase | str", int, "int | None"], None]
"""Told what is being done, how many bytes of it are done, and how many there are (None: not known)."""


PATIENCE = 600
"""Seconds for which another process that fetches the same is waited for: the largest wheel comes in less."""


def cache_root(given: Path | None) -> Path:
    """The cache's folder: as given, `$UKY_PATCH_CACHE`, or the user's cache folder. Raises UsageError."""
    if given is not None:
        return given
    if named := os.environ.get("UKY_PATCH_CACHE"):
        return expanded(named)
    return cache_folder()


def whole(place: Path) -> bool:
    """Whether a folder of the cache is there, and as it was when it was made."""
    return place.is_dir() and contents.damage(place) == ""


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
            for left in place.parent.glob(f".{place.name}.building-*"):
                shutil.rmtree(left, ignore_errors=True)
            folder = Path(tempfile.mkdtemp(prefix=f".{place.name}.building-", dir=place.parent))
            try:
                make(folder)
                folder.chmod(0o755)
                _drop(place)
                contents.noted(folder, place)
                folder.rename(place)
                files.sync_folder(str(place.parent))
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    except OSError as error:
        raise ReleaseError(
            phrase("cannot write to the cache {folder}", folder=place.parent),
            cause=said(error),
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
    told = phrase("waiting for another process that fetches {name}", name=name)
    try:
        lock = locks.take(path, locks.signature("fetch"), wait=PATIENCE, on_wait=lambda _: progress(told, 0, None))
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
