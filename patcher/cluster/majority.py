"""What most nodes have, and which have something else."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from patcher.cluster.model import Facts, Node

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Groups(Generic[T]):
    """Nodes by what they have: the largest group first, of equal ones the head's."""

    groups: tuple[tuple[T, tuple[Node, ...]], ...]

    @property
    def usual(self) -> T:
        """What most have. Raises IndexError where there are no nodes."""
        return self.groups[0][0]

    @property
    def odd(self) -> tuple[tuple[T, tuple[Node, ...]], ...]:
        return self.groups[1:]

    @property
    def odd_names(self) -> tuple[str, ...]:
        return tuple(node.name for _, nodes in self.odd for node in nodes)


def grouped(nodes: Sequence[Node], of: Callable[[Facts], T]) -> Groups[T]:
    """Nodes that answered, by what `of` says of their facts."""
    found: dict[T, list[Node]] = {}
    for node in nodes:
        if node.facts is not None:
            found.setdefault(of(node.facts), []).append(node)
    in_order = sorted(found.items(), key=lambda item: (-len(item[1]), not any(node.head for node in item[1])))
    return Groups(tuple((value, tuple(group)) for value, group in in_order))
