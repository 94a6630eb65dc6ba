"""Releases around the target, as witnesses: the last that had a symbol, and those next to the target."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from patcher.analysis.symbols import Symbols

if TYPE_CHECKING:
    from packaging.version import Version

SymbolsOf = Callable[[str, str], "Symbols | None"]
"""The sources of a release by import name and version; None where they are not to be had."""
_NEAR = 2
_STRIDE = 4
"""Releases that are passed over at a time on the way back: a symbol may have been there for a few only."""


class Releases:
    """Versions by import name, and how to look into each. Without any, the target alone bears witness."""

    def __init__(self, versions: Mapping[str, Sequence[str]] | None = None, symbols: SymbolsOf | None = None) -> None:
        self._versions = {package: _ordered(known) for package, known in (versions or {}).items()}
        self._symbols = symbols or (lambda _package, _version: None)
        self._kept: dict[tuple[str, str], Symbols | None] = {}
        self._last: dict[tuple[str, str, str, str | None], str | None] = {}

    def last_with(self, package: str, symbol: str, target: str, since: str | None = None) -> Symbols | None:
        """The last release below `target` that offers `symbol`, in form of `has`.

        `since` is the first that lacks it, where that is known.
        """
        version = self._last_version(package, symbol, target, since)
        return self._of(package, version) if version is not None else None

    def first_without(self, package: str, symbol: str, target: str) -> str | None:
        """The release after the last one that offers `symbol`; None where no earlier one is known to."""
        last = self._last_version(package, symbol, target, None)
        later = [version for version in self._versions.get(package, []) if last and _key(version) > _key(last)]
        return later[0] if later else None

    def _last_version(self, package: str, symbol: str, target: str, since: str | None) -> str | None:
        key = (package, symbol, target, since)
        if key not in self._last:
            self._last[key] = self._find_last(package, symbol, since or target)
        return self._last[key]

    def near(self, package: str, target: str) -> list[Symbols]:
        """The releases next to the target, older and newer."""
        known = self._versions.get(package, [])
        older, newer = _below(known, target), [version for version in known if _key(version) > _key(target)]
        found = (self._of(package, version) for version in (*older[-_NEAR:], *newer[:_NEAR]))
        return [symbols for symbols in found if symbols is not None]

    def _find_last(self, package: str, symbol: str, end: str) -> str | None:
        """Go back in growing steps to a release that has it, then halve the way to the first that lacks it."""
        older = _below(self._versions.get(package, []), end)
        lacking, having, step = len(older), -1, 1
        while lacking > 0 and having < 0:
            at = max(lacking - step, 0)
            if self._has(package, older[at], symbol):
                having = at
            else:
                lacking, step = at, min(step * 2, _STRIDE)
        while having >= 0 and lacking - having > 1:
            middle = (having + lacking) // 2
            having, lacking = (middle, lacking) if self._has(package, older[middle], symbol) else (having, middle)
        return older[having] if having >= 0 else None

    def _has(self, package: str, version: str, symbol: str) -> bool:
        symbols = self._of(package, version)
        return symbols is not None and symbols.has(symbol) is True

    def _of(self, package: str, version: str) -> Symbols | None:
        key = (package, version)
        if key not in self._kept:
            self._kept[key] = self._symbols(package, version)
        return self._kept[key]


def _below(ordered: Sequence[str], version: str) -> list[str]:
    return [known for known in ordered if _key(known) < _key(version)]


def _ordered(versions: Sequence[str]) -> list[str]:
    from patcher.packages.agent.folders import is_pep440

    return sorted(filter(is_pep440, versions), key=_key)


def _key(version: str) -> Version:
    from packaging.version import InvalidVersion, Version

    try:
        return Version(version)
    except InvalidVersion:
        return Version("999999")
