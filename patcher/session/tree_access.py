"""How a command gets at a tree that another command may be writing to: how long it waits for the lock (timeout), what
it tells meanwhile, and how often it reads again (retry) until nothing was written between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from patcher.i18n import phrase
from patcher.i18n.codec import decode
from patcher.terminal.printing import say
from patcher.tree.errors import from_refusal

if TYPE_CHECKING:
    from patcher.tree import Tree
    from patcher.worktree.reading import Reading
    from patcher.worktree.tree_lock import Owner

T = TypeVar("T")
_READS = 5
"""How often the tree is read before what the last read found counts. An apply takes about a second, and a read less;
whoever is disturbed five times in a row meets a program that writes all the time."""


def lock_timeout() -> float:
    """How many seconds to wait for a command that holds the tree's lock. An apply holds it for about one second."""
    return 60.0


def read_consistently(tree: Tree, read: Callable[[Reading], T]) -> T:
    """The result of `read`. It is called again, up to five times, if another command wrote to the tree meanwhile.

    If an interrupted command left the tree half changed, that is finished or taken back first, and reported.
    Raises TreeError if another command holds the lock for too long, or if an interrupted one cannot be finished.
    """
    for attempt in range(1, _READS + 1):
        with tree.reading(wait=lock_timeout(), on_wait=report_lock_owner) as reading:
            if reading.unfinished is not None:
                raise from_refusal(reading.unfinished)
            report_recovery(reading.recovered)
            result = read(reading)
            if not reading.disturbed() or attempt == _READS:
                return result
    raise AssertionError("unreachable")


def report_lock_owner(owner: Owner | None) -> None:
    """Tell the user on standard error which command the tree's lock is waited for."""
    text = phrase("waiting for {owner}", owner=decode(owner.message) if owner is not None else phrase("another run"))
    say(text, err=True)


def report_recovery(recovered: object) -> None:
    """Tell the user on standard error how an interrupted command was finished or taken back."""
    from patcher.worktree.journal import Recovery

    if isinstance(recovered, Recovery):
        finished = recovered.direction == "finished"
        template = "an interrupted {purpose} was finished" if finished else "an interrupted {purpose} was taken back"
        text = phrase(template, purpose=recovered.purpose)
        say(text, err=True)
        for path in recovered.kept:
            text = phrase("{path} was changed since the interruption and left as it is", path=path)
            say(text, err=True)
