"""A change of one verl's file on another verl's: where its lines merge, or where an edit of syntax finds its place.

    upstream, before and after          this tree

    -    app = build_app(args)              app = build_app(args)   # three lines above are others here: still merged,
    +    app = build_app(args, tasks)       app.state.ready = True  # as only the lines that change must be the same

What neither finds its place for is told. So is what uses a name that this tree does not have: a helper that another
commit of upstream brought.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import libcst as cst
from libcst.codemod import CodemodContext
from libcst.codemod.visitors import AddImportsVisitor
from libcst.helpers import get_full_name_for_node
from libcst.metadata import GlobalScope, ImportAssignment, MetadataWrapper, Scope, ScopeProvider

from patcher.i18n import Phrase, phrase
from patcher.recording.hunks import Change, Hunk, hunk_of
from patcher.recording.proof import applied, changes_of, proven_edits, with_hunks
from patcher.rewrite import names
from patcher.rewrite.marker import split, split_whole
from patcher.rewrite.merging import three_way
from patcher.rewrite.source import Source, parse
from patcher.rewrite.syntax import IMPORTS, SCOPES, walk

Fate = Literal["carried", "there", "left"]
Offers = Callable[[str, str], bool]
"""Whether a module of the tree has a name: `("verl.utils.device", "get_device_name")`."""


@dataclass(frozen=True, slots=True)
class Ported:
    """What became of one change. `line`: where upstream has it, before the change, from 1."""

    line: int
    fate: Fate
    file: str
    """The tree's file that it is in, or would be."""
    why: Phrase | None = None
    lines: tuple[int, int] | None = None
    """Of one that finds no place: the first and the last line that it changes."""


def port(file: str, before: str, after: str, texts: Mapping[str, str], offers: Offers) -> tuple[str, str, list[Ported]]:
    """Carry what makes `after` of `before` into one of the tree's files, whichever takes the most of it.

    Returns that file, its new text, and what became of each change."""
    tried = [_port_into(file, before, after, there, text, offers) for there, text in texts.items()]
    return max(tried, key=lambda one: sum(change.fate != "left" for change in one[2]))


def _port_into(
    file: str, before: str, after: str, there: str, text: str, offers: Offers
) -> tuple[str, str, list[Ported]]:
    """Carry the changes into one file of the tree, without those that need a name that is not here."""
    # What is refused in one round, for a name that it needs or doubles, is left out of the next: the others may then
    # need a name that it would have brought, so the rounds go on until nothing more is refused.
    found = [one for one in changes_of(file, before, after) if not _is_blank(one, before, after)]
    refused: dict[int, Phrase] = {}
    while True:
        current = text
        done: list[Ported] = []
        for index, one in enumerate(found):
            made = None if index in refused else _carried(file, before, after, one, current)
            fate: Fate = "left" if made is None else "there" if made == current else "carried"
            first, end = hunk_of(one).old
            if made is not None:
                done.append(Ported(first + 1, fate, there))
                current = made
            elif index in refused:
                done.append(Ported(first + 1, fate, there, refused[index]))
            else:
                why = phrase("what it changes reads otherwise here")
                done.append(Ported(first + 1, fate, there, why, (max(first, 1), max(first, end))))
        if there.endswith(".py"):
            current = _with_imports(current, missing(text, current, offers), after, offers)
        for index, name in _doubled(found, done, after, current):
            refused[index] = phrase("{name} is here in another form", name=name)
        if any(index in refused for index, one in enumerate(done) if one.fate == "carried"):
            continue
        lacking = missing(text, current, offers) if there.endswith(".py") else set()
        using = {
            index: name
            for index, one in enumerate(found)
            if done[index].fate == "carried"
            for name in sorted(lacking)
            if any(re.search(rf"\b{re.escape(name)}\b", line) for line in split(after)[slice(*hunk_of(one).new)])
        }
        if not using:
            return there, current, done
        refused |= {index: phrase("it uses {name}, which is not here", name=name) for index, name in using.items()}


def _is_blank(one: Hunk | Change, before: str, after: str) -> bool:
    hunk = hunk_of(one)
    return not any(line.strip() for line in (*split(before)[slice(*hunk.old)], *split(after)[slice(*hunk.new)]))


def _carried(file: str, before: str, after: str, one: Hunk | Change, text: str) -> str | None:
    """The text with one change; the same text where it has that already, None where the change finds no place."""
    if _is_there(before, after, one, text):
        return text
    made = with_hunks(before, after, [hunk_of(one)])
    lines = three_way(split_whole(before), split_whole(text), split_whole(made))
    if lines is not None:
        return "".join(lines)
    # Where lines do not merge, an edit of syntax may still find its place: it does not look at what stands around.
    if isinstance(one, Change) and not one.comments_alone:
        for edits in proven_edits(file, before, after, one):
            found = applied(text, edits)
            if found is not None:
                return found
    return None


def _is_there(before: str, after: str, one: Hunk | Change, text: str) -> bool:
    """Whether the new lines stand in the text, one below the other, and the old ones do not; in the same function.

    A merge would put an insertion there once more where its surroundings are others."""
    hunk = hunk_of(one)
    old, new = _filled(split(before)[slice(*hunk.old)]), _filled(split(after)[slice(*hunk.new)])
    lines = _filled(_function(text, one.within if isinstance(one, Change) else None))
    return bool(new) and _holds(lines, new) and not (old and not _holds(new, old) and _holds(lines, old))


