"""Look at a tree while others may write to it: again where what was read may not fit together."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from patcher.i18n import language, phrase
from patcher.session.lock_wait import patience, tell_owner
from patcher.terminal.printing import say

if TYPE_CHECKING:
    from patcher.tree import Tree
    from patcher.tree.reading import Reading

T = TypeVar("T")
_TRIES = 5


def look(tree: Tree, work: Callable[[Reading], T]) -> T:
    """What `work` makes of the tree, undisturbed by writers. Tells what an interrupted run had left.

    Raises TreeError where a writer does not let go, and where an interrupted run cannot be ended.
    """
    for attempt in range(1, _TRIES + 1):
        with tree.reading(wait=patience(), on_wait=tell_owner) as reading:
            if reading.unfinished is not None:
                raise reading.unfinished
            tell_recovery(reading.recovered)
            result = work(reading)
            if not reading.disturbed() or attempt == _TRIES:
                return result
    raise AssertionError("unreachable")


def tell_recovery(recovered: object) -> None:
    """Say on standard error how an interrupted run was ended."""
    from patcher.tree.journal import Recovery

    if isinstance(recovered, Recovery):
        finished = recovered.direction == "finished"
        template = "an interrupted {purpose} was finished" if finished else "an interrupted {purpose} was taken back"
        text = phrase(template, purpose=recovered.purpose)
        say(text.render(language()), err=True)
        for path in recovered.kept:
            text = phrase("{path} was changed since the interruption and left as it is", path=path)
            say(text.render(language()), err=True)
