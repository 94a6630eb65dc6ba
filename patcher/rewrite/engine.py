"""One edit on one source text: find its places, count them, and make it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence

from patcher.rewrite.arguments import add_argument, remove_argument, rename_argument
from patcher.rewrite.attributes import rename_attribute
from patcher.rewrite.code import Code, Scope, parse
from patcher.rewrite.edits import (
    AddArgument,
    Edit,
    Insert,
    Mark,
    MoveImport,
    RemoveArgument,
    RenameArgument,
    RenameAttribute,
    Replace,
)
from patcher.rewrite.hand_made import markers_of_effect
from patcher.rewrite.imports import move_import
from patcher.rewrite.marker import line_markers, marker_pattern
from patcher.rewrite.marking import mark_up, overlapping, splice_text
from patcher.rewrite.matching import find
from patcher.rewrite.nearest import nearest
from patcher.rewrite.outcome import (
    AlreadyDone,
    AnchorAmbiguous,
    AnchorMissing,
    Candidate,
    Outcome,
    Overlap,
    Rewritten,
    Unparseable,
)
from patcher.rewrite.pattern import pattern
from patcher.rewrite.removed import commented_out
from patcher.rewrite.replacing import insert, replace
from patcher.rewrite.shape import UNREADABLE
from patcher.rewrite.sites import Anchor, Sites, settle

_BOM = "\ufeff"


def rewrite(source: str, edit: Edit, mark: Mark, *, may_touch: frozenset[str] = frozenset()) -> Outcome:
    """Make `edit` on a source text with its own newlines; what it does not concern stays as it is.

    `may_touch` names the records whose marked lines may be edited.
    """
    code = parse(source.removeprefix(_BOM))
    if isinstance(code, Unparseable):
        return code
    scopes = code.within(edit.within)
    if not scopes:
        return AnchorMissing(edit.count, 0, nearest(code, scopes, edit))
    sites = settle(code, locate(code, scopes, edit, mark))
    found, effects = len(sites.anchors), len(sites.effects)
    if found > edit.count:
        return AnchorAmbiguous(edit.count, tuple(_line(code, anchor.node) for anchor in sites.anchors))
    if found == 0 and effects >= edit.count:
        return AlreadyDone(
            tuple(_line(code, node) for node in sites.effects),
            any(markers_of_effect(code, node, edit, mark.word) for node in sites.effects),
        )
    if found == 0 and isinstance(edit, Replace) and not edit.replacement.strip():
        spans = commented_out(code, scopes, pattern(edit.pattern), marker_pattern(mark.word))
        if len(spans) >= edit.count:
            inside = [code.line(number) for first, last in spans for number in range(first, last + 1)]
            return AlreadyDone(
                tuple(first for first, _ in spans), any(line_markers(line, mark.word) for line in inside)
            )
    if found < edit.count and found + effects != edit.count:
        return AnchorMissing(edit.count, found, nearest(code, scopes, edit))
    if found == 0:
        return AnchorMissing(edit.count, found, nearest(code, scopes, edit))
    by_hand = sites.effects if found < edit.count else ()
    outcome = _make(code, sites.anchors, by_hand, mark, may_touch)
    if isinstance(outcome, Rewritten) and source.startswith(_BOM):
        return Rewritten(_BOM + outcome.source, outcome.lines, outcome.by_hand)
    return outcome


def matches(source: str, wanted: str) -> tuple[int, ...]:
    """The lines, from 1, at which a pattern matches; none where the source is no Python."""
    code = parse(source.removeprefix(_BOM))
    if isinstance(code, Unparseable):
        return ()
    return tuple(_line(code, place.nodes[0]) for place in find(code, (code.tree,), pattern(wanted)))


def compiles(source: str) -> Unparseable | None:
    """Why a source is no Python, or None where it is."""
    code = parse(source.removeprefix(_BOM))
    return code if isinstance(code, Unparseable) else None


def locate(code: Code, scopes: Sequence[Scope], edit: Edit, mark: Mark) -> Sites:
    """The places that an edit is about."""
    match edit:
        case MoveImport():
            return move_import(code, scopes, edit)
        case RenameArgument():
            return rename_argument(code, scopes, edit)
        case RemoveArgument():
            return remove_argument(code, scopes, edit)
        case AddArgument():
            return add_argument(code, scopes, edit)
        case RenameAttribute():
            return rename_attribute(code, scopes, edit)
        case Replace():
            return replace(code, scopes, edit, mark)
        case Insert():
            return insert(code, scopes, edit)


def _make(
    code: Code, anchors: Sequence[Anchor], by_hand: Sequence[ast.AST], mark: Mark, may_touch: frozenset[str]
) -> Outcome:
    for anchor in anchors:
        if not isinstance(anchor.node, ast.Module):
            line = _line(code, anchor.node)
            for record in line_markers(code.line(line), mark.word):
                if record is not None and record != mark.record and record not in may_touch:
                    return Overlap(line, record)
    hidden = next((anchor.node for anchor in anchors if _misplaced(code, anchor.node)), None)
    if hidden is not None:
        line = _line(code, code.statement(hidden))
        return AnchorMissing(len(anchors), len(anchors) - 1, Candidate(line, code.line(line).strip()))
    splices = [splice for anchor in anchors for splice in anchor.splices()]
    if overlapping(splices):
        return AnchorAmbiguous(len(anchors) - 1, tuple(_line(code, anchor.node) for anchor in anchors))
    try:
        marked = mark_up(code, splices, mark, may_touch)
    except UNREADABLE:
        broken = parse(splice_text(code.text, splices))
        if isinstance(broken, Unparseable):
            return broken
        raise
    if isinstance(marked, Overlap):
        return marked
    result = parse(marked.text)
    if isinstance(result, Unparseable):
        return result
    return Rewritten(marked.text, marked.lines, tuple(marked.moved(_line(code, node)) for node in by_hand))


def _misplaced(code: Code, node: ast.AST) -> bool:
    """Whether a node in an f-string does not stand where Python, before 3.12, says it does."""
    if sys.version_info >= (3, 12) or not any(isinstance(above, ast.JoinedStr) for above in code.ancestors(node)):
        return False
    text = code.segment(node)
    read = parse(f"f({text})" if isinstance(node, ast.keyword) else text)
    return isinstance(read, Unparseable) or not any(ast.dump(part) == ast.dump(node) for part in read.parents)


def _line(code: Code, node: ast.AST) -> int:
    return 1 if isinstance(node, ast.Module) else code.line_of(code.start(node))