def _filled(lines: Iterable[str]) -> list[str]:
    return [line.strip() for line in lines if line.strip()]


def _holds(lines: Sequence[str], part: Sequence[str]) -> bool:
    return any(lines[at : at + len(part)] == part for at in range(len(lines) - len(part) + 1))


def _function(text: str, within: str | None) -> list[str]:
    """The lines of a class or function; all lines where there is none of that name."""
    code = parse(text) if within is not None else None
    scopes = code.within(within) if isinstance(code, Source) else ()
    first, last = code.lines(scopes[0]) if isinstance(code, Source) and scopes else (1, None)
    return split(text)[first - 1 : last]


def _doubled(
    found: Sequence[Hunk | Change], done: Sequence[Ported], after: str, made: str
) -> Iterator[tuple[int, str]]:
    """Changes that bind a name once more than upstream does: another form of the same change is here."""
    theirs, ours = _bindings(after), _bindings(made)
    for index, one in enumerate(found):
        if done[index].fate == "carried" and isinstance(one, Change) and one.new.items:
            names = _bindings(textwrap.dedent("\n".join(split(after)[slice(*one.hunk.new)])) + "\n")
            yield from ((index, name) for name in names if ours[name] > max(theirs[name], 1))


def _bindings(text: str) -> Counter[str]:
    """How often each function, class and import of a text is bound."""
    try:
        module = cst.parse_module(text)
    except cst.ParserSyntaxError:
        return Counter()
    found: Counter[str] = Counter()
    for node in walk(module):
        if isinstance(node, SCOPES):
            found[node.name.value] += 1
        elif isinstance(node, IMPORTS):
            found.update(map(names.local, names.aliases(node)))
    return found


def missing(before: str, after: str, offers: Offers) -> set[str]:
    """Names that the new text uses and nothing binds, and those that it imports from modules that lack them.

    Those of the text before do not count: what is unknown there is unknown to us alone."""
    old, new = _needed(before), _needed(after)
    return {name for module, name in new - old if not module or not offers(module, name)}


def _with_imports(text: str, names: Collection[str], after: str, offers: Offers) -> str:
    """The text with upstream's own imports of some names: an earlier commit of upstream has brought them there."""
    if not names:
        return text
    context = CodemodContext()
    whole = next((scope for scope in scopes_of(after) if isinstance(scope, GlobalScope)), None)
    wanted = [one for name in names for one in (whole[name] if whole is not None else ())]
    for node in {one.node for one in wanted if isinstance(one, ImportAssignment)}:
        if not isinstance(node, (cst.Import, cst.ImportFrom)):
            continue
        module = get_full_name_for_node(node.module) if isinstance(node, cst.ImportFrom) and node.module else None
        for alias in () if isinstance(node.names, cst.ImportStar) else node.names:
            local = alias.evaluated_alias or alias.evaluated_name
            if local.partition(".")[0] not in names:
                continue
            if isinstance(node, cst.Import):
                AddImportsVisitor.add_needed_import(context, alias.evaluated_name, asname=alias.evaluated_alias)
            elif module is not None and not node.relative and offers(module, alias.evaluated_name):
                AddImportsVisitor.add_needed_import(context, module, alias.evaluated_name, alias.evaluated_alias)
    return AddImportsVisitor(context).transform_module(cst.parse_module(text)).code


@lru_cache(maxsize=64)
def _needed(text: str) -> frozenset[tuple[str, str]]:
    """`("", "inspect")`, used and bound by nothing, and `("verl.utils.device", "is_npu")`, imported from there."""
    found: set[tuple[str, str]] = set()
    for scope in scopes_of(text):
        unbound = (one.node for one in scope.accesses if not one.referents)
        found |= {("", node.value) for node in unbound if isinstance(node, cst.Name)}
        imports = (one.node for one in scope.assignments if isinstance(one, ImportAssignment))
        for node in imports:
            if isinstance(node, cst.ImportFrom) and node.module is not None and not node.relative:
                module = get_full_name_for_node(node.module) or ""
                names = () if isinstance(node.names, cst.ImportStar) else node.names
                found |= {(module, alias.evaluated_name) for alias in names}
    return frozenset(found)


@lru_cache(maxsize=256)
def bound(text: str) -> frozenset[str]:
    """The names that a module binds; `*` for what it takes from others unnamed, or where it cannot be read."""
    whole = next((scope for scope in scopes_of(text) if isinstance(scope, GlobalScope)), None)
    if whole is None or re.search(r"^\s*from \S+ import \*", text, re.MULTILINE):
        return frozenset("*")
    return frozenset(one.name for one in whole.assignments)


def scopes_of(text: str) -> list[Scope]:
    """The scopes of a module; none of one that cannot be read."""
    try:
        found = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True).resolve(ScopeProvider)
    except (cst.ParserSyntaxError, RecursionError):
        return []
    return [scope for scope in set(found.values()) if scope is not None]
