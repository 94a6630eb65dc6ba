"""The trees of texts that are kept: the one that is in use stays the same one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from patcher.rewrite.edits import Insert
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
