"""What a tree is held against: the packages of one release each, and the versions that its tests may ask for."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from patcher.analysis.symbols import Symbols


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """`against`: the packages in question, by import name, with their version.

    One that `packages` lacks is not installed there at all. `versions` are those that tests in the tree may ask for, by
    distribution name: the targets', and whatever else is known of the environment. None: known not to be installed.
    """

    against: Mapping[str, str]
    packages: Mapping[str, Symbols]
    versions: Mapping[str, str | None] = field(default_factory=dict)
    moves: bool = True
    """Whether to search where what is gone is now; of no use to who asks since when it is gone."""
    kept: dict[Hashable, object] = field(default_factory=dict, init=False)
    """What was found out about the packages, whatever the tree."""

    @property
    def words(self) -> tuple[str, ...]:
        """What a file that uses one of the packages has in it: a package's name, or the beginning of its variables."""
        return (*self.against, *(f"{package.upper()}_" for package in self.against))
