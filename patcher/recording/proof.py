"""Edits that make a file of the base into the fork's: of each change the most specific ones that provably do so.

An edit is proven if, made on the base, it gives the base with just this change, and is recognised as done there. Where
no edit of syntax or of a key does, the change is said as lines (`diff`) with as few lines of context as tell its place;
where these do not either, it goes together with its neighbours, or is refused. Then all edits of the file are made one
after the other, and must give the fork's text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cached_property, lru_cache, reduce
from typing import TypeGuard

from patcher.i18n import Phrase, phrase
from patcher.recording.declared import header_edits
from patcher.recording.hunks import Change, Hunk, changes, hunk_of, joined, line_hunks, whole_functions
from patcher.recording.inferring import edits_for
from patcher.recording.keyed_values import edits_for_lines
from patcher.rewrite import create_file, rewrite
from patcher.rewrite.edits import CreateFile, Edit, Mark, ReplaceLines
from patcher.rewrite.marker import split, split_whole
from patcher.rewrite.merging import common_ends
from patcher.rewrite.outcome import AlreadyDone, Rewritten, Unparseable
from patcher.rewrite.source import parse
from patcher.rewrite.syntax import SCOPES
from patcher.rewrite.texts import filled, same

UNMARKED = Mark("recorded", "UkyRecording", "unmarked")
"""Makes edits without a marker. Its word is one that no text has, so that no comment of the text counts as a marker."""
_MOST_JOINED = 3
"""How many changes before it a change of lines takes along at most, where no line between tells its place. A guess."""
_CONTEXT = (3, 6, 12)
"""Lines of context of a hunk: more where fewer stand in the file twice."""


@dataclass(frozen=True, slots=True)
class Made:
    """One change of a file, and the edits that make it."""

    hunk: Hunk
    within: str | None
    edits: tuple[Edit, ...]
    why: Phrase | None = None
    """Why nothing more specific than lines says it."""
    comments_alone: bool = False
    tied: int | None = None
    """The same number for changes of a file of which only one order gives the fork's text: they are one record."""

    @property
    def specific(self) -> bool:
        return not any(isinstance(edit, ReplaceLines) for edit in self.edits)


@dataclass(frozen=True, slots=True)
class FileEdits:
    """What was done to one file, and what of it no edit can say."""

    file: str
    made: tuple[Made, ...] = ()
    """In the order in which they are proven: edits of lines last, which may take away the anchor of another."""
    refused: tuple[tuple[Hunk, Phrase], ...] = ()


@dataclass(frozen=True)
class _Sides:
    """A file of the base and as the fork has it, both without markers."""

    file: str
    base: str
    fork: str

    @cached_property
    def before(self) -> list[str]:
        """The lines of the base."""
        return split(self.base)

    @cached_property
    def after(self) -> list[str]:
        """The lines of the fork."""
        return split(self.fork)

    def is_made(self, text: str | None, hunks: Iterable[Hunk]) -> TypeGuard[str]:
        """Whether a text is the base with the fork's lines in some places and no others; never so of None."""
        return text is not None and same(text, with_hunks(self.base, self.fork, hunks), self.file)


def edits_of_file(file: str, base: str, fork: str) -> FileEdits:
    """The edits that make `fork` of `base`, both without markers; proven together."""
    sides = _Sides(file, base, fork)
    found = changes_of(file, base, fork)
    made: list[Made] = []
    refused: list[tuple[Hunk, Phrase]] = []
    hunks = [hunk_of(one) for one in found]
    for one, hunk in zip(found, hunks, strict=True):
        if filled(sides.before[slice(*hunk.old)]) == filled(sides.after[slice(*hunk.new)]):
            continue  # Blank lines alone, and blanks at the end of lines, are no change.
        alone = isinstance(one, Change) and one.comments_alone
        edits = None if alone else next(proven_edits(file, base, fork, one), None)
        if edits is not None:
            made.append(Made(hunk, one.within if isinstance(one, Change) else None, edits))
            continue
        lines = _in_lines(sides, one, hunks, made)
        if lines is None:
            emptied = phrase("the fork has emptied this file: copy it along with the records")
            refused.append((hunk, phrase("no line around it stands in the file once") if fork.strip() else emptied))
        else:
            made.append(lines)
    for hunk, why in refused[:]:
        if _among_others(sides, hunk, hunks, made):
            refused.remove((hunk, why))
    kept, apart = _together(sides, made, found)
    why = phrase("beside the other edits of the file none gives the same")
    while apart:  # Each round makes one change of two or more.
        refused += [(hunk, why) for hunk in apart if not _among_others(sides, hunk, hunks, kept)]
        kept, apart = _together(sides, kept, found)
    return FileEdits(file, tuple(_tied(sides, kept)), tuple(refused))


