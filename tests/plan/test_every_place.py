"""Edits of every place: as many as a fork has, and none where another edit of the record has its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from patcher.plan.replay import Workspace
from patcher.records.model import Record
from patcher.records.parse import parse
from patcher.records.writing import written
from patcher.rewrite.outcome import AnchorMissing

ONE, TWO = "verl/one.py", "verl/two.py"
HEAD = """\
id = "own"
title = "t"
reason = "r"
lifetime = "fork-only"
"""
CALLS = """
[[edit]]
file = "{file}"
kind = "add-argument"
call = "encode"
new = "plain"
value = "True"
count = {count}
"""
IMPORTS = """
[[edit]]
file = "{file}"
kind = "move-import"
old = "pkg.a.Name"
new = "pkg.b.Name"
"""


def record(*edits: str) -> Record:
    found = parse(HEAD + "".join(edits), Path("own.toml"))
    assert isinstance(found, Record), found
    return found


def replayed(wanted: Record, **texts: str) -> tuple[bool, dict[str, str], list[object]]:
    files = {f"verl/{name}.py": text for name, text in texts.items()}
    space = Workspace(files, "Uky", "clean")
    done = space.replay(wanted, lambda _edit: True)
    return done.made, space.texts, [result.outcome for result in done.results]


@pytest.mark.parametrize("places", [1, 3])
def test_as_many_places_as_the_fork_has_are_changed(places: int) -> None:
    made, texts, _ = replayed(record(CALLS.format(file=ONE, count='"every"')), one="encode(x)\n" * places)
    assert made
    assert texts[ONE].count("plain=True") == places


def test_a_file_without_a_place_is_passed_over_where_another_has_one() -> None:
    every = '"every"'
    own = record(CALLS.format(file=ONE, count=every), CALLS.format(file=TWO, count=every))
    made, texts, outcomes = replayed(own, one="encode(x)\n", two="decode(x)\n")
    assert (made, len(outcomes)) == (True, 1)
    assert "plain=True" in texts[ONE]
    assert replayed(own, one="encode(x)\n")[0], "the other file is not in this fork at all"


def test_a_record_that_has_no_place_anywhere_is_not_made() -> None:
    own = record(*(CALLS.format(file=file, count='"every"') for file in (ONE, TWO)))
    made, _, outcomes = replayed(own, one="decode(x)\n", two="decode(x)\n")
    assert not made
    assert [type(outcome) for outcome in outcomes] == [AnchorMissing, AnchorMissing]


def test_a_number_is_exact() -> None:
    own = record(CALLS.format(file=ONE, count=2))
    assert not replayed(own, one="encode(x)\n")[0]
    assert not replayed(own, one="encode(x)\n" * 3)[0]


def test_an_import_is_moved_wherever_it_stands_and_may_be_missing_in_one_file() -> None:
    own = record(IMPORTS.format(file=ONE), IMPORTS.format(file=TWO))
    made, texts, _ = replayed(
        own, one="from pkg.a import Name\n\n\ndef f():\n    from pkg.a import Name\n", two="x = 1\n"
    )
    assert made
    assert texts[ONE].count("from pkg.b import Name") == 2
    assert texts[TWO] == "x = 1\n"


def test_an_edit_of_another_kind_does_not_stand_in_for_an_import() -> None:
    """The call would be given a name that nothing imports."""
    own = record(IMPORTS.format(file=ONE), CALLS.format(file=ONE, count=1).replace('"True"', '"Name"'))
    made, texts, outcomes = replayed(own, one="import pkg.a\n\nencode(x)\n")
    assert not made
    assert texts[ONE] == "import pkg.a\n\nencode(x)\n"
    assert [type(outcome) for outcome in outcomes][:1] == [AnchorMissing]


def test_it_is_written_as_it_was_read() -> None:
    own = record(CALLS.format(file=ONE, count='"every"'), IMPORTS.format(file=ONE))
    text = written(own)
    assert 'count = "every"' in text
    assert text.count("count") == 1, "an import of every place is what is written without a word"
    again = parse(text, Path("own.toml"))
    assert isinstance(again, Record)
    assert again.edits == own.edits
