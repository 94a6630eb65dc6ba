"""Whether the packages of an environment have a symbol.

Of a release whose sources lie in the user's cache the answers are kept there: neither these sources nor what they say
ever changes, and to parse them takes a tenth of an `apply`. What is installed can be edited in place, and is read.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from patcher import __version__
from patcher.packages.releases.cache import stamps
from patcher.packages.releases.kept import Kept

if TYPE_CHECKING:
    from patcher.analysis.symbols import Symbols

_RELEASES = 64
"""Of which answers are kept, the latest asked. The answers for all shipped records take some 5 kB."""


class SymbolAnswers:
    """What one package has."""

    def __init__(self, package: Path, *, lasting: bool) -> None:
        """`package`: the folder of its sources; `lasting`: they never change."""
        self._package = package
        self._symbols: Symbols | None = None
        self._kept: Kept | None = None
        if lasting:
            rooms = Path(__file__).parents[1]
            code = stamps(rooms / "analysis"), stamps(rooms / "worktree", "python.py")
            self._kept = Kept("symbols", [__version__, sys.version_info, package, *code], _RELEASES)
        self._answers: dict[str, bool | None] = (self._kept.read() or {}) if self._kept is not None else {}
        self._changed = False

    def has(self, symbol: str) -> bool | None:
        """Whether `pkg.mod.Class.attribute` or `pkg.mod.function(parameter)` is there; None: undecidable."""
        if symbol not in self._answers:
            if self._symbols is None:
                from patcher.analysis.symbols import Symbols

                self._symbols = Symbols(self._package)
            self._answers[symbol] = self._symbols.has(symbol)
            self._changed = True
        return self._answers[symbol]

    def keep(self) -> None:
        """Keep what was asked anew for the next command."""
        if self._changed and self._kept is not None:
            self._kept.keep(self._answers)
        self._changed = False