def made_file(file: str, text: str) -> Made:
    """The edit that makes a file of the fork's own; `text` is without markers."""
    return Made(Hunk((0, 0), (0, len(split(text)))), None, (CreateFile(file=file, content=text),))


def changes_of(file: str, base: str, fork: str) -> list[Hunk | Change]:
    """What differs: of Python whole statements, of any other file lines."""
    if file.endswith(".py"):
        one, two = parse(base), parse(fork)
        if not isinstance(one, Unparseable) and not isinstance(two, Unparseable):
            return whole_functions(one, two, changes(one, two))
    return list(line_hunks(split(base), split(fork)))


def _why(file: str, one: Hunk | Change) -> Phrase:
    if not file.endswith(".py"):
        return phrase("it is no value of one key in YAML, TOML or a shell script, and no requirement")
    if isinstance(one, Hunk) or one.comments_alone:
        return phrase("it changes comments alone, or what is no whole statement")
    return phrase("no edit of syntax has its place there once and gives the same")


def _in_lines(sides: _Sides, one: Hunk | Change, hunks: Sequence[Hunk], made: list[Made]) -> Made | None:
    """The change as lines. Between other changes no line may be left that tells its place: then it goes with those
    before it, which are taken out of `made`."""
    within = one.within if isinstance(one, Change) else None
    hunk = hunk_of(one)
    for count in range(min(len(made), _MOST_JOINED) + 1):
        with_it = made[len(made) - count :]
        for other in with_it:
            hunk = joined(other.hunk, hunk)
        others = [other for other in hunks if not _inside(other, hunk)]
        lines = _as_lines(sides, hunk, others)
        if lines is not None:
            del made[len(made) - count :]
            why = phrase("no line between it and other changes tells its place") if count else _why(sides.file, one)
            return Made(hunk, within, (lines,), why, sides.file.endswith(".py") and _of_comments(sides, one))
    return None


def _among_others(sides: _Sides, hunk: Hunk, hunks: Sequence[Hunk], made: list[Made]) -> bool:
    """Whether a change that no line around it tells the place of goes as lines with those before and behind it, as many
    as it takes; those are taken out of `made`."""
    if any(_inside(hunk, one.hunk) for one in made):
        return True  # It went with another.
    inside = [index for index, other in enumerate(hunks) if _inside(other, hunk)]
    for count in range(1, len(hunks)):
        whole = reduce(joined, hunks[max(0, inside[0] - count) : inside[-1] + count + 1])
        if whole == hunk:
            return False
        for one in made:
            if one.hunk.old[0] < whole.old[1] and whole.old[0] < one.hunk.old[1]:
                whole = joined(whole, one.hunk)
        lines = _as_lines(sides, whole, [one for one in hunks if not _inside(one, whole)])
        if lines is not None:
            made[:] = [one for one in made if not _inside(one.hunk, whole)]
            made.append(Made(whole, None, (lines,), phrase("no line between it and other changes tells its place")))
            return True
    return False


def _inside(one: Hunk, other: Hunk) -> bool:
    return other.old[0] <= one.old[0] and one.old[1] <= other.old[1] and other.new[0] <= one.new[0] <= other.new[1]


def _of_comments(sides: _Sides, one: Hunk | Change) -> bool:
    if isinstance(one, Change):
        return one.comments_alone
    lines = [*sides.before[slice(*one.old)], *sides.after[slice(*one.new)]]
    return all(not line.strip() or line.lstrip().startswith("#") for line in lines)


