"""Short ways to make an edit in a test and to say what must come of it."""

from __future__ import annotations

import ast
from textwrap import dedent

from patcher.rewrite import rewrite
from patcher.rewrite.edits import Edit, Mark, Style
from patcher.rewrite.outcome import AlreadyDone, Rewritten

FILE = "verl/some/file.py"


def text(source: str) -> str:
    return dedent(source).removeprefix("\n")


def made(source: str, edit: Edit, *, style: Style = "comment", may_touch: frozenset[str] = frozenset()) -> str:
    """The rewritten source. A second run leaves it alone, and it parses."""
    mark = Mark("rec", style=style)
    outcome = rewrite(source, edit, mark, may_touch=may_touch)
    assert isinstance(outcome, Rewritten), outcome
    ast.parse(outcome.source.removeprefix("\ufeff"))
    again = rewrite(outcome.source, edit, mark)
    assert isinstance(again, AlreadyDone), again
    return outcome.source


def check(edit: Edit, before: str, after: str, *, style: Style = "comment") -> None:
    assert made(text(before), edit, style=style) == text(after)
