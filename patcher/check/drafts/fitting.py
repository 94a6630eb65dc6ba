"""Make an edit exact for a file: as many places as it has there, in the scope where that is needed."""

from __future__ import annotations

import dataclasses

from patcher.rewrite import rewrite
from patcher.rewrite.edits import Edit, Mark
from patcher.rewrite.outcome import AnchorAmbiguous, Overlap, Rewritten

_TRIAL = Mark("draft")


def fitted(edit: Edit, text: str, lines: frozenset[int], function: str) -> Edit | None:
    """The edit with its count, limited to `function` where it would reach beyond `lines`; None if it has no place."""
    outcome = rewrite(text, edit, _TRIAL)
    match outcome:
        case Rewritten() | Overlap():
            return edit
        case AnchorAmbiguous(lines=found):
            every = dataclasses.replace(edit, count=len(found))
            if set(found) <= lines or edit.within is not None or not function:
                return every
            inside = dataclasses.replace(edit, within=function)
            return fitted(inside, text, lines, function) or every
        case _:
            return None