def proven_edits(file: str, base: str, fork: str, change: Hunk | Change) -> Iterator[tuple[Edit, ...]]:
    """Those of the possible edits that make this change and no other, the most specific first."""
    sides = _Sides(file, base, fork)
    for edits in _possible(sides, change):
        made = applied(base, edits)
        # A record whose work is not recognised would be made again on a tree that has it by hand.
        if sides.is_made(made, [hunk_of(change)]) and all(_is_done(made, edit) for edit in edits):
            yield edits


def _possible(sides: _Sides, one: Hunk | Change) -> Iterator[tuple[Edit, ...]]:
    yield from edits_for_lines(sides.file, sides.base, sides.fork, hunk_of(one))
    if isinstance(one, Change):
        yield from _header_and_body(sides, one)
        yield from edits_for(sides.file, *one.sources, one)


def _header_and_body(sides: _Sides, change: Change) -> Iterator[tuple[Edit, ...]]:
    """Of a function or class that differs in its header and in its body, the edits of both.

    def run(self, limit):           def run(self, limit, timeout=600):      set-parameter
        wait(limit)                     wait(limit, timeout)                replace
    """
    old, new = change.old.items, change.new.items
    if len(old) != 1 or len(new) != 1 or type(old[0]) is not type(new[0]) or not isinstance(old[0], SCOPES):
        return
    header = header_edits(sides.file, *change.sources, old[0], new[0])
    between = applied(sides.base, header) if header else None
    if between is None:
        return
    rest = edits_of_file(sides.file, between, with_hunks(sides.base, sides.fork, [change.hunk]))
    if not rest.refused and rest.made and all(one.specific for one in rest.made):
        yield (*header, *(edit for one in rest.made for edit in one.edits))


def applied(text: str | None, edits: Sequence[Edit]) -> str | None:
    """The text with the edits made; None unless each finds its place. A `text` of None: there is no file."""
    for edit in edits:
        if text is None:
            made = create_file(edit, UNMARKED).source if isinstance(edit, CreateFile) else None
        else:
            made = _applied(text, edit)
        if made is None:
            return None
        text = made
    return text


@lru_cache(maxsize=64)
def _applied(text: str, edit: Edit) -> str | None:
    """What an edit makes of a text: asked for when the edit is chosen, and again when all of a file are made."""
    try:
        outcome = rewrite(text, edit, UNMARKED, may_touch=frozenset({UNMARKED.record}))
    except ValueError:  # Code with a `$NAME` of its own, which a pattern would bind.
        return None
    return outcome.source if isinstance(outcome, Rewritten) else None


def _is_done(text: str, edit: Edit) -> bool:
    return isinstance(rewrite(text, edit, UNMARKED), AlreadyDone)


def _as_lines(sides: _Sides, hunk: Hunk, others: Sequence[Hunk]) -> ReplaceLines | None:
    """The change as a hunk of a diff, whose lines of context no other change touches."""
    before, after = sides.before, sides.after
    # It had grown over whole statements; the lines at its ends that are the same are context again.
    head, tail = common_ends(before[slice(*hunk.old)], after[slice(*hunk.new)])
    hunk = Hunk((hunk.old[0] + head, hunk.old[1] - tail), (hunk.new[0] + head, hunk.new[1] - tail))
    least = max((other.old[1] for other in others if other.old[1] <= hunk.old[0] and other != hunk), default=0)
    most = min((other.old[0] for other in others if other.old[0] >= hunk.old[1] and other != hunk), default=len(before))
    expected = _ended([*before[: hunk.old[0]], *after[slice(*hunk.new)], *before[hunk.old[1] :]])
    for context in _CONTEXT:
        first, last = max(least, hunk.old[0] - context), min(most, hunk.old[1] + context)
        inside = _compared(before[slice(*hunk.old)], after[slice(*hunk.new)])
        top, end = before[first : hunk.old[0]], before[hunk.old[1] : last]
        lines = [*(f" {line}" for line in top), *inside, *(f" {line}" for line in end)]
        if not any(line[:1] != "+" and line[1:].strip() for line in lines):
            return None
        edit = ReplaceLines(file=sides.file, hunk="\n".join(lines) + "\n")
        made = applied(sides.base, (edit,))
        if made is not None and _ended(split(made)) == expected and _is_done(made, edit):
            return edit
    return None


