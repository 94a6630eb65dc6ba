"""What a recorded edit is called: an id, a title and a reason, in words that its author may change."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import PurePosixPath

from patcher.i18n import Phrase, Phrases, phrase
from patcher.recording.base import Fix
from patcher.recording.grouping import Piece
from patcher.rewrite.edits import (
    AddArgument,
    CreateFile,
    Edit,
    Insert,
    MoveImport,
    RemoveArgument,
    RenameArgument,
    RenameAttribute,
    SetDefault,
    SetRequirement,
    SetValue,
)
from patcher.rewrite.requirements import name_of

_LONGEST_ID = 48
"""Characters of an id, which is the name of its file, and stands in each marker. A guess."""
_DEFINED = re.compile(r"^(?:async def|def|class) (\w+)", re.MULTILINE)


def identifier(group: Sequence[Piece], subject: str, taken: Collection[str]) -> str:
    """`fork-launch-server-port`: of the commit's subject, or of the place and the name that is new there."""
    first = group[0]
    if subject:
        words = [subject]
    elif isinstance(first.made.edits[0], CreateFile):
        words = ["fork", *PurePosixPath(first.file).with_suffix("").parts[-2:]]
    elif first.made.comments_alone:
        words = ["fork", _stem(first.file), "comments"]
    else:
        counted = Counter(name for piece in group for name in piece.names)
        named = min(counted, key=lambda name: (-counted[name], len(name), name)) if counted else ""
        scope = (first.made.within or "").rpartition(".")[2].strip("_")
        words = ["fork", _stem(first.file), named or scope or _moved(first.made.edits[0])]
    parts = re.findall(r"[a-z0-9]+", " ".join(words).replace("_", " ").lower())
    made = ""
    for part in parts:
        if len(made) + len(part) < _LONGEST_ID:
            made = f"{made}-{part}" if made else part
    number, free = 2, made or "fork-edit"
    while free in taken:
        free, number = f"{made or 'fork-edit'}-{number}", number + 1
    return free


def title(group: Sequence[Piece], subject: str) -> Phrase | Phrases:
    """One line: the commit's subject, or what the first edit does and how many more there are."""
    if subject:
        return phrase("{subject}", subject=subject)
    first = group[0]
    what = _of_edit(first.made.edits[0]) or _of_place(first)
    others = len({(piece.file, piece.made.within) for piece in group}) - 1
    if others <= 0:
        return what
    return phrase("{what}, and {count} more {count:place|places}", what=what, count=others)


def reason(base: Phrase, remarks: Sequence[str]) -> Phrase | Phrases:
    """What the author wrote beside the markers; without it, that nobody has said why."""
    if remarks:
        return phrase("{text}", text=". ".join(dict.fromkeys(remarks)))
    return phrase("Edited by hand in this fork, compared with {base}. Write here why it is needed.", base=base)


def reason_of_fix(fix: Fix) -> Phrase:
    """Which verl has it."""
    if fix.since:
        return phrase("verl has it since {version} (commit {commit}).", version=fix.since, commit=fix.commit[:9])
    return phrase("verl has it in commit {commit}, and in no release that is known here.", commit=fix.commit[:9])


def _stem(file: str) -> str:
    return file.rpartition("/")[2].partition(".")[0]


def _moved(edit: Edit) -> str:
    match edit:
        case MoveImport(new=new):
            return new.rpartition(".")[2]
        case SetDefault(parameter=name) | SetValue(key=name):
            return name.rpartition(".")[2]
        case SetRequirement(old=old, new=new):
            return name_of(new or old or "")
        case _:
            return ""


def _of_edit(edit: Edit) -> Phrase | None:
    match edit:
        case MoveImport(old=old, new=new):
            return phrase("Import {new} in place of {old}", new=new, old=old)
        case RenameArgument(call=call, old=old, new=new):
            return phrase("Pass {new} in place of {old} to {call}", new=new, old=old, call=call)
        case RemoveArgument(call=call, old=old):
            return phrase("No longer pass {old} to {call}", old=old, call=call)
        case AddArgument(call=call, new=new):
            return phrase("Pass {new} to {call}", new=new, call=call)
        case RenameAttribute(old=old, new=new):
            return phrase("Use {new} in place of {old}", new=new, old=old)
        case Insert(file=file, code=code) if names := _DEFINED.findall(code):
            return phrase("Add {names} to {file}", names=", ".join(names), file=file.rpartition("/")[2])
        case SetDefault(parameter=name, new=str() as new, within=scope):
            return phrase("Let {name} of {scope} be {new} by default", name=name, scope=scope, new=new)
        case SetValue(key=key, new=str() as new, file=file):
            return phrase("Set {key} to {new} in {file}", key=key, new=new, file=file.rpartition("/")[2])
        case CreateFile(file=file):
            return phrase("Add the file {file}", file=file)
        case SetRequirement(new=str() as new, file=file):
            return phrase("Require {new} in {file}", new=new, file=file.rpartition("/")[2])
        case _:
            return None


def _of_place(piece: Piece) -> Phrase:
    name = piece.file.rpartition("/")[2]
    if piece.made.comments_alone:
        return phrase("Change comments in {file}", file=name)
    if piece.made.within is None:
        return phrase("Change {file}", file=name)
    return phrase("Change {scope} in {file}", scope=piece.made.within, file=name)
