"""A record's TOML text -> Record, or all of its mistakes at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, get_args

from patcher.error_messages import said
from patcher.i18n import phrase
from patcher.records import rules
from patcher.records.model import Example, Failure, Lifetime, Record, Text, When
from patcher.rewrite.edits import (
    AddArgument,
    Edit,
    Insert,
    MoveImport,
    RemoveArgument,
    RenameArgument,
    RenameAttribute,
    Replace,
    Style,
    Where,
)
from patcher.tables.lines import KeyPath
from patcher.tables.mistakes import Checker, Mistake
from patcher.tables.toml import decode

DISTRIBUTIONS = (
    "verl",
    "vllm",
    "torch",
    "transformers",
    "triton",
    "ray",
    "flash-attn",
    "tensordict",
    "numpy",
    "python",
    "cuda",
)
"""What `[when]` can ask about."""

_TOP = (
    *("id", "title", "reason", "upstream", "lifetime", "tags", "after", "enabled", "style"),
    *("zh", "when", "edit", "resolved", "example"),
)
_PLACE = ("file", "within", "count", "kind", "verl")
_KEYS = {
    "move-import": ("old", "new"),
    "rename-argument": ("call", "old", "new", "value"),
    "remove-argument": ("call", "old"),
    "add-argument": ("call", "new", "value"),
    "rename-attribute": ("old", "new"),
    "replace": ("pattern", "with"),
    "insert": ("where", "code", "anchor"),
}
_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_SYMBOL = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)+(?:\([^\W\d]\w*\))?")


def parse(text: str, path: Path) -> Record | list[Mistake]:
    """Parse one record. `path` names it in messages, and its stem must be the record's id."""
    data = decode(text, path)
    if isinstance(data, Mistake):
        return [data]
    check = Checker(str(path), text)
    check.table(data, (), _TOP)
    record = Record(
        id=_identifier(check, data, path),
        title=check.string(data, (), "title") or "",
        reason=check.string(data, (), "reason") or "",
        lifetime=check.choice(data, (), "lifetime", get_args(Lifetime)) or "fork-only",  # type: ignore[arg-type]
        when=_when(check, data),
        edits=_edits(check, data),
        examples=_examples(check, data),
        resolved=_resolved(check, data),
        upstream=check.string(data, (), "upstream", required=False),
        tags=check.strings(data, (), "tags"),
        after=check.strings(data, (), "after"),
        enabled=check.boolean(data, (), "enabled", True),
        style=check.choice(data, (), "style", get_args(Style)) if "style" in data else None,  # type: ignore[arg-type]
        zh=_chinese(check, data),
        source=text,
        path=path,
    )
    _cross_check(check, record)
    return check.mistakes or record


def _identifier(check: Checker, data: Mapping[str, Any], path: Path) -> str:
    value = check.string(data, (), "id") or ""
    if value and not _ID.fullmatch(value):
        check.note(("id",), phrase("{value!r} must be lower-case letters, digits and single hyphens", value=value))
    elif value and value != path.stem:
        check.note(("id",), phrase("{id!r} must be the file's name, {stem!r}", id=value, stem=path.stem))
    return value


def _chinese(check: Checker, data: Mapping[str, Any]) -> Text | None:
    if "zh" not in data:
        return None
    table = check.table(data["zh"], ("zh",), ("title", "reason"))
    title, reason = (check.string(table, ("zh",), key) or "" for key in ("title", "reason"))
    return Text(title, reason)


def _when(check: Checker, data: Mapping[str, Any]) -> When:
    table = check.table(data.get("when", {}), ("when",), (*DISTRIBUTIONS, "has", "lacks", "absent", "renamed"))
    versions = {}
    for name in DISTRIBUTIONS:
        if name in table and (value := check.string(table, ("when",), name)) is not None:
            versions[name] = value
            _specifier(check, ("when", name), value)
    has, lacks, absent, renamed = (
        check.strings(table, ("when",), key) for key in ("has", "lacks", "absent", "renamed")
    )
    for key, symbols in (("has", has), ("lacks", lacks)):
        for symbol in symbols:
            if not _SYMBOL.fullmatch(symbol):
                form = "{symbol!r} must be a full dotted name, or one with (parameter)"
                check.note(("when", key), phrase(form, symbol=symbol))
    for key, names in (("absent", absent), ("renamed", renamed)):
        for name in names:
            if name not in DISTRIBUTIONS:
                known = ", ".join(DISTRIBUTIONS)
                check.note(("when", key), phrase("{value!r} is none of: {names}", value=name, names=known))
    return When(versions, has, lacks, absent, renamed)


def _specifier(check: Checker, path: KeyPath, value: str) -> None:
    if not rules.is_specifier(value):
        wrong = "{value!r} is no version specifier; write for example '>=0.11.1,<0.14'"
        check.note(path, phrase(wrong, value=value))


def _edits(check: Checker, data: Mapping[str, Any]) -> tuple[Edit, ...]:
    edits = []
    for path, value in check.tables(data, "edit"):
        kind = str(value.get("kind")) if isinstance(value, dict) else ""
        keys = _KEYS.get(kind, tuple(dict.fromkeys(key for keys in _KEYS.values() for key in keys)))
        table = check.table(value, path, (*_PLACE, *keys))
        if check.choice(table, path, "kind", _KEYS) is not None:
            edits.append(_edit(check, table, path, kind))
    if "edit" not in data:
        check.note(("edit",), "is missing; a record needs at least one [[edit]]")
    return tuple(edits)


