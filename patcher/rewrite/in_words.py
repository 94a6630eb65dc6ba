"""What an edit does, as one clause in Markdown: pass `y=1` to `f`, in `Server.launch` (verl `<0.7`)."""

from __future__ import annotations

from patcher.i18n import Phrase, phrase
from patcher.rewrite.edits import (
    AddArgument,
    CreateFile,
    Edit,
    Insert,
    MoveImport,
    RemoveArgument,
    RenameArgument,
    RenameAttribute,
    Replace,
    ReplaceFunction,
    ReplaceLines,
    SetBase,
    SetDecorator,
    SetDefault,
    SetEntry,
    SetParameter,
    SetRequirement,
    Setting,
    SetValue,
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
        case Insert():
            return _inserted(edit)
        case CreateFile(content=content):
            return phrase("make this file, of {count} {count:line|lines}", count=len(content.splitlines()))
        case ReplaceLines(hunk=hunk):
            return _of_lines(hunk)
        case ReplaceFunction(within=name):
            return phrase("put another {name} in the place of the whole one", name=_code(name or ""))
        case SetDefault(parameter=name, old=old, new=new):
            sides = _codes(name=name, old=old or "-", new=new or "-")
            return phrase("let the default of {name} be {new} in place of {old}", **sides)
        case SetValue(key=key) | SetEntry(key=str() as key):
            return _set(edit, _code(key))
        case SetParameter():
            return _set(edit, phrase("the parameter"))
        case SetDecorator():
            return _set(edit, phrase("the decorator"))
        case SetBase():
            return _set(edit, phrase("the base"))
        case SetEntry(container=name):
            return _set(edit, phrase("the entry of {name}", name=_code(name)))
        case SetRequirement():
            return _set(edit, phrase("the requirement"))


def _set(edit: Setting, what: str | Phrase) -> Phrase:
    if edit.old is None:
        return phrase("add {what} {new}", what=what, new=_code(edit.new or ""))
    if edit.new is None:
        return phrase("take {what} {old} out", what=what, old=_code(edit.old))
    return phrase("let {what} be {new} in place of {old}", what=what, new=_code(edit.new), old=_code(edit.old))


def _of_lines(hunk: str) -> Phrase:
    lines = [(line[:1], line[1:].strip()) for line in hunk.splitlines()]
    old, new = ("\n".join(text for sign, text in lines if sign == wanted and text) for wanted in "-+")
    if not old:
        return phrase("add the line {new}", new=_code(new))
    if not new:
        return phrase("remove the line {old}", old=_code(old))
    return phrase("put the line {new} in place of {old}", new=_code(new), old=_code(old))


def _inserted(edit: Insert) -> Phrase:
    code, anchor = _code(edit.code), _code(edit.anchor or "")
    match edit.where:
        case "prologue":
            return phrase("insert {code} before the imports", code=code)
        case "start":
            return phrase("insert {code} at the start", code=code)
        case "end":
            return phrase("insert {code} at the end", code=code)
        case "before":
            return phrase("insert {code} before {anchor}", code=code, anchor=anchor)
        case "after":
            return phrase("insert {code} after {anchor}", code=code, anchor=anchor)


def _codes(**texts: str) -> dict[str, str]:
    return {name: _code(text) for name, text in texts.items()}


def _code(text: str) -> str:
    """Inline code: the first line, and how many more there are."""
    lines = [line for line in text.strip().splitlines() if line.strip()]
    first = lines[0].strip() if lines else ""
    fence = "``" if "`" in first else "`"
    more = f" (+{len(lines) - 1})" if len(lines) > 1 else ""
    return f"{fence}{first}{fence}{more}"
