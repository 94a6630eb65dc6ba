"""Reads a parquet file under the interpreter that trains: this text is its whole program, with a task in JSON.

It answers in one JSON value on what was standard output; what libraries print goes to standard error. verl itself needs
pyarrow, so an environment that trains has it.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from typing import Any

LONGEST = 300
"""Characters of a text, and items of a list by ITEMS, that are shown of the first row."""
ITEMS = 5
"""A list of turns is recognised by its first ones."""
DEEPEST = 6
"""Levels of a nested value that are shown: a prompt is a list of turns of parts, which are three."""
MARK = b"uky-patch"
"""In the metadata of a file that was made here, so that it may be replaced."""


def answer(task: dict[str, Any]) -> dict[str, Any]:
    """What the task asks: `report`, or `tiny` into a temporary file. `problem` in the answer says why not."""
    try:
        parquet = import_module("pyarrow.parquet")
    except ImportError as error:
        return {"problem": "reader", "text": str(error)}
    try:
        return _report(parquet, task) if task["do"] == "report" else _write_tiny(parquet, task)
    except MemoryError:
        return {"problem": "memory"}
    except Exception as error:
        return {"problem": "unreadable", "text": f"{type(error).__name__}: {str(error)[:500]}"}


def _report(parquet: Any, task: dict[str, Any]) -> dict[str, Any]:
    file = parquet.ParquetFile(task["file"])
    first = _first_rows(file, 1).to_pylist()
    return {
        "rows": file.metadata.num_rows,
        "columns": [[field.name, str(field.type)[:200]] for field in file.schema_arrow],
        "first": shorten(first[0]) if first else None,
        "by": "pyarrow",
    }


def _write_tiny(parquet: Any, task: dict[str, Any]) -> dict[str, Any]:
    file = parquet.ParquetFile(task["file"])
    metadata = {**(file.schema_arrow.metadata or {}), MARK: b"first rows"}
    few = _first_rows(file, task["rows"]).replace_schema_metadata(metadata)
    if os.path.lexists(task["to"]):
        try:
            there = parquet.read_table(task["to"])
        except Exception:
            there = None
        if there is not None and there.equals(few):
            return {"rows": few.num_rows, "how": "unchanged"}
        ours = there is not None and MARK in (there.schema.metadata or {})
        if not ours and not task["force"]:
            return {"problem": "taken"}
    parquet.write_table(few, task["temporary"])
    return {"rows": few.num_rows, "how": "written"}


def _first_rows(file: Any, wanted: int) -> Any:
    """The first rows as a table, however few of them a row group holds."""
    batches = []
    count = 0
    for batch in file.iter_batches(batch_size=wanted):
        batches.append(batch)
        count += batch.num_rows
        if count >= wanted:
            break
    schema = batches[0].schema if batches else file.schema_arrow
    return import_module("pyarrow").Table.from_batches(batches, schema=schema).slice(0, wanted)


def shorten(value: Any, depth: int = 0) -> Any:
    """A value as JSON can hold it, and people can read it."""
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    if isinstance(value, str):
        return value if len(value) <= LONGEST else f"{value[:LONGEST]}... ({len(value)} characters)"
    if isinstance(value, (bool, int, float)) or value is None:
        return value if value == value and value not in (float("inf"), float("-inf")) else str(value)
    if depth >= DEEPEST:
        return "..."
    if isinstance(value, dict):
        return {str(key): shorten(inner, depth + 1) for key, inner in list(value.items())[:40]}
    if isinstance(value, (list, tuple)):
        more = [f"... ({len(value)} items)"] if len(value) > ITEMS else []
        return [shorten(inner, depth + 1) for inner in value[:ITEMS]] + more
    return str(value)[:LONGEST]


if __name__ == "__main__":
    # The answer goes to what was standard output; from here on libraries that print reach standard error.
    with os.fdopen(os.dup(1), "w", encoding="ascii") as out:
        os.dup2(2, 1)
        json.dump(answer(json.loads(sys.argv[1])), out)
        out.flush()
        os._exit(0)
