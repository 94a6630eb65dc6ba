"""Keys of the tree's own configuration that a key which is not there may have meant.

trainer.total_epoch          ▶ trainer.total_epochs
actor_rollout_ref.kl_coef    ▶ actor_rollout_ref.actor.kl_loss_coef, algorithm.kl_ctrl.kl_coef
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from patcher.analysis.configuration import compose

_CONFIGS = ("ppo_trainer", "ppo_megatron_trainer", "sft_trainer")
_ALIKE = 0.75
"""How alike the last parts of two keys are at least; set by hand: `total_epoch` and `total_epochs` are 0.96."""
_MOST = 3


def nearest_keys(root: Path, package: str, key: str) -> tuple[str, ...]:
    """The likeliest first; none where nothing is alike, or where the configuration has the key."""
    key = key.lstrip("+~")
    folder = root / package / "trainer" / "config"
    known = {
        one for name in _CONFIGS if (made := compose((folder,), name, {})) is not None for one in _keys(made.config)
    }
    if key in known:
        return ()
    last = key.rpartition(".")[2]
    rated = {one: (_alike(last, one.rpartition(".")[2]), _alike(key, one)) for one in known}
    near = [one for one, (of_last, _) in rated.items() if of_last >= _ALIKE]
    return tuple(sorted(near, key=lambda one: (-rated[one][0], -rated[one][1], one))[:_MOST])


def _keys(config: Mapping[str, Any], above: str = "") -> Iterator[str]:
    for name, value in config.items():
        key = f"{above}{name}"
        yield key
        if isinstance(value, Mapping):
            yield from _keys(value, f"{key}.")


def _alike(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other, autojunk=False).ratio()