def _edit(check: Checker, table: Mapping[str, Any], path: KeyPath, kind: str) -> Edit:
    from patcher.rewrite import check_code, check_pattern, check_value

    def text(key: str, test: Callable[[str], object] | None = None, *, required: bool = True) -> str:
        value = check.string(table, path, key, required=required)
        if value is not None and test is not None:
            try:
                test(value)
            except ValueError as error:
                check.note((*path, key), said(error))
        return value or ""

    verl = check.string(table, path, "verl") if "verl" in table else None
    if verl is not None:
        _specifier(check, (*path, "verl"), verl)
    place: dict[str, Any] = {
        "file": text("file", rules.tree_path),
        "within": text("within", rules.dotted) if "within" in table else None,
        "count": check.count(table, path, "count"),
        "verl": verl,
    }
    match kind:
        case "move-import":
            return MoveImport(**place, old=text("old", rules.dotted), new=text("new", rules.dotted))
        case "rename-argument":
            value = text("value", check_value) if "value" in table else None
            old, new = text("old", rules.name), text("new", rules.name)
            return RenameArgument(**place, call=text("call", rules.dotted), old=old, new=new, value=value)
        case "remove-argument":
            return RemoveArgument(**place, call=text("call", rules.dotted), old=text("old", rules.name))
        case "add-argument":
            new, value = text("new", rules.name), text("value", check_value)
            return AddArgument(**place, call=text("call", rules.dotted), new=new, value=value)
        case "rename-attribute":
            return RenameAttribute(**place, old=text("old", rules.dotted), new=text("new", rules.name))
        case "replace":
            replacement = check.string(table, path, "with", required=False)
            if replacement is None and "with" not in table:
                check.note((*path, "with"), "is missing; an empty string removes what the pattern matches")
            pattern = text("pattern", check_pattern)
            _bound(check, (*path, "with"), replacement or "", pattern)
            return Replace(**place, pattern=pattern, replacement=replacement or "")
        case _:
            where = check.choice(table, path, "where", get_args(Where)) or "prologue"
            beside = where in ("before", "after")
            if beside != ("anchor" in table):
                rule = "is needed where = {where!r}" if beside else "is not allowed where = {where!r}"
                check.note((*path, "anchor"), phrase(rule, where=where))
            if where in ("start", "end") and place["within"] is None:
                check.note((*path, "within"), phrase("is needed where = {where!r}", where=where))
            anchor = text("anchor", check_pattern) if "anchor" in table else None
            code = text("code", check_code)
            _bound(check, (*path, "code"), code, anchor or "")
            return Insert(**place, where=where, code=code, anchor=anchor)  # type: ignore[arg-type]


def _bound(check: Checker, path: KeyPath, text: str, pattern: str) -> None:
    from patcher.rewrite import metavariables

    for name in sorted(metavariables(text) - metavariables(pattern)):
        anchor = "${name} is bound by no metavariable of the anchor"
        pattern = "${name} is bound by no metavariable of the pattern"
        check.note(path, phrase(anchor if path[-1] == "code" else pattern, name=name))


def _resolved(check: Checker, data: Mapping[str, Any]) -> tuple[str, ...]:
    from patcher.rewrite import check_pattern

    if "resolved" not in data:
        return ()
    path: KeyPath = ("resolved",)
    table = check.table(data["resolved"], path, ("pattern",))
    value = table.get("pattern")
    many = isinstance(value, list)
    if not many:
        single = check.string(table, path, "pattern")
        patterns: tuple[str, ...] = (single,) if single is not None else ()
    else:
        patterns = check.strings(table, path, "pattern")
    for pattern in patterns:
        try:
            check_pattern(pattern)
        except ValueError as error:
            check.note((*path, "pattern"), said(error))
    return patterns


def _examples(check: Checker, data: Mapping[str, Any]) -> tuple[Example, ...]:
    examples = []
    for path, value in check.tables(data, "example"):
        table = check.table(value, path, ("name", "file", "before", "after", "untouched", "fails"))
        name = check.string(table, path, "name") or ""
        file = check.string(table, path, "file") if "file" in table else None
        given = frozenset(table) & {"before", "after", "untouched", "fails"}
        if given not in ({"before", "after"}, {"before", "fails"}, {"untouched"}):
            check.note(path, "needs before and after, or before and fails, or untouched alone")
            continue
        source = check.string(table, path, "untouched" if "untouched" in table else "before") or ""
        after = check.string(table, path, "after", required=False)
        fails = check.choice(table, path, "fails", get_args(Failure)) if "fails" in table else None
        examples.append(Example(name, source, after, fails, file))  # type: ignore[arg-type]
    return tuple(examples)


def _cross_check(check: Checker, record: Record) -> None:
    files = ", ".join(record.files)
    for index, example in enumerate(record.examples):
        if example.file is None and len(record.files) > 1:
            check.note(("example", index, "file"), phrase("is needed; the record edits {files}", files=files))
        elif example.file is not None and example.file not in record.files:
            text = phrase("{value!r} is none of: {names}", value=example.file, names=files)
            check.note(("example", index, "file"), text)
    if record.id in record.after:
        check.note(("after",), "a record cannot come after itself")