def _ended(lines: Iterable[str]) -> list[str]:
    return [line.rstrip() for line in lines]


def _compared(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """Lines as a diff has them: those that stay once, those that change on both sides."""
    found: list[str] = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            found += [f" {line}" for line in old[i1:i2]]
        else:
            found += [f"-{line}" for line in old[i1:i2]]
            found += [f"+{line}" for line in new[j1:j2]]
    return found


def _together(sides: _Sides, made: Sequence[Made], changes: Sequence[Hunk | Change]) -> tuple[list[Made], list[Hunk]]:
    """The edits one after the other, those of lines last, each held against the fork's file so far; and those for
    which none is found.

    In the place of one that others stand in the way of comes another way to say the change."""
    text = sides.base
    kept: list[Made] = []
    apart: list[Hunk] = []
    waiting = sorted(made, key=lambda one: (not one.specific, one.hunk.old))
    while waiting:
        one = waiting.pop(0)
        hunks = [*(other.hunk for other in kept), one.hunk]
        for way in _ways(sides, one, changes):
            following = applied(text, way.edits)
            if sides.is_made(following, hunks):
                text = following
                kept.append(way)
                break
            if one.specific and kept:  # Those before it may have changed its anchor.
                following = applied(sides.base, [edit for other in (way, *kept) for edit in other.edits])
                if sides.is_made(following, hunks):
                    text = following
                    kept.insert(0, way)
                    break
        else:
            apart.append(one.hunk)
    return kept, apart


def _tied(sides: _Sides, made: Sequence[Made]) -> Iterator[Made]:
    """The same, with those tied that do not give the fork's text in the other order:

    import a        `import c` goes behind `import a` and `import b`, with both lines as its anchor;
    import b        `import d` goes behind `import a`
    """
    ties = list(range(len(made)))

    def gives(one: Made, two: Made) -> bool:
        return sides.is_made(applied(sides.base, (*one.edits, *two.edits)), (one.hunk, two.hunk))

    text = sides.base
    for index, one in reversed(list(enumerate(made))):
        hunks = [other.hunk for other in made[index:]]
        following = applied(text, one.edits)
        if not sides.is_made(following, hunks):
            following = with_hunks(sides.base, sides.fork, hunks)
            for place, other in enumerate(made[index + 1 :], index + 1):
                if gives(one, other) and not gives(other, one):
                    ties = [ties[index] if tie == ties[place] else tie for tie in ties]
        text = following
    for index, one in enumerate(made):
        yield replace(one, tied=ties[index]) if ties.count(ties[index]) > 1 else one


def _ways(sides: _Sides, one: Made, changes: Sequence[Hunk | Change]) -> Iterator[Made]:
    """The edits that were found for a change, and then the other ways to make it, that of lines last."""
    yield one
    if not one.specific:
        return
    change = next(other for other in changes if hunk_of(other) == one.hunk)
    for edits in _possible(sides, change):
        made = applied(sides.base, edits) if edits != one.edits else None
        if made is not None and all(_is_done(made, edit) for edit in edits):
            yield Made(one.hunk, one.within, edits)
    lines = _as_lines(sides, one.hunk, [hunk_of(other) for other in changes])
    if lines is not None:
        yield Made(one.hunk, one.within, (lines,), phrase("beside other edits nothing more specific gives the same"))


def with_hunks(base: str, fork: str, hunks: Iterable[Hunk]) -> str:
    """The base's text with the fork's lines in some places."""
    lines, others = split_whole(base), split_whole(fork)
    for hunk in sorted(hunks, key=lambda one: one.old, reverse=True):  # So that the lines before stay where they are.
        lines[slice(*hunk.old)] = others[slice(*hunk.new)]
    # A last line that ends without a newline may now have another below it.
    return "".join(line if line.endswith(("\n", "\r")) else f"{line}\n" for line in lines[:-1]) + "".join(lines[-1:])
