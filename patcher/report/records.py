"""Records as rows, as JSON and explained against one tree; edits in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from patcher.i18n import Language, Phrase, language, phrase, show
from patcher.plan.outcome import FAILED
from patcher.records.model import Record, Text, When
from patcher.report.commands import command_line
from patcher.report.header import header
from patcher.report.outcomes import as_json, label
from patcher.rewrite.edits import (
    AddArgument,
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
from patcher.terminal.document import Diff, Json, Lines, Part, unified
from patcher.terminal.table import Cell, Row

if TYPE_CHECKING:
    from patcher.plan.outcome import RecordOutcome
    from patcher.session.session import Session


def text_of(record: Record, language: Language) -> Text:
    """Title and reason in the reader's language, where the record has them."""
    if language == "zh" and record.zh is not None:
        return record.zh
    return Text(record.title, record.reason)


def conditions(when: When, language: Language) -> str:
    """`verl >=0.6,<0.7, vllm >=0.12, without flash-attn`."""
    parts = [f"{name} {specifier}" for name, specifier in when.versions.items()]
    parts += [f"{show('has', language)} {symbol}" for symbol in when.has]
    parts += [f"{show('lacks', language)} {symbol}" for symbol in when.lacks]
    parts += [f"{show('without', language)} {name}" for name in when.absent]
    parts += [show(phrase("{name} under another name", name=name), language) for name in when.renamed]
    return ", ".join(parts)


def record_rows(records: Sequence[Record], language: Language) -> list[Row]:
    return [
        (
            Cell(record.id),
            Cell(show("" if record.enabled else "off", language)),
            Cell(text_of(record, language).title),
            Cell(
                conditions(When(record.when.versions, absent=record.when.absent, renamed=record.when.renamed), language)
            ),
            Cell(", ".join(record.tags)),
        )
        for record in records
    ]


def record_json(record: Record) -> dict[str, Any]:
    return {
        "id": record.id,
        "title": record.title,
        "reason": record.reason,
        "upstream": record.upstream,
        "lifetime": record.lifetime,
        "tags": list(record.tags),
        "enabled": record.enabled,
        "after": list(record.after),
        "when": {
            **record.when.versions,
            "has": list(record.when.has),
            "lacks": list(record.when.lacks),
            "absent": list(record.when.absent),
            "renamed": list(record.when.renamed),
        },
        "files": list(record.files),
        "edits": len(record.edits),
        "path": str(record.path),
    }


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


@dataclass(frozen=True, slots=True)
class Explained:
    """One record against one tree: its outcome, and each file that it alone changes, before and after."""

    record: Record
    outcome: RecordOutcome
    changes: Sequence[tuple[str, str, str]]


def explanation_report(found: Explained, session: Session) -> Iterator[Part]:
    """What the record does, its outcome on this tree, and its change or the nearest candidate."""
    record, outcome = found.record, found.outcome
    if session.output == "json":
        nearest = [{"file": file, "line": near.line, "text": near.text} for file, near in outcome.nearest]
        yield Json({**record_json(record), **as_json(outcome), "nearest": nearest})
        return
    tongue = language()
    yield Lines(*_about(record, tongue), "", *_here(outcome, session, tongue))
    for path, before, after in found.changes:
        yield Lines("")
        yield Diff(unified(path, before, after))
    if outcome.kind == "pending":
        command = command_line(session, "apply", record.id)
        yield Lines("", show(phrase("Next: {command}", command=command), tongue))


def _about(record: Record, tongue: Language) -> list[str]:
    text = text_of(record, tongue)
    lines = [f"{record.id}: {text.title}", f"  {text.reason}"]
    lines.append(f"  {show('for', tongue)}: {conditions(record.when, tongue)}")
    lines.append(f"  {show('edits', tongue)}: " + ", ".join(record.files))
    if record.upstream:
        lines.append(f"  {show('upstream', tongue)}: {record.upstream}")
    if record.path is not None:
        lines.append(f"  {show('record', tongue)}: {record.path}")
    return lines


def _here(outcome: RecordOutcome, session: Session, tongue: Language) -> list[str]:
    lines = [header(session, tongue), f"  {label(outcome.kind, tongue)}: {show(outcome.detail, tongue)}"]
    lines += [f"  {spot.file}:{spot.line}" for spot in outcome.spots]
    lines += [f"  {show('nearest', tongue)}: {file}:{near.line}: {near.text}" for file, near in outcome.nearest]
    if outcome.kind in ("drifted", "ambiguous"):
        advice = "Upstream may have fixed this: if so, narrow [when]; otherwise update the edit."
        lines.append(f"  {show(advice, tongue)}")
    if outcome.kind in FAILED and outcome.kind != "tampered":
        without = command_line(session, "apply", "--skip", outcome.id)
        lines.append(f"  {phrase('Without it: {command}', command=without).render(tongue)}")
        for_good = command_line(session, "apply", "--skip", outcome.id, "--remember")
        lines.append(f"  {phrase('Without it from now on: {command}', command=for_good).render(tongue)}")
    return lines
