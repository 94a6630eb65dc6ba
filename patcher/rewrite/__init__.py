"""Rewrite one source text by one edit. Pure: nothing is read, nothing is written, nothing heavy imported."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from patcher.rewrite.engine import compiles, matches, rewrite
    from patcher.rewrite.hand_made import markers_of_edit, markers_of_pattern
    from patcher.rewrite.marker import Marker, markers
    from patcher.rewrite.pattern import check_code, check_pattern, check_value, metavariables

_HOMES = {
    "Marker": "marker",
    "check_code": "pattern",
    "check_pattern": "pattern",
    "check_value": "pattern",
    "compiles": "engine",
    "markers": "marker",
    "markers_of_edit": "hand_made",
    "markers_of_pattern": "hand_made",
    "matches": "engine",
    "metavariables": "pattern",
    "rewrite": "engine",
}

__all__ = [
    "Marker",
    "check_code",
    "check_pattern",
    "check_value",
    "compiles",
    "markers",
    "markers_of_edit",
    "markers_of_pattern",
    "matches",
    "metavariables",
    "rewrite",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
