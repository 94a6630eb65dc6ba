"""What a record would do to one file, whatever the tree and the versions are: `explain ID --try FILE`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from patcher.errors import UsageError, message_of
from patcher.i18n import phrase
from patcher.rewrite import rewrite
from patcher.rewrite.edits import Edit, Mark, Style
from patcher.rewrite.merging import common_ends
from patcher.rewrite.outcome import Outcome, Rewritten
from patcher.tree.source import Source, Undecodable, decode
from patcher.worktree import files

if TYPE_CHECKING:
    from patcher.records.model import Record


@dataclass(frozen=True, slots=True)
class Trial:
    """Each edit that is about the file with what came of it, and the file's text before and after."""

    file: Path
    edits: tuple[tuple[Edit, Outcome], ...]
    before: str
    after: str


def try_on(record: Record, file: Path, *, word: str, style: Style) -> Trial:
    """Make the record's edits of a file of this name on a text. Writes nothing.

    Raises UsageError where the file cannot be read, or the record edits none of this name.
    """
    try:
        content = files.read(file, files.SOURCE_BYTES, follow=True)
    except OSError as error:
        raise UsageError(phrase("{path}: cannot be read", path=file), cause=message_of(error)) from error
    read = decode(Source(file.name, content, "", 0))
    if isinstance(read, Undecodable):
        raise UsageError(phrase("{file}:{line}: {why}", file=file, line=read.line, why=read.message))
    chosen = _edits_for(record, file)
    mark = Mark(record.id, word, record.style or style)
    text, done = read[0], []
    for edit in chosen:
        outcome = rewrite(text, edit, mark, may_touch=frozenset({record.id, *record.after}))
        text = outcome.source if isinstance(outcome, Rewritten) else text
        done.append((edit, outcome))
    return Trial(file, tuple(done), read[0], text)


def _edits_for(record: Record, file: Path) -> list[Edit]:
    """The edits of the file whose path has most in common with this one, from the end."""

    def alike(name: str) -> int:
        return common_ends(Path(name).parts, file.absolute().parts)[1]

    best = max(record.files, key=alike)
    if not alike(best):
        raise UsageError(
            phrase("{id} edits no file of the name {name}", id=record.id, name=file.name),
            advice=phrase("It edits: {names}", names=", ".join(record.files)),
        )
    return [edit for edit in record.edits if edit.file == best]
