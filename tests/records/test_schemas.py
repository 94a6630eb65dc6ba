"""docs/schemas, by which editors complete and check records, settings, symptoms and uky-patch.toml."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from bench.schemas import FOLDER, RECORD_KEYS, schemas
from patcher.data import shipped
from patcher.tables.toml import decode

RECORD = """
id = "x"
title = "t"
reason = "r"
lifetime = "fork-only"
[when]
vllm = ">=0.12"
[[edit]]
file = "verl/a.py"
kind = "replace"
pattern = "f($X)"
with = "g($X)"
"""


def checked(schema: str) -> jsonschema.protocols.Validator:
    content = json.loads((FOLDER / schema).read_text(encoding="utf-8"))
    jsonschema.Draft7Validator.check_schema(content)
    return jsonschema.Draft7Validator(content)


def read(text: str) -> dict[str, Any]:
    found = decode(text, Path("x.toml"))
    assert isinstance(found, dict)
    return found


def test_they_are_as_the_shapes_say() -> None:
    for name, schema in schemas().items():
        assert json.loads((FOLDER / name).read_text(encoding="utf-8")) == schema, "make docs"


@pytest.mark.parametrize("kind", ["patches", "settings", "symptoms"])
def test_every_shipped_file_fits(kind: str) -> None:
    names = {"patches": "record", "settings": "setting", "symptoms": "symptom"}
    schema = checked(f"{names[kind]}.schema.json")
    wrong = {
        path.name: error.message
        for path in shipped(kind).glob("*.toml")
        for error in schema.iter_errors(read(path.read_text(encoding="utf-8")))
    }
    assert not wrong


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ('lifetime = "fork-only"', 'lifetime = "for ever"'),
        ('title = "t"\n', ""),
        ('id = "x"', 'id = "X y"'),
        ('kind = "replace"', 'kind = "replaces"'),
        ('with = "g($X)"', 'wiht = "g($X)"'),
        ('pattern = "f($X)"\n', ""),
        ('vllm = ">=0.12"', 'vlm = ">=0.12"'),
        ('with = "g($X)"', 'with = "g($X)"\ncount = "2"'),
    ],
)
def test_a_mistake_in_a_record_is_one_by_the_schema_too(right: str, wrong: str) -> None:
    schema = checked("record.schema.json")
    assert schema.is_valid(read(RECORD))
    assert not schema.is_valid(read(RECORD.replace(right, wrong)))


def test_the_settings_of_a_fork() -> None:
    schema = checked("uky-patch.schema.json")
    assert schema.is_valid(
        read('patches = ["p"]\n[pins]\nvllm = "0.12.0"\n[hosts.a]\nport = 22\n[hosts.here]\ndata = "/d"')
    )
    assert not schema.is_valid(read("[hosts.a]\nport = 70000"))
    assert not schema.is_valid(read('[hosts.a]\nprofile = "quick"'))
    assert not schema.is_valid(read('[[accept]]\nsymbol = "vllm.x"'))


def test_each_key_of_a_record_is_described() -> None:
    def keys(schema: Any, path: str = "") -> set[str]:
        if isinstance(schema, list):
            return {key for item in schema for key in keys(item, path)}
        if not isinstance(schema, dict):
            return set()
        inner = {f"{path}.{key}".lstrip("."): value for key, value in schema.get("properties", {}).items()}
        below = {key for place, value in inner.items() for key in keys(value, place)}
        return {*inner, *below, *keys(schema.get("items"), path), *keys(schema.get("oneOf"), path)}

    assert keys(schemas()["record.schema.json"]) - RECORD_KEYS.keys() <= {"zh.title", "zh.reason"}
