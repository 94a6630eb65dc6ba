"""Answers about a tree or a package that are worked out once and kept as long as it lives: a cache by key."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar, cast

T = TypeVar("T")


class Answers:
    """The answers about one thing. None of them may refer to that thing, so that it goes when nobody holds it."""

    def __init__(self) -> None:
        self._known: dict[Hashable, object] = {}

    def once(self, key: Hashable, find: Callable[[], T]) -> T:
        """What `find` gives, kept under `key`."""
        if key not in self._known:
            self._known[key] = find()
        return cast("T", self._known[key])
