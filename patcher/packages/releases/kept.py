"""Values that were computed once, kept as pickles in the user's cache folder, and read back as values alone.

A pickle can run code when it is read. So one counts only if this user has written it and nobody else could, and reading
makes nothing but this tool's dataclasses and named tuples, paths and plain values.
"""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from operator import attrgetter
from pathlib import Path, PosixPath
from typing import Any

from patcher.errors import UsageError
from patcher.packages.releases.cache import cache_root
from patcher.worktree import files

_MOST_BYTES = 64 << 20
"""The largest pickle that is read back: a guess far above all that were seen."""


class Kept:
    """One place of the cache: `kind` is its folder, `basis` all that the values depend on."""

    def __init__(self, kind: str, basis: Iterable[object], most: int) -> None:
        """`most`: how many of a kind are kept, the newest ones."""
        known = hashlib.sha256("\n".join(map(repr, basis)).encode(errors="replace")).hexdigest()[:32]
        self._most = most
        self._place: Path | None = None
        with suppress(UsageError):  # UKY_PATCH_CACHE names no folder: then nothing is kept.
            self._place = cache_root() / kind / f"{known}.pickle"

    def read(self) -> dict[Any, Any] | None:
        """What was kept; None where there is nothing, nothing that this user has written, or no mere values."""
        if self._place is None:
            return None
        try:
            content, found = files.read_and_status(self._place, _MOST_BYTES)
        except OSError:
            return None
        if found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return None
        kept = unpacked(content)
        with suppress(OSError):
            os.utime(self._place)
        return kept if isinstance(kept, dict) else None

    def keep(self, values: dict[Any, Any]) -> None:
        """Keep values of this tool's own classes. A cache that cannot be written is no error."""
        if self._place is None:
            return
        with suppress(OSError, pickle.PicklingError, RecursionError):
            self._place.parent.mkdir(parents=True, exist_ok=True)
            files.write_whole_file(self._place, packed(values), mode=0o600, durable=False)
            known: list[Path] = sorted(
                self._place.parent.glob("*.pickle"), key=lambda path: path.stat().st_mtime, reverse=True
            )
            for path in known[self._most :]:
                path.unlink()


def packed(values: object) -> bytes:
    """Values of this tool's own classes as bytes. Raises pickle.PicklingError for what cannot be that."""
    content = io.BytesIO()
    pickler = pickle.Pickler(content, protocol=5)
    pickler.dispatch_table = _TAKEN_APART
    pickler.dump(values)
    return content.getvalue()


class _TakenApart(dict[type, Callable[[Any], tuple[type, tuple[Any, ...]]]]):
    """By class: gives for an object the class and what to call it with to have the same object again.

    For named tuples and dataclasses that takes half the time of pickle's own way, and so does reading them back.
    """

    def __missing__(self, kind: type) -> Callable[[Any], tuple[type, tuple[Any, ...]]]:
        if issubclass(kind, tuple) and hasattr(kind, "_fields"):
            self[kind] = lambda of: (kind, tuple(of))
        elif is_dataclass(kind) and all(field.init and not field.kw_only for field in fields(kind)):
            names = [field.name for field in fields(kind)]
            # For one name `attrgetter` gives the value itself, and it does not take none at all.
            found = attrgetter(*names, names[0]) if names else None
            self[kind] = lambda of: (kind, found(of)[:-1] if found is not None else ())
        else:
            raise KeyError(kind)  # To pickle: it is to go its own way.
        return self[kind]


_TAKEN_APART = _TakenApart()


def unpacked(content: bytes) -> Any:
    """What these bytes hold; None where they are damaged, or hold anything but mere values."""
    try:
        return _Values(io.BytesIO(content)).load()
    except Exception:  # Damaged bytes raise whatever they like; the values are computed anew.
        return None


class _Values(pickle.Unpickler):
    """Reads back values alone: classes of this tool that only hold fields, paths, and two of Python's own constants."""

    def find_class(self, module: str, name: str) -> Any:
        return _class(module, name)


_PLAIN: dict[tuple[str, str], Any] = {
    ("pathlib", "PosixPath"): PosixPath,
    ("builtins", "Ellipsis"): ...,
    ("builtins", "complex"): complex,
}


@cache
def _class(module: str, name: str) -> Any:
    if (module, name) in _PLAIN:
        return _PLAIN[module, name]
    if module.partition(".")[0] == "patcher" and "." not in name:
        found = getattr(import_module(module), name, None)
        if isinstance(found, type) and (is_dataclass(found) or hasattr(found, "_fields")):
            return found
    raise pickle.UnpicklingError(f"{module}.{name}")
