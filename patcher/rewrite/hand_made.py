"""Which markers a place that was edited by hand accounts for, read from the text as it stands.

A hand marks an edit in many ways: behind the line, behind the old line that it kept as a comment, in a comment above
the statement, or around it, behind the `try:` of two imports. What is near and about something else is another edit:

    # Uky: the flag was renamed                         accounted for: the comment right above
    engine = start(
        limit=5,  # Uky                                 another edit
        # disable_log=args.disable_log,  # Uky          accounted for: the old line
        enable_log=args.enable_log,  # Uky              the place itself
    )
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable
from difflib import SequenceMatcher

import libcst as cst

from patcher.rewrite.blocks import place
from patcher.rewrite.created import markers_of_file
from patcher.rewrite.edits import (
    CreateFile,
    Edit,
    Insert,
    Mark,
    RemoveArgument,
    Replace,
    ReplaceLines,
    SetRequirement,
    SetValue,
)
from patcher.rewrite.lines import markers_of_hunk
from patcher.rewrite.locating import locate
from patcher.rewrite.marker import line_markers, marker_pattern
from patcher.rewrite.matching import find
from patcher.rewrite.outcome import BOM, Unparseable
from patcher.rewrite.pattern import pattern
from patcher.rewrite.removed import commented_out
from patcher.rewrite.sites import settle
from patcher.rewrite.source import Source, parse
from patcher.rewrite.syntax import HANDLERS, IMPORTS, TRIES, statements, walk
from patcher.rewrite.values import markers_of_value

_SMALL = 12
"""The most lines of a `try` or `if` that is taken to be there for the edit in it."""
_STATEMENTS = (cst.BaseSmallStatement, cst.BaseCompoundStatement)
_NAME = re.compile(r"(?<![$\w])[A-Za-z_]\w*")
_ALIKE = 0.6
"""How much an old line kept as a comment has in common with the one that took its place."""
_ANYWHERE = frozenset({*keyword.kwlist, "self", "cls", "args", "kwargs", "config", "Exception", "ImportError"})
"""Names that say nothing of what a line is about."""


def markers_of_edit(source: str, edit: Edit, word: str) -> frozenset[int]:
    """The lines with a marker that the places with the edit's effect account for; none where the text is no Python."""
    text = source.removeprefix(BOM)
    if isinstance(edit, CreateFile):
        return markers_of_file(text, edit, word)
    if isinstance(edit, ReplaceLines):
        return markers_of_hunk(text, edit, word)
    if isinstance(edit, (SetValue, SetRequirement)):
        return markers_of_value(text, edit, word)
    code = parse(text)
    if isinstance(code, Unparseable) or not (scopes := code.within(edit.within)):
        return frozenset()
    names = _names(edit.about)
    lines: set[int] = set()
    # The empty id is no record's, so what any record has made counts like a hand's work.
    for node in settle(code, locate(code, scopes, edit, Mark("", word))).effects:
        lines |= _lines_of_place(code, node, names, word, edit)
    if edit.taken_out is not None:
        for first, last in commented_out(code, scopes, pattern(edit.taken_out), marker_pattern(word)):
            lines |= {*range(first, last + 1), *_above(code, first, last, names, word)}
    return _marked(code, lines, word)


def markers_of_pattern(source: str, wanted: str, word: str) -> frozenset[int]:
    """The same for the places that a pattern matches: upstream's fix, made by hand."""
    code = parse(source)
    if isinstance(code, Unparseable):
        return frozenset()
    names = _names([wanted])
    lines: set[int] = set()
    for match in find(code, (code.module,), pattern(wanted)):
        lines |= _lines_of_place(code, match.nodes[0], names, word)
    return _marked(code, lines, word)


def markers_of_effect(code: Source, node: cst.CSTNode, edit: Edit, word: str) -> frozenset[int]:
    """The lines with a marker that one node with the edit's effect accounts for."""
    return _marked(code, _lines_of_place(code, node, _names(edit.about), word, edit), word)


def _marked(code: Source, lines: Iterable[int], word: str) -> frozenset[int]:
    return frozenset(line for line in lines if line_markers(code.line(line), word))


