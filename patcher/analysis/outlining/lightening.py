"""An outline for those who keep many: text in the place of syntax."""

from __future__ import annotations

import ast
import codecs
import re

from patcher.analysis.outlining.outline import Outline


def lighten(outline: Outline, content: bytes) -> None:
    """Keep of what is assigned the text."""
    starts = [0, *(match.end() for match in re.finditer(rb"\r\n|\r|\n", content))]
    if not content.startswith(codecs.BOM_UTF8) and _is_utf8(content):
        attributes = (ways for family in outline.classes.values() for ways in family.attributes.values())
        assigned = [way for ways in attributes for _, way in ways]
        assigned += [way for body in outline.bodies.values() for ways in body.assigned.values() for way in ways]
        for way in assigned:
            node = way.written
            if isinstance(node, ast.expr) and node.end_lineno is not None and node.end_col_offset is not None:
                first, last = (
                    starts[node.lineno - 1] + node.col_offset,
                    starts[node.end_lineno - 1] + node.end_col_offset,
                )
                way.written = content[first:last]


def _is_utf8(content: bytes) -> bool:
    """Whether the columns of the syntax are places in the file's bytes."""
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return b"coding" not in content[:200]
