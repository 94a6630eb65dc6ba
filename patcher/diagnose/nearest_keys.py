"""Which keys of verl's configuration a missing key may have meant, or was replaced by.

trainer.total_epoch          ▶ trainer.total_epochs
actor_rollout_ref.kl_coef    ▶ actor_rollout_ref.actor.kl_loss_coef, algorithm.kl_ctrl.kl_coef
critic.checkpoint.contents   ▶ critic.checkpoint.save_contents, which replaced it in a later release
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from patcher.analysis.configuration import below, compose

_CONFIGS = ("ppo_trainer", "ppo_megatron_trainer", "sft_trainer")
_ALIKE = 0.75
"""The least similarity of the last parts of two keys. Set by hand: that of `total_epoch` and `total_epochs` is 0.96."""
_ALIKE_BESIDE = 0.5
"""The same for a key that replaced another: that of `max_turns` and `max_assistant_turns` is 0.64."""
_MOST = 3


def nearest_keys(root: Path, package: str, key: str) -> tuple[str, ...]:
    """The most similar keys of a tree, the best first; none where no key is similar, or where the key exists."""
    return _nearest(bare(key), keys_of(root / package))


def bare(key: str) -> str:
    return key.lstrip("+~")


def keys_of(package: Path) -> frozenset[str]:
    """The dotted keys of verl's main configurations; `package` is the folder of the package verl."""
    made = (compose(below(package / "trainer" / "config"), name, {}) for name in _CONFIGS)
    return frozenset(key for one in made if one is not None for key in _keys(one.config))


def came_for(key: str, before: frozenset[str], after: frozenset[str]) -> tuple[str, ...]:
    """The keys that may have replaced `key`: new in the later release, in the same section, and similar; the best
    first."""
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
