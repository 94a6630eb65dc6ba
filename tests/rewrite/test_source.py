"""The trees of texts that are kept: the one that is in use stays the same one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from patcher.rewrite.edits import Insert, Replace
from patcher.rewrite.source import _KEPT, Source, Trace, forget, parse
from tests.rewrite.cases import made


@pytest.fixture(autouse=True)
def _empty() -> Iterator[None]:
    forget()
    yield
    forget()


def test_a_text_that_is_asked_for_again_and_again_keeps_its_tree() -> None:
    """Nodes are told by their identity, so that one of the first tree is not known to a second one of the same text."""
    first = parse("x = 0\n")
    for number in range(3 * _KEPT):
        parse(f"y = {number}\n")
        assert parse("x = 0\n") is first


def test_the_text_that_was_asked_for_least_lately_goes() -> None:
    first, second = parse("x = 0\n"), parse("x = 1\n")
    for number in range(_KEPT - 2):
        parse(f"y = {number}\n")
    assert parse("x = 0\n") is first
    parse("z = 1\n")
    assert parse("x = 0\n") is first
    assert parse("x = 1\n") is not second


def test_places_are_kept_for_the_statements_of_the_tree_alone() -> None:
    """A node that is let go of leaves its identity to a later one, which would be looked for at the former's place."""
    text = "class A:\n    def f(self):\n        a = 0\n        return a\n"
    for name in "abcd":
        text = made(text, Insert(file="f.py", where="after", code=f"{name}{name} = 0", anchor="a = 0", within="A.f"))
        source = parse(text)
        assert isinstance(source, Source)
        assert source.spans == Trace(source.module).run([source.module]).spans


def test_the_same_lines_in_two_places_of_a_file_are_told_apart() -> None:
    """Two edits insert the same code, at one depth and before the same line; a third changes the second of them."""
    before = "class A:\n    def f(self):\n        return 1\n\n\nclass B:\n    def f(self):\n        return 1\n"
    code = "x = 1\n\ndef g(y):\n    z = y\n    return z\n"
    text = before
    for owner in ("A", "B"):
        text = made(text, Insert(file="a.py", within=f"{owner}.f", where="start", code=code))
    source = parse(text)
    assert isinstance(source, Source)
    assert len(source.everything) == len({id(node) for node in source.everything})
    edit = Replace(file="a.py", within="B.f.<locals>.g", pattern="z = y", replacement="z = y + 1")
    after = made(text, edit, may_touch=frozenset({"r"}))
    changed = [number for number, (a, b) in enumerate(zip(text.split("\n"), after.split("\n"), strict=True)) if a != b]
    assert [after.split("\n")[number].strip().partition("  #")[0] for number in changed] == ["z = y + 1"]
    assert changed[0] > after.split("\n").index("class B:")
