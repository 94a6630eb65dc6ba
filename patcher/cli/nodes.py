"""What the commands that work on every node of a Ray cluster share: how many nodes have answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from patcher.i18n import phrase
from patcher.terminal.progress import progress

if TYPE_CHECKING:
    from types import TracebackType

    from patcher.cluster.model import Node


class NodeProgress:
    """How many nodes have answered, on a terminal, while the others are waited for."""

    def __init__(self) -> None:
        self._count = 0

    def __enter__(self) -> NodeProgress:
        return self

    def take(self, node: Node) -> None:
        from patcher.cluster.model import own_name

        self._count += 1
        progress(
            phrase(
                "{count} {count:node|nodes} {count:has|have} answered; {node} was the last",
                count=self._count,
                node=own_name(node),
            )
        )

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        progress("")
