"""A record to begin with, from a place in the tree: its anchor, its example, and what is to be written by hand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from patcher.errors import UsageError
from patcher.i18n import phrase
from patcher.plan.examples import smallest
from patcher.recording.hunks import Run, covering
from patcher.recording.inferring import called_name, code_of
from patcher.records.model import Example, Record, When
from patcher.records.unfinished import TO_BE_WRITTEN
from patcher.records.writing import written
from patcher.rewrite import names
from patcher.rewrite.edits import Mark, MoveImport, RenameArgument, Replace, SyntaxEdit
from patcher.rewrite.locating import locate
from patcher.rewrite.outcome import Unparseable
from patcher.rewrite.source import Source, parse
from patcher.rewrite.syntax import only, walk
from patcher.session.pre_images import release_of
from patcher.tree.source import Undecodable, decode

if TYPE_CHECKING:
    from patcher.session.session import Session

HEADING = (
    "To be finished by hand: what the edit puts there, the title, the reason, the example's `after`.",
    "[when] says for which versions it is needed. Take `enabled` out when it is done; see docs/records.md.",
)


@dataclass(frozen=True, slots=True)
class Skeleton:
    """The text of a record that is to be finished, and the statement that it is about."""

    text: str
    file: str
    line: int
    statement: str


def skeleton(session: Session, name: str, place: str) -> Skeleton:
    """A record with this id for the statement at `FILE:LINE`.

    Raises UsageError where there is no such place, or no pattern names it alone.
    """
    file, _, number = place.rpartition(":")
    if not file or not number.isdecimal():
        raise UsageError(
            phrase("{place!r} names no place", place=place),
            advice=phrase("Write it as FILE:LINE, for example verl/trainer/main_ppo.py:42."),
        )
    code, line = _code(session, file), int(number)
    run = covering(code, (line - 1, line)) if 0 < line < len(code.starts) + 1 else None
    if run is None or run.last - run.first != 1:
        raise UsageError(
            phrase("{file}:{line}: no statement stands there", file=file, line=line),
            advice=phrase("Name a line of a statement."),
        )
    within = code.qualified_name(run.block) or None
    edit = next((one for one in _edits(file, within, code, run, line) if _is_unique(code, one)), None)
    if edit is None:
        raise UsageError(
            phrase(
                "{file}:{line}: nothing in this statement stands in {scope} once",
                file=file,
                line=line,
                scope=within or file,
            ),
            advice=phrase("Choose a line beside it, and take `insert` with that line as its anchor."),
        )
    example = smallest(code, [code.statement(_first(run))])
    record = Record(
        id=name,
        title=TO_BE_WRITTEN,
        reason=TO_BE_WRITTEN,
        lifetime="fork-only",
        when=When(),
        edits=(edit,),
        examples=(Example(f"as in verl {release_of(session)}", example, example),),
        enabled=False,
    )
    first, last = code.lines(run.items[0])
    statement = "\n".join(code.line(one) for one in range(first, last + 1))
    return Skeleton(written(record, HEADING), file, first, statement)


def _code(session: Session, file: str) -> Source:
    source = session.tree.read(file)
    if source is None:
        raise UsageError(
            phrase("{file}: no such file in the tree", file=file),
            advice=phrase("Name it below the tree's root, {root}.", root=session.tree.root),
        )
    read = decode(source)
    found = Unparseable(read.line, read.message) if isinstance(read, Undecodable) else parse(read[0])
    if isinstance(found, Unparseable):
        raise UsageError(
            phrase("{file}:{line}: {why}", file=file, line=found.line, why=found.message),
            advice=phrase(
                'For a file that is no Python, edit it and let uky-patch record write a record of kind = "diff".'
            ),
        )
    return found


def _first(run: Run) -> cst.CSTNode:
    line = run.items[0]
    return line.body[0] if isinstance(line, cst.SimpleStatementLine) else line


def _edits(file: str, within: str | None, code: Source, run: Run, line: int) -> Iterator[SyntaxEdit]:
    """What the statement may be edited by, the most specific first; what is new in it is still the old."""
    statement = run.items[0]
    for node in only(walk(statement), cst.ImportFrom):
        for alias in names.aliases(node):
            full = f"{names.module(node)}.{names.imported(alias)}"
            if re.search(rf"\b{re.escape(names.imported(alias))}\b", code.line(line)) and not full.startswith("."):
                yield MoveImport(file=file, within=within, old=full, new=full)
    for call in only(walk(statement), cst.Call):
        called = called_name(call.func)
        for argument in call.args:
            if argument.keyword is not None and called and code.lines(argument)[0] == line:
                word = argument.keyword.value
                yield RenameArgument(file=file, within=within, call=called, old=word, new=f"new_{word}")
    text = code_of(code, run.items, bare=True)
    yield Replace(file=file, within=within, pattern=text, replacement=text)


def _is_unique(code: Source, edit: SyntaxEdit) -> bool:
    """Whether the edit has one place. One that changes nothing counts as made, and not as to be made."""
    sites = locate(code, code.within(edit.within), edit, Mark("", "UkyRecording"))
    return len(sites.anchors) + len(sites.effects) == 1
