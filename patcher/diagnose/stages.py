"""The phase that a traceback stands in, by verl's own functions: what is printed at once tells it before the log does.

The names were read in the released wheels of verl 0.6.0 to 0.9.1; not every release has all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from patcher.records.milestones import PHASES, Phase

_FUNCTIONS: dict[str, Phase] = {
    "create_rl_dataset": "dataset",
    "create_rl_sampler": "dataset",
    "_create_dataloader": "dataset",
    "_read_files_and_tokenize": "dataset",
    "maybe_filter_out_long_prompts": "dataset",
    "create_resource_pool": "resource-pool",
    "_build_model_optimizer": "actor",
    "_build_module": "actor",
    "_build_fsdp_module": "actor",
    "init_model": "actor",
    "_build_rollout": "rollout",
    "get_rollout_class": "rollout",
    "_initialize_llm_servers": "rollout",
    "init_hybrid": "rollout",
    "init_standalone": "rollout",
    "launch_server": "rollout",
    "launch_servers": "rollout",
}
_FUNCTION = re.compile(r"/verl/[^\"]+\", line \d+, in (?P<name>\w+)$")


def stage(frames: Iterable[str]) -> Phase | None:
    """The phase of the innermost frame that tells one; None where none does."""
    found = None
    for frame in frames:
        if (match := _FUNCTION.search(frame)) is not None:
            found = _FUNCTIONS.get(match["name"], found)
    return found


def later(told: Phase | None, stood: Phase | None) -> Phase | None:
    """The later of two phases, where both are known."""
    if told is None or stood is None:
        return told or stood
    return max(told, stood, key=PHASES.index)
