"""A record's TOML text -> Record, or all of its mistakes at once. `RECORD` and `EDIT` say which keys there are.

Each key has a rule for its value; what holds between keys (`with` needs `pattern`'s metavariables, `anchor` goes with
`where = "before"`) is in the `_check_…` functions. docs/schemas are made from the same tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from patcher.i18n import phrase
from patcher.records.model import Example, Failure, Lifetime, Record, Text, When
from patcher.records.rules import (
    DISTRIBUTIONS,
    VERSION_FIELDS,
    given_versions,
    identifier,
    is_dotted_name,
    is_id,
    is_name,
    is_source_path,
    is_specifier,
    is_symbol,
    is_symbol_pattern,
    is_tree_path,
)
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
    Style,
    Where,
)
from patcher.rewrite.hunk import check_hunk
from patcher.rewrite.pattern import (
    check_base,
    check_code,
    check_definition,
    check_parameter,
    check_pattern,
    check_value,
    metavariables,
)
from patcher.rewrite.requirements import check_requirement
from patcher.tables.mistakes import KeyPath, Mistake
from patcher.tables.shapes import (
    READ_ELSEWHERE,
    Field,
    Mistakes,
    OneOf,
    Rule,
    Shape,
    choice,
    flag,
    one_of,
    read_file,
    table,
    tables,
    text,
    text_or_texts,
    texts,
)


def parse(source: str, path: Path) -> Record | list[Mistake]:
    """Parse one record. `path` names it in messages, and its stem must be the record's id."""
    found = read_file(source, path, RECORD)
    return replace(found, source=source, path=path) if isinstance(found, Record) else found


def _check_replace(mistakes: Mistakes, path: KeyPath, edit: Replace, written: Mapping[str, Any]) -> None:
    if "with" not in written:
        mistakes.note((*path, "with"), "is missing; an empty string removes what the pattern matches")
    for name in _unbound(edit.replacement, edit.pattern):
        mistakes.note((*path, "with"), phrase("${name} is bound by no metavariable of the pattern", name=name))


def _check_insert(mistakes: Mistakes, path: KeyPath, edit: Insert, written: Mapping[str, Any]) -> None:
    beside = edit.where in ("before", "after")
    if edit.where and beside != ("anchor" in written):
        rule = "is needed where = {where!r}" if beside else "is not allowed where = {where!r}"
        mistakes.note((*path, "anchor"), phrase(rule, where=edit.where))
    if edit.where in ("start", "end") and edit.within is None:
        mistakes.note((*path, "within"), phrase("is needed where = {where!r}", where=edit.where))
    for name in _unbound(edit.code, edit.anchor or ""):
        mistakes.note((*path, "code"), phrase("${name} is bound by no metavariable of the anchor", name=name))


def _check_setting(mistakes: Mistakes, path: KeyPath, edit: Setting, written: Mapping[str, Any]) -> None:
    if "old" not in written and "new" not in written:
        mistakes.note((*path, "new"), "is missing; an edit needs old, new or both")
    elif edit.old == edit.new:
        mistakes.note((*path, "new"), "is the same as old")
    if isinstance(edit, (SetDefault, SetParameter, SetDecorator, SetBase)):
        _check_within(mistakes, path, edit, written)
    if "behind" in written and "old" in written:
        mistakes.note((*path, "behind"), "is for what is added, without old")
    if isinstance(edit, SetValue) and edit.file.endswith((".sh", ".bash")) and edit.old is None is edit.behind:
        mistakes.note((*path, "behind"), "is missing; in a script it tells where a new one stands")


def _check_within(mistakes: Mistakes, path: KeyPath, edit: Edit, _: Mapping[str, Any]) -> None:
    if edit.within is None:
        mistakes.note((*path, "within"), "is missing; it names the function or class")


def _unbound(replacement: str, pattern: str) -> list[str]:
    """The metavariables that a replacement uses and its pattern does not bind: `g($Y)` for `f($X)`."""
    return sorted(metavariables(replacement) - metavariables(pattern))


def _read_count(mistakes: Mistakes, path: KeyPath, written: Any) -> int | None:
    if written == "every":
        return None
    if not isinstance(written, int) or isinstance(written, bool) or not 1 <= written <= _MOST_PLACES:
        mistakes.note(path, phrase('must be a whole number from 1 to {most}, or "every"', most=_MOST_PLACES))
        return 1
    return written


_MOST_PLACES = 1000
_COUNT = Field(
    _read_count,
    1,
    1,
    schema={"anyOf": [{"type": "integer", "minimum": 1, "maximum": _MOST_PLACES}, {"const": "every"}]},
)
_EVERY = replace(_COUNT, wrong=None, default=None)


def _edit(
    make: Callable[..., Edit],
    rule: Callable[[Mistakes, KeyPath, Any, Mapping[str, Any]], None] | None = None,
    **fields: Field,
) -> Shape[Edit]:
    """A kind of edit: where it acts, and its own keys. A record is written with its keys in this order."""
    place = {
        "file": text(is_source_path),
        "within": text(is_dotted_name, default=None),
        "verl": text(is_specifier, default=None),
        "kind": READ_ELSEWHERE,
    }
    return Shape(make, {**place, **fields, "count": fields.get("count", _COUNT)}, rule)


def _text_edit(
    make: Callable[..., Edit],
    rule: Callable[[Mistakes, KeyPath, Any, Mapping[str, Any]], None] | None = None,
    **fields: Field,
) -> Shape[Edit]:
    """A kind of edit of a text that need be no Python: it has no scope, and one place."""
    place = {"file": text(is_tree_path), "verl": text(is_specifier, default=None), "kind": READ_ELSEWHERE}
    return Shape(make, {**place, **fields}, rule)


