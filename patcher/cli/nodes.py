"""What the commands that work on every node of a Ray cluster share: how many nodes have answered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING

from patcher.i18n import phrase
from patcher.terminal.progress import progress

if TYPE_CHECKING:
    from patcher.cluster.model import Node


@contextmanager
def node_progress() -> Iterator[Callable[[Node], None]]:
    """Show on a terminal how many nodes have answered, while the others are waited for. Call it with each that has."""
    from patcher.cluster.model import own_name

    answered = count(1)

    def show_answer(node: Node) -> None:
        text = "{count} {count:node|nodes} {count:has|have} answered; {node} was the last"
        progress(phrase(text, count=next(answered), node=own_name(node)))

    try:
        yield show_answer
    finally:
        progress("")
