"""A check over nodes, with the nodes that it is about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from patcher.checks import Check, Status
from patcher.cluster.model import Node
from patcher.i18n import NOTHING, Phrase, Phrases, phrase

LEVEL = "nodes"
NAMED = 3
"""Things of a kind that are named; of the others only the number is told."""


@dataclass(frozen=True, slots=True)
class Verdict:
    check: Check
    nodes: tuple[str, ...] = ()
    """Names of the nodes that do not meet it."""


def verdict(
    name: str,
    status: Status,
    detail: Phrase | Phrases | str,
    fix: Phrase | Phrases | str = NOTHING,
    *,
    nodes: Iterable[str] = (),
) -> Verdict:
    return Verdict(Check(name, LEVEL, status, 0.0, detail, fix), tuple(nodes))


def names(nodes: Sequence[Node], of: int) -> Phrase | str:
    """Which these are of so many."""
    if len(nodes) == of > 1:
        return phrase("all {count} nodes", count=of)
    return some([node.name for node in nodes])


def some(things: Sequence[str]) -> Phrase | str:
    """The first of them, and how many more there are."""
    if len(things) <= NAMED + 1:
        return ", ".join(things)
    return phrase("{some} and {count} more", some=", ".join(things[:NAMED]), count=len(things) - NAMED)
