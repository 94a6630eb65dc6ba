"""What is not finished in a record that `uky-patch new` has begun: it may lie there as long as it is off.

title = "…"
pattern = "return 0"
with = "return 0"
"""

from __future__ import annotations

from patcher.records.model import Record
from patcher.rewrite.edits import Edit, MoveImport, RenameArgument, RenameAttribute, Replace
from patcher.tables.mistakes import Mistake
from patcher.tables.shapes import Mistakes

TO_BE_WRITTEN = "…"
"""The title and the reason of a record that is begun."""


def unfinished(record: Record) -> list[Mistake]:
    """What is to be written by hand still, and the edits that change nothing."""
    mistakes = Mistakes(str(record.path), record.source)
    for key, written in (("title", record.title), ("reason", record.reason)):
        if written.strip() == TO_BE_WRITTEN:
            mistakes.note((key,), "is to be written by hand; … stands for what is not finished")
    for index, edit in enumerate(record.edits):
        if isinstance(edit, Replace) and edit.replacement.strip() == edit.pattern.strip():
            mistakes.note(("edit", index, "with"), "is the pattern itself, so that the edit changes nothing")
        elif _renames_nothing(edit):
            mistakes.note(("edit", index, "new"), "is the same as old")
    return mistakes.found


def _renames_nothing(edit: Edit) -> bool:
    match edit:
        case MoveImport(old=old, new=new) | RenameArgument(old=old, new=new, value=None):
            return old == new
        case RenameAttribute(old=old, new=new):
            return old.rpartition(".")[2] == new
        case _:
            return False