def _lines_of_place(
    code: Source, node: cst.CSTNode, names: frozenset[str], word: str, edit: Edit | None = None
) -> frozenset[int]:
    """The lines that a place accounts for, marked or not; `names` is what the edit is about."""
    first, last = code.lines(node)[0], _last_line(code, node, edit)
    own = set(range(first, last + 1))
    if first != last and (isinstance(edit, RemoveArgument) or isinstance(node, IMPORTS)):
        # Of a call without the argument and of a long import, only what speaks of the edit is it.
        own = {line for line in own if line in (first, last) or _about(code.line(line), names)}
    own |= _above(code, first, last, names, word) | _below(code, last, names, word)
    statement = code.statement(node)
    top, bottom = code.lines(statement)
    if not isinstance(statement, cst.BaseCompoundStatement):
        own |= _above(code, top, bottom, names, word)
        if not any(line_markers(code.line(line), word) for line in own):
            own |= {top, bottom}
    for above in code.ancestors(statement):
        if not isinstance(above, (cst.BaseCompoundStatement, *HANDLERS)):
            continue  # A line, a block or an `else:`.
        if not isinstance(above, (cst.If, *HANDLERS, *TRIES)):
            break
        begin, end = code.lines(above)
        if end - begin > _SMALL:
            break
        own |= _around(code, above, names) | _above(code, begin, begin, names, word)
    return frozenset(own)


def _last_line(code: Source, node: cst.CSTNode, edit: Edit | None) -> int:
    """The last line of a place; of statements that an edit puts there together, the last one's."""
    count = 1
    if isinstance(node, _STATEMENTS) and isinstance(edit, (Insert, Replace)):
        text = edit.code if isinstance(edit, Insert) else edit.replacement
        count = max(1, len(pattern(text).body))
    if count > 1:
        block, index = place(code, node)
        inside = statements(block)
        node = inside[min(index + count, len(inside)) - 1][0]
    return code.lines(node)[1]


def _around(code: Source, guard: cst.CSTNode, names: frozenset[str]) -> set[int]:
    """The lines of a small `try` or `if` that are its own (`try:`, `except ImportError:`) or about the edit."""
    lines: set[int] = set(_range(code, guard))
    for node in walk(guard):
        if not isinstance(node, _STATEMENTS) or node is guard or isinstance(node, (cst.If, *TRIES)):
            continue
        inside = _range(code, node)
        if not _about("\n".join(map(code.line, inside)), names):
            lines.difference_update(inside)
    return lines


def _range(code: Source, node: cst.CSTNode) -> range:
    first, last = code.lines(node)
    return range(first, last + 1)


def _above(code: Source, first: int, last: int, names: frozenset[str], word: str) -> set[int]:
    """The comment lines right above that speak of the place: `# Uky: why`, or the old lines kept as comments."""
    found: set[int] = set()
    number = first - 1
    while number >= 1 and _is_comment(code.line(number)):
        text = code.line(number)
        marked = line_markers(text, word)
        if marked and not _begins(text, word) and not _about(text, names) and not _is_old(code, text, first, last):
            break
        found.add(number)
        number -= 1
    return found


def _is_old(code: Source, comment: str, first: int, last: int) -> bool:
    """Whether a comment reads like one of the lines below it: `# start(a)  # Uky` above `start(a, b)`."""
    old = comment.lstrip(" \t\f#").partition("#")[0].strip()
    lines = (code.line(number).partition("#")[0].strip() for number in range(first, last + 1))
    return any(SequenceMatcher(None, old, line, autojunk=False).ratio() >= _ALIKE for line in lines)


def _below(code: Source, line: int, names: frozenset[str], word: str) -> set[int]:
    """The old lines kept as comments right below."""
    found: set[int] = set()
    number = line + 1
    while number <= len(code.starts) and _is_comment(code.line(number)):
        text = code.line(number)
        if _begins(text, word) or not _about(text, names):
            break
        found.add(number)
        number += 1
    return found


def _is_comment(line: str) -> bool:
    return line.lstrip(" \t\f").startswith("#")


def _begins(line: str, word: str) -> bool:
    """Whether a comment begins with the marker: it then says something about what follows."""
    return marker_pattern(word).match(line.lstrip(" \t\f")) is not None


def _about(text: str, names: frozenset[str]) -> bool:
    return bool(names & set(_NAME.findall(text)))


def _names(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(name for text in texts for name in _NAME.findall(text)) - _ANYWHERE
