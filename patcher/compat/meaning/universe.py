"""The tree and the packages that it is checked against, as one space of dotted names."""

from __future__ import annotations

from patcher.compat.forest import Forest
from patcher.compat.target import Target
from patcher.symbols import External, Resolution


class Universe:
    """One tree on one target. Everything is found when it is first asked for, and kept."""

    def __init__(self, forest: Forest, target: Target) -> None:
        self.forest = forest
        self.target = target

    def resolve(self, dotted: str) -> Resolution:
        """What a dotted name leads to, across packages."""
        package = dotted.partition(".")[0]
        symbols = self.target.packages.get(package)
        return symbols.resolve(dotted) if symbols is not None else Resolution(External(dotted))
