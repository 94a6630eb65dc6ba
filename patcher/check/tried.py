"""What the shipped records were tried on: docs/matrix.md, the table that `make docs-matrix` writes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from patcher.data import shipped
from patcher.worktree import files

_VERSION = re.compile(r"\d+(?:\.\w+)+")


@dataclass(frozen=True, slots=True)
class Tried:
    """The matrix, with the records applied: releases of verl, and spans of releases of vLLM that come to the same."""

    verl: tuple[str, ...]
    spans: tuple[tuple[str, str], ...]
    """The first and the last release of each."""
    works: Mapping[tuple[str, str], bool]
    """Whether nothing is left broken, by release of verl and first release of the span."""


def matrix_document() -> Path:
    return shipped("docs") / "matrix.md"


@lru_cache(maxsize=1)
def tried() -> Tried:
    """The first table of docs/matrix.md: `| 0.10.1 – 0.10.2 | ×1 | ✓ | +4 | – |`, a column for each verl."""
    text = files.read_text(matrix_document(), files.SETTINGS_BYTES, follow=True)
    lines = text.partition("\n| vllm |")[2].split("\n\n", 1)[0].splitlines()
    head, rows = lines[0], [_cells(line) for line in lines[2:]]
    verl = tuple(_VERSION.findall(head))
    spans = tuple((found[0], found[-1]) for found in (_VERSION.findall(row[0]) for row in rows))
    works = {
        (release, first): mark == "✓" or mark.startswith("+")
        for (first, _), row in zip(spans, rows, strict=True)
        for release, mark in zip(verl, row[1:], strict=True)
    }
    return Tried(verl, spans, works)


def newest_tried() -> Mapping[str, str]:
    """The newest releases of verl and vLLM in the matrix; nothing where it is not there, as on a cluster's node."""
    if not matrix_document().is_file():
        return {}
    known = tried()
    return {"verl": known.verl[-1], "vllm": known.spans[-1][1]}


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]
