"""An edit or a pattern that reads one statement of a long file finds what it finds in the whole file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import get_args

import pytest

from patcher.packages.releases import wheel
from patcher.records.load import load
from patcher.rewrite import engine, excerpt, matches, rewrite
from patcher.rewrite.edits import Insert, Mark, Replace, SetDecorator, SyntaxEdit
from patcher.rewrite.outcome import AlreadyDone, AnchorAmbiguous, Outcome, Rewritten
from patcher.rewrite.pattern import pattern
from patcher.rewrite.source import Index, Source, forget, known, parse

MARK = Mark("rec")
SYNTAX = get_args(SyntaxEdit)
FILLER = "def filler():\n    return 1\n\n\n" * 400


@pytest.fixture(autouse=True)
def _nothing_known() -> Iterator[None]:
    forget()
    yield
    forget()


def both(source: str, edit: SyntaxEdit) -> tuple[Outcome, Outcome]:
    """What comes of an edit, and what comes of it where the whole file is read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "known", lambda _: False)
        return rewrite(source, edit, MARK), engine._rewrite(source, edit, MARK, frozenset())


def alone(source: str, edit: SyntaxEdit) -> Rewritten:
    """The outcome, which is the same for the whole file, and for which the whole file is not read."""
    assert excerpt.excerpt_for(source, edit) is not None
    forget()
    rewrite(source, edit, MARK)
    assert not known(source)
    outcome, whole = both(source, edit)
    assert outcome == whole
    assert isinstance(outcome, Rewritten)
    return outcome


@pytest.mark.slow
@pytest.mark.parametrize("version", ["0.9.1", "0.6.1"])
def test_the_records_on_a_release(version: str) -> None:
    """Each edit as it stands, and without `within`; on the file as released, and on what the edit makes of it."""
    root, read_alone = wheel("verl", version), 0
    for record in load():
        for edit in record.edits:
            path = root / edit.file
            if not isinstance(edit, SYNTAX) or not path.is_file():
                continue
            source = path.read_text()
            for given in (edit, *_wider(edit)):
                if excerpt.excerpt_for(source, given) is None:
                    continue
                read_alone += 1
                outcome, whole = both(source, given)
                assert outcome == whole
                if isinstance(outcome, Rewritten):
                    the_index_is_right(outcome.source)
                    again, whole = both(outcome.source, given)
                    assert again == whole
            for wanted in record.resolved:
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(engine, "known", lambda _: False)
                    found = matches(source, wanted)
                assert found == engine._matches(source, pattern(wanted))
    assert read_alone > 5


def the_index_is_right(source: str) -> None:
    """The index that an edit has made of the earlier one is what a walk through the new tree finds."""
    code = parse(source)
    assert isinstance(code, Source)
    found = Index.of([code.module])
    assert [*map(id, code.everything)] == [*map(id, found.nodes)]
    assert all(code.parents[key] is node for key, node in found.parents.items())


def _wider(edit: SyntaxEdit) -> Iterator[SyntaxEdit]:
    """The same edit of the class, where it is about a method."""
    if edit.within and "." in edit.within:
        yield replace(edit, within=edit.within.rpartition(".")[0])


CLASS = """
# Above.
@ray.remote
class Worker(
    Base,
):
    # Of the class.
    size = 1; depth = 2

    # Of load.
    def load(self, path):
        return read(path, mode="fast")

        # rest = 1

    def save(self, path):
        write(path, mode="fast")
    # Below.
# At the margin.
"""


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    "edit",
    [
        Replace(file="f.py", within="Worker.load", pattern='mode="fast"', replacement='mode="slow"'),
        Replace(file="f.py", within="Worker", pattern='mode="fast"', replacement='mode="slow"', count=2),
        Replace(file="f.py", within="Worker", pattern="depth = $X", replacement="depth = $X + 1"),
        Insert(file="f.py", within="Worker.load", where="start", code="check(path)"),
        Insert(file="f.py", within="Worker.save", where="end", code="check(path)"),
        Insert(file="f.py", within="Worker", where="end", code="def close(self):\n    pass"),
        SetDecorator(file="f.py", within="Worker.save", new="cached"),
    ],
)
def test_a_statement_is_read_alone(edit: SyntaxEdit, newline: str) -> None:
    source = (FILLER + CLASS + FILLER).replace("\n", newline)
    outcome = alone(source, edit)
    assert outcome.source.startswith(FILLER.replace("\n", newline))
    assert outcome.source.endswith(FILLER.replace("\n", newline))
    assert any("Uky[rec]" in outcome.source.splitlines()[line - 1] for line in outcome.lines)
    done, whole = both(outcome.source, edit)
    assert done == whole
    assert isinstance(done, AlreadyDone)
    assert done.marked


def test_a_marker_above_a_method_is_seen() -> None:
    edit = SetDecorator(file="f.py", within="Worker.save", new="cached")
    source = FILLER + CLASS.replace("    def save", "    # Uky\n    @cached\n    def save") + FILLER
    done, whole = both(source, edit)
    assert done == whole == AlreadyDone(whole.lines, True)  # type: ignore[union-attr]


def test_what_is_defined_twice_is_read_as_a_whole() -> None:
    edit = Replace(file="f.py", within="Worker.save", pattern='mode="fast"', replacement='mode="slow"')
    for other in (CLASS, "try:\n    import gone\nexcept ImportError:\n    class Worker:\n        pass\n"):
        outcome, whole = both(FILLER + CLASS + other + FILLER, edit)
        assert outcome == whole
    assert isinstance(both(FILLER + CLASS + CLASS + FILLER, edit)[0], AnchorAmbiguous)


@pytest.mark.parametrize(
    "header", ["class A: load(1)\n", "class A(\n    B): load(1)\n", "class A:\n    x = 1; load(1)\n"]
)
def test_a_pattern_in_a_class_of_one_line(header: str) -> None:
    source = FILLER + "# Above.\n" + header + FILLER
    line = source[: source.index("load")].count("\n") + 1
    assert matches(source, "load($X)") == (line,)
    assert not known(source)


def test_a_pattern_that_stands_in_a_decorator_or_a_base() -> None:
    source = FILLER + "@wraps(load)\nclass A(make(load)):\n    x = 1\n" + FILLER
    assert matches(source, "wraps($X)") == (1601,)
    assert matches(source, "make($X)") == (1602,)


def test_a_file_with_several_newlines_is_read_as_a_whole() -> None:
    edit = Replace(file="f.py", within="Worker.save", pattern='mode="fast"', replacement='mode="slow"')
    assert excerpt.excerpt_for("x = 1\r\n" + FILLER + CLASS + FILLER, edit) is None
