"""By which of its paths a symbol is best imported: public, there in the neighbouring releases, short."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from patcher.analysis.symbols import Absent, Symbols, Unknown


def best_path(paths: Iterable[str], near: Sequence[Symbols]) -> str:
    """The path that promises to last the longest. `near` are the releases next to the target."""
    return min(paths, key=lambda path: (_is_private(path), -_lasts(path, near), path.count("."), path))


def _is_private(path: str) -> bool:
    return any(part.startswith("_") for part in path.split(".")[:-1])


def _lasts(path: str, near: Sequence[Symbols]) -> int:
    return sum(not isinstance(symbols.resolve(path).definition, Absent | Unknown) for symbols in near)
