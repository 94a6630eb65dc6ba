"""Values that were computed once, kept in the user's cache folder, and read back as values alone."""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import is_dataclass
from pathlib import Path, PosixPath
from typing import Any

from patcher.errors import UsageError
from patcher.packages.releases.cache import cache_root
from patcher.worktree import files

_MOST_BYTES = 64 << 20
"""Of what is kept in one place, a guess far above all that were seen."""


class Kept:
    """One place of the cache: `kind` is its folder, `basis` all that the values depend on."""

    def __init__(self, kind: str, basis: Iterable[object], most: int) -> None:
        """`most`: how many of a kind are kept, the newest ones."""
        known = hashlib.sha256("\n".join(map(repr, basis)).encode(errors="replace")).hexdigest()[:32]
        self._most = most
        self._place: Path | None = None
        with suppress(UsageError):  # UKY_PATCH_CACHE names no folder: then nothing is kept.
            self._place = cache_root(None) / kind / f"{known}.pickle"

    def read(self) -> dict[str, Any] | None:
        """What was kept; None where there is nothing, nothing that this user has written, or no mere values."""
        if self._place is None:
            return None
        try:
            content, found = files.read_and_status(self._place, _MOST_BYTES)
        except OSError:
            return None
        if found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return None
        try:
            kept = _Values(io.BytesIO(content)).load()
        except Exception:  # A damaged file raises whatever it likes; the values are computed anew.
            return None
        with suppress(OSError):
            os.utime(self._place)
        return kept if isinstance(kept, dict) else None

    def keep(self, values: dict[str, Any]) -> None:
        """Keep values of this tool's own classes. A cache that cannot be written is no error."""
        if self._place is None:
            return
        with suppress(OSError, pickle.PicklingError):
            self._place.parent.mkdir(parents=True, exist_ok=True)
            files.replace(self._place, pickle.dumps(values, protocol=5), mode=0o600, durable=False)
            known: list[Path] = sorted(
                self._place.parent.glob("*.pickle"), key=lambda path: path.stat().st_mtime, reverse=True
            )
            for path in known[self._most :]:
                path.unlink()


class _Values(pickle.Unpickler):
    """Reads back values alone: classes of this tool that only hold fields, and paths."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("pathlib", "PosixPath"):
            return PosixPath
        if module.partition(".")[0] == "patcher" and "." not in name:
            found = super().find_class(module, name)
            if isinstance(found, type) and is_dataclass(found):
                return found
        raise pickle.UnpicklingError(f"{module}.{name}")
