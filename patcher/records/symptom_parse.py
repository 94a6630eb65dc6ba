"""A symptom's TOML text -> Symptom, or all of its mistakes at once."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from patcher.errors import RecordError
from patcher.i18n import Phrases, phrase
from patcher.logs.milestones import PHASES, Phase
from patcher.logs.required_words import needles, width
from patcher.records import rules
from patcher.records.load import read, symptom_files
from patcher.records.parse import DISTRIBUTIONS
from patcher.records.symptoms import (
    TOPICS,
    Fix,
    Kind,
    Match,
    Part,
    Stack,
    Symptom,
    SymptomExample,
    Test,
    Trend,
    Wait,
    Words,
)
from patcher.tables.lines import KeyPath
from patcher.tables.mistakes import Checker, Mistake
from patcher.tables.toml import decode

_TOP = (
    *("id", "title", "cause", "kind", "topic", "part", "phase", "follows", "times", "source", "note", "zh", "when"),
    *("match", "wait", "trend", "stack", "fix", "example", "near-miss"),
)
_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_KEY = re.compile(r"\+{0,2}[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def load_symptoms(folders: Sequence[Path] = ()) -> tuple[Symptom, ...]:
    """The shipped symptoms and those of `folders`, which replace shipped ones of the same name, by id.

    Raises RecordError with all mistakes of all, and for a folder that is not there.
    """
    symptoms: dict[str, Symptom] = {}
    mistakes: list[Mistake] = []
    for path in symptom_files(folders):
        text = read(path)
        match text if isinstance(text, Mistake) else parse_symptom(text, path):
            case Symptom() as symptom:
                symptoms[symptom.id] = symptom
            case Mistake() as mistake:
                mistakes.append(mistake)
            case found:
                mistakes.extend(found)
    if not mistakes:
        mistakes = [
            Mistake(str(symptom.path), 0, "follows", phrase("there is no symptom {name!r}", name=name))
            for symptom in symptoms.values()
            for name in symptom.follows
            if name not in symptoms
        ]
    if mistakes:
        title = (
            "1 mistake in the symptoms" if len(mistakes) == 1 else "{count} {count:mistake|mistakes} in the symptoms"
        )
        cause = Phrases(tuple(mistake.told for mistake in mistakes), "\n  ")
        raise RecordError(phrase(title, count=len(mistakes)), cause=cause)
    return tuple(symptoms.values())


def parse_symptom(text: str, path: Path) -> Symptom | Sequence[Mistake]:
    """One file's symptom, or all of its mistakes."""
    data = decode(text, path)
    if isinstance(data, Mistake):
        return [data]
    check = Checker(str(path), text)
    check.table(data, (), _TOP)
    zh = check.table(data.get("zh", {}), ("zh",), ("title", "cause"))
    symptom = Symptom(
        id=_identifier(check, data, path),
        title=check.string(data, (), "title") or "",
        cause=check.string(data, (), "cause") or "",
        kind=check.choice(data, (), "kind", get_args(Kind)) or "failure",  # type: ignore[arg-type]
        zh=Words(check.string(zh, ("zh",), "title") or "", check.string(zh, ("zh",), "cause") or ""),
        topic=check.choice(data, (), "topic", TOPICS) or "",
        part=_part(check, data),
        phase=_phases(check, data),
        follows=check.strings(data, (), "follows"),
        times=check.count(data, (), "times") if "times" in data else 1,
        source=check.string(data, (), "source", required=False) or "",
        note=check.string(data, (), "note", required=False) or "",
        when=_when(check, data, ()),
        matches=tuple(_match(check, item, path) for path, item in check.tables(data, "match")),
        waits=tuple(_wait(check, item, path) for path, item in check.tables(data, "wait")),
        trends=tuple(_trend(check, item, path) for path, item in check.tables(data, "trend")),
        stacks=tuple(_stack(check, item, path) for path, item in check.tables(data, "stack")),
        fixes=tuple(_fix(check, item, path) for path, item in check.tables(data, "fix")),
        examples=(*_examples(check, data, "example"), *_examples(check, data, "near-miss")),
        path=path,
    )
    if not (symptom.matches or symptom.waits or symptom.trends or symptom.stacks):
        check.note(("match",), "is missing; a symptom needs a [[match]], [[wait]], [[trend]] or [[stack]]")
    if not symptom.fixes:
        check.note(("fix",), "is missing; a symptom needs at least one [[fix]]")
    if symptom.matches and not any(example.line for example in symptom.examples):
        check.note(("example",), "is missing; a symptom with a [[match]] needs an [[example]]")
    return check.mistakes or symptom


def _identifier(check: Checker, data: Mapping[str, Any], path: Path) -> str:
    value = check.string(data, (), "id") or ""
    if value and not _ID.fullmatch(value):
        check.note(("id",), phrase("{value!r} must be lower-case letters, digits and single hyphens", value=value))
    elif value and value != path.stem:
        check.note(("id",), phrase("{id!r} must be the file's name, {stem!r}", id=value, stem=path.stem))
    return value


