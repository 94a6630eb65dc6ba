"""The keys of the tree's own config, so that no run script gives one that it does not have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Config:
    """verl's config of the PPO trainer, put together; None where the tree holds none."""

    content: Mapping[str, Any] | None

    def has(self, key: str) -> bool:
        """Whether the key is known to be there."""
        here: Any = self.content
        for part in key.split("."):
            if not isinstance(here, dict) or part not in here:
                return False
            here = here[part]
        return True

    def takes(self, key: str) -> bool:
        """Whether the key can be set without a `+`; yes where the config is not known."""
        return self.content is None or self.has(key)


@lru_cache(maxsize=1)
def config_of(tree_root: Path) -> Config:
    """The config of the tree at `tree_root`."""
    from patcher.analysis.composition import compose

    made = compose((tree_root / "verl/trainer/config",), "ppo_trainer", {})
    return Config(made.config if made is not None else None)
