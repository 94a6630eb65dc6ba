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
import zlib
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from operator import attrgetter
from pathlib import Path, PosixPath
from typing import Any, Generic, TypeVar, cast
from weakref import WeakValueDictionary

from patcher.errors import UsageError
from patcher.packages.releases.cache import cache_root
from patcher.worktree import files

T = TypeVar("T")

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


class Packed(Generic[T]):
    """A value of this tool's own classes, which can be no more than its bytes while nobody asks for it.

    A matrix holds 16,000 functions of ten trees that way. Most are alike in several trees: of equal bytes there is one.
    """

    __slots__ = ("__weakref__", "_bytes", "_value")

    def __init__(self, value: T) -> None:
        self._value: T | None = value
        self._bytes = b""

    @property
    def value(self) -> T:
        """Another object with the same fields may come of it a while later."""
        if self._value is None:
            self._value = unpacked(zlib.decompress(self._bytes))
            self._hold()
        return cast("T", self._value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value!r})"

    def _hold(self) -> None:
        """Keep the value as it is until so many others were asked for."""
        _HELD.append(self)
        if len(_HELD) > _MOST_HELD:
            _HELD.popleft()._value = None

    def taken_apart(self) -> tuple[Callable[[bytes], Packed[Any]], tuple[bytes]]:
        """For the pickler. From here on the bytes are enough."""
        if not self._bytes:
            self._bytes = zlib.compress(packed(self._value), 1)
            self._bytes = _BY_BYTES.setdefault(self._bytes, self)._bytes
            self._hold()
        return shared, (self._bytes,)


_HELD: deque[Packed[Any]] = deque()
_MOST_HELD = 2000
"""Values that are not left as bytes: what two trees ask for of their functions. With 1,000 a matrix takes a twentieth
longer."""
_BY_BYTES: WeakValueDictionary[bytes, Packed[Any]] = WeakValueDictionary()


def shared(content: bytes) -> Packed[Any]:
    """The one value with these bytes."""
    found = _BY_BYTES.get(content)
    if found is None:
        found = _BY_BYTES[content] = Packed(None)
        found._bytes = content
    return found


def packed(values: object, *, apart: bool = False) -> bytes:
    """Values of this tool's own classes as bytes. Raises pickle.PicklingError for what cannot be that.

    `apart`: what is `Packed` is packed by itself, now and when it is read back. That takes a while longer."""
    content = io.BytesIO()
    pickler = pickle.Pickler(content, protocol=5)
    pickler.dispatch_table = _APART if apart else _WHOLE
    pickler.dump(values)
    return content.getvalue()


class _TakenApart(dict[type, Callable[[Any], tuple[Callable[..., Any], tuple[Any, ...]]]]):
    """By class: gives for an object the class and what to call it with to have the same object again.

    For named tuples and dataclasses that takes half the time of pickle's own way, and so does reading them back.
    """

    def __missing__(self, kind: type) -> Callable[[Any], tuple[Callable[..., Any], tuple[Any, ...]]]:
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


_WHOLE = _TakenApart({Packed: lambda of: (Packed, (of.value,))})
_APART = _TakenApart({Packed: Packed.taken_apart})


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
    (__name__, "Packed"): Packed,
    (__name__, "shared"): shared,
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