def _part(check: Checker, data: Mapping[str, Any]) -> Part:
    return (check.choice(data, (), "part", get_args(Part)) if "part" in data else None) or "cause"  # type: ignore[return-value]


def _phases(check: Checker, data: Mapping[str, Any]) -> tuple[Phase, ...]:
    found = check.strings(data, (), "phase")
    for name in found:
        if name not in PHASES:
            names = ", ".join(PHASES)
            check.note(("phase",), phrase("{value!r} is none of: {names}", value=name, names=names))
    return found  # type: ignore[return-value]


def _match(check: Checker, item: Any, path: KeyPath) -> Match:
    table = check.table(item, path, ("line", "near", "within", "after-steps"))
    near = check.strings(table, path, "near")
    for pattern in near:
        _compiles(check, (*path, "near"), pattern)
    line = _pattern(check, table, path, "line")
    if line and not check.mistakes:
        try:
            needles(line)
        except ValueError:
            check.note((*path, "line"), "can match without any word of three letters or more")
    return Match(
        line,
        near,
        check.count(table, path, "within") if "within" in table else 40,
        check.count(table, path, "after-steps") if "after-steps" in table else 0,
    )


def _wait(check: Checker, item: Any, path: KeyPath) -> Wait:
    return Wait(_pattern(check, check.table(item, path, ("line",)), path, "line"))


def _trend(check: Checker, item: Any, path: KeyPath) -> Trend:
    table = check.table(item, path, ("metric", "test", "value", "steps", "also"))
    test = check.choice(table, path, "test", get_args(Test)) or "nan"
    value = table.get("value", 0.0)
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        check.note((*path, "value"), "must be a number")
        value = 0.0
    if ("value" in table) != (test in ("below", "above")):
        check.note((*path, "value"), "goes with the tests 'below' and 'above'")
    also = check.strings(table, path, "also")
    steps = check.count(table, path, "steps")
    return Trend(_pattern(check, table, path, "metric"), test, float(value), steps, also)  # type: ignore[arg-type]


def _stack(check: Checker, item: Any, path: KeyPath) -> Stack:
    table = check.table(item, path, ("frames", "main", "stopped"))
    frames = check.strings(table, path, "frames")
    stopped = check.boolean(table, path, "stopped", False)
    if not frames and not stopped:
        check.note((*path, "frames"), "is missing")
    for pattern in frames:
        _compiles(check, (*path, "frames"), pattern)
    return Stack(frames, check.boolean(table, path, "main", True), stopped)


def _fix(check: Checker, item: Any, path: KeyPath) -> Fix:
    table = check.table(item, path, ("text", "zh", "run", "set", "env", "patch", "setting", "when"))
    overrides = _strings_table(check, table, path, "set", _KEY, "{name!r} is no key of a config")
    variables = _strings_table(check, table, path, "env", _VARIABLE, "{name!r} is no name of a variable")
    return Fix(
        text=check.string(table, path, "text") or "",
        zh=check.string(table, path, "zh") or "",
        run=(check.string(table, path, "run", required=False) or "").strip(),
        set=overrides,
        env=variables,
        patch=check.string(table, path, "patch", required=False),
        setting=check.string(table, path, "setting", required=False),
        when=_when(check, table, path),
    )


def _strings_table(
    check: Checker, data: Mapping[str, Any], path: KeyPath, key: str, names: re.Pattern[str], wrong: str
) -> dict[str, str]:
    table = data.get(key, {})
    inner = (*path, key)
    if not isinstance(table, dict):
        check.table(table, inner, ())
        return {}
    for name in table:
        if not names.fullmatch(name):
            check.note((*inner, name), phrase(wrong, name=name))
    return {name: check.string(table, inner, name, required=False) or "" for name in table}


def _when(check: Checker, data: Mapping[str, Any], path: KeyPath) -> dict[str, str]:
    inner = (*path, "when")
    table = check.table(data.get("when", {}), inner, DISTRIBUTIONS)
    found = {}
    for name in table:
        if (value := check.string(table, inner, name)) is not None:
            found[name] = value
            if not rules.is_specifier(value):
                wrong = "{value!r} is no version specifier; write for example '>=0.11.1,<0.14'"
                check.note((*inner, name), phrase(wrong, value=value))
    return found


def _examples(check: Checker, data: Mapping[str, Any], key: str) -> list[SymptomExample]:
    found = []
    for path, item in check.tables(data, key):
        hit = key == "example"
        table = check.table(item, path, ("name", "log", "line") if hit else ("name", "log"))
        log = check.string(table, path, "log") or ""
        line = check.count(table, path, "line") if hit else None
        found.append(SymptomExample(check.string(table, path, "name") or "", log, line))
    return found


def _pattern(check: Checker, table: Mapping[str, Any], path: KeyPath, key: str) -> str:
    value = check.string(table, path, key) or ""
    _compiles(check, (*path, key), value)
    return value


def _compiles(check: Checker, path: KeyPath, pattern: str) -> None:
    try:
        least = width(pattern)
    except re.error as error:
        check.note(path, phrase("is no regular expression: {problem}", problem=str(error)))
        return
    if pattern and not least:
        check.note(path, "matches the empty line")
