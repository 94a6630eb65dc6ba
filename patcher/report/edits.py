"""Edits in words."""

from __future__ import annotations

from patcher.i18n import Phrase, phrase
from patcher.rewrite.edits import (
    AddArgument,
    Edit,
    Insert,
    MoveImport,
    RemoveArgument,
    RenameArgument,
    RenameAttribute,
    Replace,
)


def in_words(edit: Edit) -> Phrase:
    """One clause in Markdown: what the edit does, where in the file, and for which verl releases."""
    what = _what(edit)
    if edit.within is not None:
        what = phrase("{what}, in {scope}", what=what, scope=_code(edit.within))
    if edit.verl is not None:
        what = phrase("{what} (verl {spec})", what=what, spec=_code(edit.verl))
    return what


def _what(edit: Edit) -> Phrase:
    match edit:
        case MoveImport(old=old, new=new):
            return phrase("import {new} in place of {old}", old=_code(old), new=_code(new))
        case RenameArgument(call=call, old=old, new=new, value=value):
            argument = f"{new}={value}" if value is not None else new
            return phrase("pass {new} in place of {old} to {call}", **_codes(new=argument, old=old, call=call))
        case RemoveArgument(call=call, old=old):
            return phrase("no longer pass {old} to {call}", **_codes(old=old, call=call))
        case AddArgument(call=call, new=new, value=value):
            return phrase("pass {new} to {call}", **_codes(new=f"{new}={value}", call=call))
        case RenameAttribute(old=old, new=new):
            return phrase("use the attribute {new} in place of {old}", **_codes(old=old, new=new))
        case Replace(pattern=pattern, replacement=""):
            return phrase("remove {pattern}", pattern=_code(pattern))
        case Replace(pattern=pattern, replacement=replacement):
            return phrase("put {new} in place of {pattern}", **_codes(new=replacement, pattern=pattern))
        case Insert(where="prologue", code=code):
            return phrase("insert {code} before the imports", code=_code(code))
        case Insert(where="start", code=code):
            return phrase("insert {code} at the start", code=_code(code))
        case Insert(where="end", code=code):
            return phrase("insert {code} at the end", code=_code(code))
        case Insert(where="before", code=code, anchor=anchor):
            return phrase("insert {code} before {anchor}", **_codes(code=code, anchor=anchor or ""))
        case Insert(where="after", code=code, anchor=anchor):
            return phrase("insert {code} after {anchor}", **_codes(code=code, anchor=anchor or ""))
        case _:
            raise AssertionError(edit)


def _codes(**texts: str) -> dict[str, str]:
    return {name: _code(text) for name, text in texts.items()}


def _code(text: str) -> str:
    """Inline code: the first line, and how many more there are."""
    lines = [line for line in text.strip().splitlines() if line.strip()]
    first = lines[0].strip() if lines else ""
    fence = "``" if "`" in first else "`"
    more = f" (+{len(lines) - 1})" if len(lines) > 1 else ""
    return f"{fence}{first}{fence}{more}"
