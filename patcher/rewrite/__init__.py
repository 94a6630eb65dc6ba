"""Rewrite one source text by one edit, with libcst. Pure: nothing is read or written.

libcst takes some 130 ms to import, so that it is imported with the first text that is rewritten or searched.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from patcher.rewrite.marker import Marker, markers

if TYPE_CHECKING:
    from patcher.rewrite.edits import CreateFile, Edit, Mark
    from patcher.rewrite.outcome import Outcome, Rewritten


def rewrite(source: str, edit: Edit, mark: Mark, *, may_touch: frozenset[str] = frozenset()) -> Outcome:
    """Make `edit` on a source text with its own newlines; what it does not concern stays as it is.

    `may_touch` names the records whose marked lines may be edited.
    """
    from patcher.rewrite.engine import rewrite

    return rewrite(source, edit, mark, may_touch=may_touch)


def create_file(edit: CreateFile, mark: Mark) -> Rewritten:
    """The outcome of an edit that makes a file, on a tree that has none of its name."""
    from patcher.rewrite.created import create_file

    return create_file(edit, mark)


def matches(source: str, pattern: str) -> tuple[int, ...]:
    """The lines, from 1, at which a pattern matches; none where the source is no Python."""
    from patcher.rewrite.engine import matches

    return matches(source, pattern)


def markers_of_edit(source: str, edit: Edit, word: str) -> frozenset[int]:
    """The lines with a marker that the places with the edit's effect account for; none where the text is no Python."""
    from patcher.rewrite.hand_made import markers_of_edit

    return markers_of_edit(source, edit, word)


def markers_of_pattern(source: str, pattern: str, word: str) -> frozenset[int]:
    """The same for the places that a pattern matches: upstream's fix, made by hand."""
    from patcher.rewrite.hand_made import markers_of_pattern

    return markers_of_pattern(source, pattern, word)


def forget() -> None:
    """Let go of the trees of the texts that were read."""
    for name in ("source", "excerpt"):
        if (module := sys.modules.get(f"{__name__}.{name}")) is not None:
            module.forget()


__all__ = [
    "Marker",
    "create_file",
    "forget",
    "markers",
    "markers_of_edit",
    "markers_of_pattern",
    "matches",
    "rewrite",
]
