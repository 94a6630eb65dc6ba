"""A record -> its TOML text, in the form of the shipped records; reading it back gives the same edits."""

from __future__ import annotations

import json
from collections.abc import Iterable

from patcher.records.model import Example, Record
from patcher.records.parse import EDIT
from patcher.rewrite.edits import Edit


def written(record: Record, heading: Iterable[str] = ()) -> str:
    """The record's text; `heading` are comment lines above it."""
    lines = [*(f"# {line}" for line in heading), f"id = {_string(record.id)}", f"title = {_string(record.title)}"]
    lines.append(f"reason = {_string(record.reason)}")
    if record.upstream:
        lines.append(f"upstream = {_string(record.upstream)}")
    lines.append(f"lifetime = {_string(record.lifetime)}")
    named = (("repairs", record.repairs), ("tags", record.tags), ("after", record.after))
    lines += [f"{key} = {_strings(value)}" for key, value in named if value]
    lines += [] if record.enabled else ["enabled = false"]
    lines += [f"style = {_string(record.style)}"] if record.style is not None else []
    if record.zh is not None:
        lines += ["", "[zh]", f"title = {_string(record.zh.title)}", f"reason = {_string(record.zh.reason)}"]
    lines += ["", "[when]", *(f"{name} = {_string(spec)}" for name, spec in record.when.versions.items())]
    when = record.when
    for key, symbols in (("has", when.has), ("lacks", when.lacks), ("absent", when.absent), ("renamed", when.renamed)):
        if symbols:
            lines.append(f"{key} = {_strings(symbols)}")
    for edit in record.edits:
        lines += ["", "[[edit]]", *_edit(edit)]
    if record.resolved:
        one = len(record.resolved) == 1
        lines += ["", "[resolved]", f"pattern = {_text(record.resolved[0]) if one else _strings(record.resolved)}"]
    for example in record.examples:
        lines += ["", "[[example]]", *_example(example)]
    return "\n".join(lines) + "\n"


def _edit(edit: Edit) -> list[str]:
    kind, shape = next((kind, shape) for kind, shape in EDIT.shapes.items() if shape.make is type(edit))
    lines = []
    for key, field in shape.fields.items():
        value = kind if key == EDIT.key else getattr(edit, field.attribute or key)
        if key == "count":
            written = '"every"' if value is None else value
            lines += [f"count = {written}"] if value != field.default else []
        elif value is not None:
            lines.append(f"{key} = {_text(value)}")
    return lines


def _example(example: Example) -> list[str]:
    lines = [f"name = {_string(example.name)}"]
    if example.file is not None:
        lines.append(f"file = {_string(example.file)}")
    if example.untouched:
        return [*lines, f"untouched = {_text(example.before)}"]
    lines.append(f"before = {_text(example.before)}")
    lines.append(f"after = {_text(example.after)}" if example.after is not None else f'fails = "{example.fails}"')
    return lines


def _strings(values: Iterable[str]) -> str:
    one_line = f"[{', '.join(map(_string, values))}]"
    # Shipped records break longer lists, one value a line.
    if len(one_line) <= 100:
        return one_line
    return "[\n" + "".join(f"  {_string(value)},\n" for value in values) + "]"


def _text(value: str) -> str:
    """Several lines as they are, where TOML's literal strings can hold them."""
    if "\n" not in value:
        return _string(value)
    # A literal string of TOML has no escapes: it can hold no \x00, and no three quotes.
    if "'''" not in value and not value.endswith("'") and all(char in "\n\t" or char >= " " for char in value):
        return f"'''\n{value}'''"
    return _string(value)


def _string(value: str) -> str:
    """JSON's escapes are TOML's, but for characters beyond the basic plane, which stay as they are."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
