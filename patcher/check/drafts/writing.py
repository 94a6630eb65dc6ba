"""Drafts as TOML in the form of the shipped records, written to a folder that keeps what differs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from patcher.check.drafts.inputs import Draft
from patcher.errors import UsageError, message_of
from patcher.i18n import phrase
from patcher.records.model import Example, Record
from patcher.records.parse import EDIT
from patcher.rewrite.edits import Edit
from patcher.worktree import files


def written(record: Record, heading: Iterable[str] = ()) -> str:
    """The record's text; `heading` are comment lines above it."""
    lines = [*(f"# {line}" for line in heading), f"id = {_string(record.id)}", f"title = {_string(record.title)}"]
    lines.append(f"reason = {_string(record.reason)}")
    if record.upstream:
        lines.append(f"upstream = {_string(record.upstream)}")
    lines.append(f"lifetime = {_string(record.lifetime)}")
    named = (("repairs", record.repairs), ("tags", record.tags), ("after", record.after))
    lines += [f"{key} = {_strings(value)}" for key, value in named if value]
    if record.zh is not None:
        lines += ["", "[zh]", f"title = {_string(record.zh.title)}", f"reason = {_string(record.zh.reason)}"]
    lines += ["", "[when]", *(f"{name} = {_string(spec)}" for name, spec in record.when.versions.items())]
    for key, symbols in (("has", record.when.has), ("lacks", record.when.lacks), ("absent", record.when.absent)):
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
            lines += [f"count = {value}"] if value != 1 else []
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


@dataclass(frozen=True, slots=True)
class Written:
    """Where the drafts are: written now, there already with the same text, or kept back by a file that differs."""

    written: tuple[Path, ...] = ()
    unchanged: tuple[Path, ...] = ()
    differing: tuple[Path, ...] = ()


def write_drafts(drafts: Iterable[Draft], folder: Path) -> Written:
    """Write each draft as `<id>.toml`. Raises `UsageError` where the folder cannot be written to."""
    written: list[Path] = []
    unchanged: list[Path] = []
    differing: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for draft in drafts:
            path = folder / f"{draft.id}.toml"
            # A file that is there already is never overwritten: somebody may have reviewed and changed it.
            if files.create_whole(path, draft.text.encode()):
                written.append(path)
            else:
                (unchanged if _holds(path, draft.text.encode()) else differing).append(path)
    except OSError as error:
        raise UsageError(
            phrase("cannot write drafts to {folder}", folder=folder),
            cause=message_of(error),
            advice=phrase("Give --draft a folder that can be written to."),
        ) from error
    return Written(tuple(written), tuple(unchanged), tuple(differing))


def _holds(path: Path, content: bytes) -> bool:
    try:
        return files.read(path, files.SETTINGS_BYTES, follow=True) == content
    except OSError:
        return False
