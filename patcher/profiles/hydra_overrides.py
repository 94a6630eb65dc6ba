"""The hydra overrides of each profile: the documents' keys and values, what GRPO on vLLM needs besides, how a value is
written for hydra, and which keys the tree's own config has.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from patcher.analysis.configuration import below, compose
from patcher.i18n import phrase
from patcher.profiles.rendered_file import Text
from patcher.remote.host import Profile
from patcher.remote.survey import Gpu

ACTOR = "actor_rollout_ref.actor"
MODEL = "actor_rollout_ref.model"
REF = "actor_rollout_ref.ref"
ROLLOUT = "actor_rollout_ref.rollout"

BATCH: Mapping[Profile, int] = {"standard": 4, "debug": 1, "fast-load": 2}
ANSWERS: Mapping[Profile, int] = {"standard": 4, "debug": 2, "fast-load": 4}
"""Answers to each prompt; GRPO compares them, so there are at least two."""

_BY_PROFILE: Mapping[str, Mapping[Profile, str]] = {
    "data.max_prompt_length": {"standard": "10240", "debug": "512", "fast-load": "2048"},
    "data.max_response_length": {"standard": "512", "debug": "64", "fast-load": "256"},
    f"{ROLLOUT}.gpu_memory_utilization": {"standard": "0.3", "debug": "0.3", "fast-load": "0.4"},
    f"{ROLLOUT}.enforce_eager": {"standard": "False", "debug": "True", "fast-load": "True"},
    f"{ROLLOUT}.load_format": {"debug": "safetensors", "fast-load": "safetensors"},
    "trainer.total_epochs": {"standard": "20", "debug": "1", "fast-load": "1"},
    "trainer.total_training_steps": {"debug": "2"},
    "trainer.resume_mode": {"debug": "disable", "fast-load": "disable"},
    "trainer.save_freq": {"standard": "20", "debug": "-1", "fast-load": "999"},
    "trainer.test_freq": {"standard": "5", "debug": "999", "fast-load": "999"},
    "trainer.val_before_train": {"standard": "True", "debug": "False", "fast-load": "False"},
}
"""verl saves and validates at the last step, too, unless the frequency is -1: the debug run leaves no checkpoint."""
_ALWAYS: Mapping[str, str] = {
    "algorithm.adv_estimator": "grpo",
    "algorithm.use_kl_in_reward": "False",
    "data.filter_overlong_prompts": "True",
    "data.truncation": "error",
    f"{MODEL}.enable_gradient_checkpointing": "True",
    f"{ACTOR}.optim.lr": "1e-6",
    f"{ACTOR}.ppo_micro_batch_size_per_gpu": "1",
    f"{ACTOR}.use_kl_loss": "True",
    f"{ACTOR}.kl_loss_coef": "0.01",
    f"{ACTOR}.kl_loss_type": "low_var_kl",
    f"{ACTOR}.entropy_coeff": "0",
    f"{ROLLOUT}.name": "vllm",
    f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu": "1",
    f"{REF}.log_prob_micro_batch_size_per_gpu": "1",
    "trainer.critic_warmup": "0",
    "trainer.project_name": "uky_patch",
}
_SMALL = 24 * 2**30
"""Bytes of GPU memory below which a model is spread over two GPUs: 24 GB, as an RTX 4090 or an A10 has."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How a job is laid out over GPUs, so that every division in verl comes out even; `gpus` are those of each node."""

    gpus: int
    tensor_parallel: int
    batch: int
    answers: int
    nodes: int
    known: bool
    """Whether it is known how many GPUs there are; laid out for one where it is not."""
    workers: int
    """Agent loop workers: verl splits batch × answers evenly among them."""


