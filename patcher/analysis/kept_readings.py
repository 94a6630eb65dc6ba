"""What the files of a tree or of a package say, kept in the user's cache folder for the next command on the same one.

Loading what a reading of a text found takes a tenth of the time of reading it again. What is kept is known by a hash of
the text and by the code that read it, so that nothing of another text, another Python or another version of this tool
is ever taken. Each reading lies packed by itself: a command unpacks those alone that it asks for.
"""

from __future__ import annotations

import pickle
import sys
import zlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from patcher.packages.releases import kept
from patcher.packages.releases.cache import stamps
from patcher.packages.releases.kept import Kept, packed, unpacked
from patcher.worktree import python

T = TypeVar("T")

_TREES = 24
"""Trees of which something is kept, the latest."""
_PACKAGES = 72
"""The same of packages, each release by itself: a check looks at some ten of them, and one takes 0.3 MB."""
_MOST_BYTES = 8 << 20
"""Of one tree, packed. All of verl 0.9.1 takes 2 MB, and each text that a file has had in between takes its part."""
_OVERHEAD = 250
"""Bytes of memory that a reading takes beside its own, so that many small ones are not kept either."""


class KeptReadings:
    """The readings of one tree, or of several that are always read together; or of one `package`."""

    def __init__(self, roots: Iterable[Path], *, package: bool = False, apart: bool = False) -> None:
        """`apart`: what was read stays in memory as bytes where it can: for who holds many trees."""
        self._apart = apart
        here = Path(__file__).parent
        # Rules ask the syntax of packages too.
        alone = stamps(Path(python.__file__).parent, "python.py"), stamps(Path(kept.__file__).parent, "kept.py")
        code = stamps(here), stamps(here.with_name("check")), *alone
        kind, most = ("modules", _PACKAGES) if package else ("readings", _TREES)
        self._kept = Kept(kind, [*roots, sys.version_info, *code], most)
        self._earlier: dict[bytes, bytes] = {}
        self._used: dict[bytes, bytes] = {}
        self._begun = False
        self._changed = False
        self._most = self._room = _MOST_BYTES * (2 if apart else 1)
        self._others: tuple[KeptReadings, ...] = ()

    def get(self, key: bytes, kind: type[T]) -> T | None:
        """The reading that was kept under this key; None if there is none, or if it is damaged."""
        if not self._begun:
            self._begun = True
            found = (self._kept.read() or {}).items()
            self._earlier = {key: one for key, one in found if isinstance(key, bytes) and isinstance(one, bytes)}
        content = self._used.get(key) or self._earlier.get(key)
        if content is None:
            return next((value for other in self._others if (value := other.get(key, kind)) is not None), None)
        with suppress(zlib.error):
            value = unpacked(zlib.decompress(content))
            if isinstance(value, kind):
                self._use(key, content)
                return value
        return None

    def also(self, others: Iterable[KeptReadings]) -> None:
        """From now on take from these what is not here."""
        self._others = tuple(others)

    def put(self, key: bytes, value: object) -> None:
        """Have a reading kept, once `keep` is called. Of a tree that is too large for all to be kept, the first are."""
        if self._room <= 0:
            return
        # A file may nest deeper than pickle follows.
        with suppress(pickle.PicklingError, RecursionError):
            content = zlib.compress(packed(value, apart=self._apart), 1)
            if (before := self._used.pop(key, None)) is not None:  # More is known of it by now.
                self._room += len(before) + _OVERHEAD
            self._use(key, content)
            self._changed = True

    def _use(self, key: bytes, content: bytes) -> None:
        if key not in self._used:
            self._used[key] = content
            self._room -= len(content) + _OVERHEAD

    def keep(self) -> None:
        """Keep what was read anew, and of earlier readings those asked for last, as far as there is room.

        All of it is let go of: who asks for more has it read from the disk again."""
        if self._changed:
            values, room = dict(self._used), self._room
            # Those that were asked for last come first.
            for key, content in self._earlier.items():
                if room > 0 and key not in values:
                    values[key] = content
                    room -= len(content) + _OVERHEAD
            self._kept.keep(values)
        self._earlier, self._used, self._room = {}, {}, self._most
        self._begun = self._changed = False
