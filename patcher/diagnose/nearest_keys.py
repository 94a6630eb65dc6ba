"""Keys of the tree's own configuration that a key which is not there may have meant, and the release it went with.

trainer.total_epoch          ▶ trainer.total_epochs
actor_rollout_ref.kl_coef    ▶ actor_rollout_ref.actor.kl_loss_coef, algorithm.kl_ctrl.kl_coef
critic.checkpoint.contents   ▶ critic.checkpoint.save_contents, which came with the release that has it no more
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from patcher.analysis.configuration import below, compose

_CONFIGS = ("ppo_trainer", "ppo_megatron_trainer", "sft_trainer")
_ALIKE = 0.75
"""How alike the last parts of two keys are at least; set by hand: `total_epoch` and `total_epochs` are 0.96."""
_ALIKE_BESIDE = 0.5
"""The same for a key that came where another went: `max_turns` and `max_assistant_turns` are 0.64."""
_MOST = 3


def nearest_keys(root: Path, package: str, key: str) -> tuple[str, ...]:
    """The likeliest first; none where nothing is alike, or where the configuration has the key."""
    return _nearest(bare(key), keys_of(root / package))


def bare(key: str) -> str:
    return key.lstrip("+~")


def keys_of(package: Path) -> frozenset[str]:
    """The dotted keys of the configurations of a verl, whose package is in this folder."""
    made = (compose(below(package / "trainer" / "config"), name, {}) for name in _CONFIGS)
    return frozenset(key for one in made if one is not None for key in _keys(one.config))


def came_for(key: str, before: frozenset[str], after: frozenset[str]) -> tuple[str, ...]:
    """Of the keys that came with a release those beside a key that went with it and alike, the likeliest first."""
    above, _, last = key.rpartition(".")
    rated = {one: _alike(last, one.rpartition(".")[2]) for one in after - before if one.rpartition(".")[0] == above}
    alike = [one for one, rate in rated.items() if rate >= _ALIKE_BESIDE]
    return tuple(sorted(alike, key=lambda one: (-rated[one], one))[:_MOST])


def _nearest(key: str, known: frozenset[str]) -> tuple[str, ...]:
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