def shape(profile: Profile, cards: Sequence[Gpu], visible: int | None = None, nodes: int = 1) -> Shape:
    """The layout for a profile on these GPUs of each node, or on as many as are `visible`; one where none is known.

    verl wants batch × answers to be a multiple of the GPUs. The batch of the debug run stays 1, as its data set has two
    rows; there the answers grow.
    """
    gpus = max(1, len(cards) if visible is None else min(visible, len(cards) or visible))
    small = any(0 < (card.memory or 0) < _SMALL for card in cards)
    batch, answers = BATCH[profile], ANSWERS[profile]
    total = gpus * nodes
    if profile == "standard":
        step = total // math.gcd(total, answers)
        batch = step * math.ceil(batch / step)
    else:
        step = total // math.gcd(total, batch)
        answers = step * math.ceil(answers / step)
    tensor_parallel = 2 if small and gpus % 2 == 0 else 1
    known = bool(cards) or visible is not None
    return Shape(gpus, tensor_parallel, batch, answers, nodes, known, math.gcd(8, batch * answers))


def visible_gpus(devices: str | None) -> int | None:
    """How many GPUs CUDA_VISIBLE_DEVICES leaves; None where it says nothing."""
    if devices is None:
        return None
    return len([name for name in devices.split(",") if name.strip() and name.strip() != "-1"])


def overrides(profile: Profile, laid: Shape) -> dict[str, str]:
    """The overrides that do not depend on versions, by key; values as hydra reads them."""
    found = {key: values[profile] for key, values in _BY_PROFILE.items() if profile in values}
    found |= _ALWAYS
    found |= {
        "data.train_batch_size": str(laid.batch),
        f"{ACTOR}.ppo_mini_batch_size": str(laid.batch),
        f"{ROLLOUT}.n": str(laid.answers),
        f"{ROLLOUT}.agent.num_workers": str(laid.workers),
        f"{ROLLOUT}.tensor_model_parallel_size": str(laid.tensor_parallel),
        "trainer.n_gpus_per_node": str(laid.gpus),
        "trainer.nnodes": str(laid.nodes),
        "trainer.experiment_name": profile,
    }
    return dict(sorted(found.items()))


def layout_notes(profile: Profile, laid: Shape) -> list[Text]:
    """What the layout changed of the documents' values, and what it could not know."""
    notes: list[Text] = []
    if not laid.known:
        notes.append(phrase("no GPU is known there: the run scripts are laid out for one"))
    if laid.batch != BATCH[profile]:
        fields = {"profile": profile, "old": BATCH[profile], "new": laid.batch, "gpus": laid.gpus * laid.nodes}
        notes.append(phrase("{profile}: data.train_batch_size is {new}, not {old}: {gpus} GPUs share it", **fields))
    if laid.answers != ANSWERS[profile]:
        fields = {"profile": profile, "old": ANSWERS[profile], "new": laid.answers, "gpus": laid.gpus * laid.nodes}
        notes.append(phrase("{profile}: rollout.n is {new}, not {old}: {gpus} GPUs share the batch", **fields))
    return notes


@dataclass(frozen=True, slots=True)
class TrainerConfig:
    """verl's config of the PPO trainer, composed as hydra does; `content` is None if the tree has none."""

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
def trainer_config(tree_root: Path) -> TrainerConfig:
    """The config of the tree at `tree_root`."""
    made = compose(below(tree_root / "verl/trainer/config"), "ppo_trainer", {})
    return TrainerConfig(made.config if made is not None else None)


# The rendered run script holds this function too, by its source text: it uses nothing but `re`.
def hydra_text(text: str) -> str:
    """`text` as hydra reads it back, quoted where it must be. Raises ValueError where hydra would resolve it."""
    if "${" in text or not text.isprintable():
        raise ValueError(f"{text!r} cannot be given to hydra: control characters and ${{ have a meaning there")
    if re.fullmatch(r"/[A-Za-z0-9_./-]+", text):
        return text
    doubled = re.sub(r"(\\+)(?='|\Z)", lambda found: found[1] * 2, text)
    return "'" + doubled.replace("'", "\\'") + "'"
