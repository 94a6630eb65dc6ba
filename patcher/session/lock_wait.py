"""How long a command waits for another that holds the tree, and what it says meanwhile."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING

from patcher.i18n import language, phrase
from patcher.terminal.printing import say

if TYPE_CHECKING:
    from patcher.tree.lock import Owner

_PATIENCE = ContextVar("patience", default=60.0)


def patience() -> float:
    """Seconds; an apply takes about one."""
    return _PATIENCE.get()


@contextlib.contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Wait no longer than that, for one who is waited for himself."""
    token = _PATIENCE.set(min(seconds, patience()))
    try:
        yield
    finally:
        _PATIENCE.reset(token)


def tell_owner(owner: Owner | None) -> None:
    text = phrase("waiting for {owner}", owner=owner.told if owner is not None else phrase("another run"))
    say(text.render(language()), err=True)
