"""One edit on one source text: find its places, count them, and make it.

`count` of the edit decides: with as many anchors as it asks for, each is changed; with more, the edit is ambiguous;
with fewer, an anchor is missing, unless places that a hand has edited already make up for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import libcst as cst

from patcher.rewrite.changes import make
from patcher.rewrite.created import recognise_file
from patcher.rewrite.edits import CreateFile, Edit, Mark, ReplaceLines, SetRequirement, SetValue, SyntaxEdit
from patcher.rewrite.excerpt import excerpt_for, excerpts_with
from patcher.rewrite.hand_made import markers_of_effect
from patcher.rewrite.lines import rewrite_hunk
from patcher.rewrite.locating import locate
from patcher.rewrite.marker import line_markers, marker_pattern
from patcher.rewrite.matching import find
from patcher.rewrite.nearest import nearest
from patcher.rewrite.outcome import BOM, AlreadyDone, AnchorAmbiguous, AnchorMissing, Outcome, Rewritten, Unparseable
from patcher.rewrite.pattern import Pattern, pattern
from patcher.rewrite.removed import commented_out
from patcher.rewrite.sites import Sites, settle
from patcher.rewrite.source import Source, known, parse
from patcher.rewrite.syntax import Scope
from patcher.rewrite.values import rewrite_value


def rewrite(source: str, edit: Edit, mark: Mark, *, may_touch: frozenset[str] = frozenset()) -> Outcome:
    """Make `edit` on a source text with its own newlines; what it does not concern stays as it is.

    `may_touch` names the records whose marked lines may be edited.
    """
    text = source.removeprefix(BOM)
    outcome = _rewritten(text, edit, mark, may_touch)
    if isinstance(outcome, Rewritten) and text != source:
        return replace(outcome, source=BOM + outcome.source)
    return outcome


def _rewritten(text: str, edit: Edit, mark: Mark, may_touch: frozenset[str]) -> Outcome:
    if isinstance(edit, CreateFile):
        return recognise_file(text, edit, mark.word)
    if isinstance(edit, ReplaceLines):
        return rewrite_hunk(text, edit, mark, may_touch)
    if isinstance(edit, (SetValue, SetRequirement)):
        return rewrite_value(text, edit, mark, may_touch)
    # Of a long file the function that the edit is about is read by itself, unless only the whole file can tell.
    if not known(text) and (part := excerpt_for(text, edit)):
        outcome = part.of_whole(text, _rewrite(part.text, edit, mark, may_touch))
        if outcome is not None:
            return outcome
    return _rewrite(text, edit, mark, may_touch)


def _rewrite(text: str, edit: SyntaxEdit, mark: Mark, may_touch: frozenset[str]) -> Outcome:
    code = parse(text)
    if isinstance(code, Unparseable):
        return code
    scopes = code.within(edit.within)
    if not scopes:
        return AnchorMissing(edit.count or 1, 0, nearest(code, scopes, edit))
    try:
        sites = settle(code, locate(code, scopes, edit, mark))
        return _outcome(code, scopes, edit, sites, mark, may_touch)
    except cst.ParserSyntaxError as error:
        return Unparseable(1, error.message.splitlines()[-1])


def _outcome(
    code: Source, scopes: Sequence[Scope], edit: SyntaxEdit, sites: Sites, mark: Mark, may_touch: frozenset[str]
) -> Outcome:
    """Hold the number of anchors and effects to `count`: too many are ambiguous, too few are missing."""
    found, effects = len(sites.anchors), len(sites.effects)
    # `count = "every"` asks for all that are there, and for one at least.
    wanted = edit.count if edit.count is not None else max(1, found)
    if found > wanted:
        return AnchorAmbiguous(wanted, tuple(code.lines(anchor.node)[0] for anchor in sites.anchors))
    if found == 0 and effects >= wanted:
        return AlreadyDone(
            tuple(code.lines(node)[0] for node in sites.effects),
            any(markers_of_effect(code, node, edit, mark.word) for node in sites.effects),
        )
    # What is taken out leaves no effect in the code. Kept as a comment it shows that the edit was made.
    if found == 0 and edit.taken_out is not None:
        spans = commented_out(code, scopes, pattern(edit.taken_out), marker_pattern(mark.word))
        if len(spans) >= wanted:
            inside = [code.line(number) for first, last in spans for number in range(first, last + 1)]
            return AlreadyDone(
                tuple(first for first, _ in spans), any(line_markers(line, mark.word) for line in inside)
            )
    # Of three places a hand may have edited one: two anchors and one effect are as many as are asked for.
    if found == 0 or (found < wanted and found + effects != wanted):
        return AnchorMissing(wanted, found, nearest(code, scopes, edit))
    by_hand = sites.effects if found < wanted or edit.count is None else ()
    try:
        made = make(code, sites.anchors, by_hand, mark, may_touch)
    except cst.CSTValidationError as error:  # `def f(a, b)` with a default for `a` alone: libcst makes no such node.
        return Unparseable(code.lines(sites.anchors[0].node)[0], str(error))
    if isinstance(made, Rewritten) and made.source == code.text:  # `f($A, $B)` -> `f($B, $A)` where both are the same.
        return AlreadyDone(tuple(code.lines(anchor.node)[0] for anchor in sites.anchors), False)
    return made


def matches(source: str, wanted: str) -> tuple[int, ...]:
    """The lines, from 1, at which a pattern matches; none where the source is no Python."""
    read = pattern(wanted)
    if not all(name in source for name in read.names):
        return ()
    # Several statements may stand beside each other at the top level, and a class has members.
    alone = len(read.body) == 1 and not isinstance(read.body[0], cst.BaseCompoundStatement)
    if alone and not known(source) and (parts := excerpts_with(source, read.names)) is not None:
        return tuple(part.line(line) for part in parts for line in _matches(part.text, read))
    return _matches(source, read)


def _matches(source: str, read: Pattern) -> tuple[int, ...]:
    code = parse(source)
    if isinstance(code, Unparseable):
        return ()
    return tuple(code.lines(place.nodes[0])[0] for place in find(code, (code.module,), read))