def _old_and_new(*rules: Rule, blank: bool = False) -> dict[str, Field]:
    """`old` and `new`, of which one may be left out: what is taken out, and what is added."""
    return {key: text(*rules, default=None, blank=blank) for key in ("old", "new")}


EDIT = OneOf(
    "kind",
    {
        "move-import": _edit(MoveImport, old=text(is_dotted_name), new=text(is_dotted_name), count=_EVERY),
        "rename-argument": _edit(
            RenameArgument,
            call=text(is_dotted_name),
            old=text(is_name),
            new=text(is_name),
            value=text(check_value, default=None),
        ),
        "remove-argument": _edit(RemoveArgument, call=text(is_dotted_name), old=text(is_name)),
        "add-argument": _edit(AddArgument, call=text(is_dotted_name), new=text(is_name), value=text(check_value)),
        "rename-attribute": _edit(RenameAttribute, old=text(is_dotted_name), new=text(is_name)),
        "replace": _edit(
            Replace,
            _check_replace,
            pattern=text(check_pattern),
            **{"with": text(blank=True, default="", attribute="replacement")},
        ),
        "insert": _edit(
            Insert,
            _check_insert,
            where=choice(get_args(Where)),
            anchor=text(check_pattern, default=None),
            code=text(check_code),
        ),
        "set-default": _edit(SetDefault, _check_setting, parameter=text(is_name), **_old_and_new(check_value)),
        "set-parameter": _edit(
            SetParameter, _check_setting, **_old_and_new(check_parameter), behind=text(default=None)
        ),
        "set-decorator": _edit(
            SetDecorator, _check_setting, **_old_and_new(check_value), behind=text(check_value, default=None)
        ),
        "set-base": _edit(SetBase, _check_setting, **_old_and_new(check_base), behind=text(check_base, default=None)),
        "set-entry": _edit(
            SetEntry,
            _check_setting,
            container=text(is_name),
            key=text(check_value, default=None),
            **_old_and_new(check_value),
            behind=text(check_value, default=None),
        ),
        "replace-function": _edit(ReplaceFunction, _check_within, was=text(), code=text(check_definition)),
        "set-value": _text_edit(
            SetValue,
            _check_setting,
            key=text(),
            **_old_and_new(blank=True),
            behind=text(default=None),
            comment=text(default=None),
        ),
        "set-requirement": _text_edit(
            SetRequirement,
            _check_setting,
            **_old_and_new(check_requirement),
            behind=text(check_requirement, default=None),
        ),
        "diff": _text_edit(ReplaceLines, hunk=text(check_hunk)),
        "create-file": _text_edit(CreateFile, content=text(blank=True)),
    },
)


def _make_when(
    has: tuple[str, ...],
    lacks: tuple[str, ...],
    absent: tuple[str, ...],
    renamed: tuple[str, ...],
    **versions: str | None,
) -> When:
    return When(given_versions(**versions), has, lacks, absent, renamed)


_WHEN = Shape(
    _make_when,
    {
        **VERSION_FIELDS,
        "has": texts(is_symbol),
        "lacks": texts(is_symbol),
        "absent": texts(one_of(DISTRIBUTIONS)),
        "renamed": texts(one_of(DISTRIBUTIONS)),
    },
)


def _make_example(
    name: str, file: str | None, before: str, after: str | None, untouched: str, fails: Failure | None
) -> Example:
    return Example(name, untouched or before, after, fails, file)


def _check_example(mistakes: Mistakes, path: KeyPath, _: Example, written: Mapping[str, Any]) -> None:
    if written.keys() & {"before", "after", "untouched", "fails"} not in (
        {"before", "after"},
        {"before", "fails"},
        {"untouched"},
    ):
        mistakes.note(path, "needs before and after, or before and fails, or untouched alone")


_EXAMPLE = Shape(
    _make_example,
    {
        "name": text(),
        "file": text(default=None),
        "before": text(default=""),
        "after": text(blank=True, default=None),
        "untouched": text(default=""),
        "fails": choice(get_args(Failure), default=None),
    },
    _check_example,
)


def _check_record(mistakes: Mistakes, _: KeyPath, record: Record, written: Mapping[str, Any]) -> None:
    if "edit" not in written:
        mistakes.note(("edit",), "is missing; a record needs at least one [[edit]]")
    files = ", ".join(record.files)
    for index, example in enumerate(record.examples):
        if example.file is None and len(record.files) > 1:
            mistakes.note(("example", index, "file"), phrase("is needed; the record edits {files}", files=files))
        elif example.file and example.file not in record.files:
            wrong = phrase("{value!r} is none of: {names}", value=example.file, names=files)
            mistakes.note(("example", index, "file"), wrong)
    if record.id in record.after:
        mistakes.note(("after",), "a record cannot come after itself")


RECORD = Shape(
    Record,
    {
        "id": identifier(is_id),
        "title": text(),
        "reason": text(),
        "repairs": texts(is_symbol_pattern),
        "upstream": text(blank=True, default=None),
        "lifetime": choice(get_args(Lifetime)),
        "tags": texts(),
        "after": texts(),
        "enabled": flag(True),
        "style": choice(get_args(Style), default=None),
        "zh": table(Shape(Text, {"title": text(), "reason": text()}), default=None),
        "when": table(_WHEN),
        "edit": tables(EDIT, attribute="edits"),
        "resolved": table(Shape(lambda pattern: pattern, {"pattern": text_or_texts(check_pattern)}), default=()),
        "example": tables(_EXAMPLE, attribute="examples"),
    },
    _check_record,
)
