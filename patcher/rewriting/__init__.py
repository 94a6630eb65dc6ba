"""Rewrite one source text by one edit. Pure: nothing is read, nothing is written."""

from patcher.rewriting.engine import compiles, matches, rewrite
from patcher.rewriting.markers import Marker, markers
from patcher.rewriting.pattern import check_code, check_pattern, check_value, metavariables

__all__ = [
    "Marker",
    "check_code",
    "check_pattern",
    "check_value",
    "compiles",
    "markers",
    "matches",
    "metavariables",
    "rewrite",
]
