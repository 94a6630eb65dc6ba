"""Lines of a changed text are told as lines of the text that people have before them."""

from __future__ import annotations

from patcher.plan.replay import on_base, on_other
from patcher.rewrite.outcome import AlreadyDone, AnchorAmbiguous, AnchorMissing, Candidate, Rewritten

BASE = "a\nb\nc\nd\ne\n"
CHANGED = "new\na\n# b\nB\nc\nd\nmore\ne\n"


def test_lines_that_stayed_keep_their_place_and_new_ones_take_the_place_of_the_old() -> None:
    lines = CHANGED.splitlines()
    assert [on_other(lines.index(line) + 1, CHANGED, BASE) for line in ("a", "c", "d", "e")] == [1, 3, 4, 5]
    assert on_other(lines.index("B") + 1, CHANGED, BASE) == 2
    assert on_other(1, CHANGED, BASE) == 1


def test_outcomes_are_moved_and_rewritten_ones_are_not() -> None:
    assert on_base(AlreadyDone((6, 8), True), BASE, CHANGED) == AlreadyDone((4, 5), True)
    assert on_base(AnchorAmbiguous(1, (2, 5)), BASE, CHANGED) == AnchorAmbiguous(1, (1, 3))
    assert on_base(AnchorMissing(1, 0, Candidate(6, "d")), BASE, CHANGED) == AnchorMissing(1, 0, Candidate(4, "d"))
    assert on_base(Rewritten("x", (6,)), BASE, CHANGED) == Rewritten("x", (6,))
