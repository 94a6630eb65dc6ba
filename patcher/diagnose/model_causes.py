"""What a model lacks that the code around it expects: a method of its class, or a field of the batch."""

from __future__ import annotations

import re
from collections.abc import Sequence

from patcher.diagnose.evidence import Call
from patcher.diagnose.exception_message import MessageParts
from patcher.diagnose.failed_code import taken_from
from patcher.diagnose.frame import Frame
from patcher.diagnose.parties import ENGINES, owner_of, party
from patcher.i18n import Phrase, phrase

_MODEL_CLASS = re.compile(r"For(?:Conditional|Causal|Sequence|Action|Image|Vision|Token|Question|Masked)\w+$")
_OF_DATA = frozenset(
    (
        *("pixel_values", "pixel_values_videos", "image_grid_thw", "video_grid_thw", "image_sizes", "input_features"),
        *("input_ids", "attention_mask", "position_ids", "labels"),
    )
)
"""What a batch gives to a model's `forward`."""
_WEIGHTS = re.compile(r"(?:\w+\.)*(?:\w*weights|\w*state_dict|sd|\w*(?:ckpt|checkpoint)\w*)$")
_INNER = re.compile(r"\bmodel\.model\.\w")
_OF_POOLING = ("pooler", "_pooler", "score", "classifier")
"""What models that embed, classify or score have, and those that generate text have not."""
_ASKED_BY_MANY = frozenset(("transformers", "torch", "accelerate", "peft", "datasets", "numpy"))
"""Packages that engines build upon, and that know of no engine."""


def of_model(parts: MessageParts, at: Frame | None, calls: Sequence[Call]) -> Phrase | None:
    """What a model lacks: a method of the class that the code is for, or a field of the batch."""
    if parts.matter == "missing-argument" and parts.symbol.endswith("forward") and _OF_DATA.issuperset(parts.names):
        return phrase(
            "these come from the batch: the rows have no such field, or the processor that makes it was not loaded"
        )
    if (
        parts.matter == "key"
        and calls
        and _WEIGHTS.match(taken_from(calls[-1].code, calls[-1].marks, parts.names[0])[0])
    ):
        return phrase(
            "the checkpoint names its weights otherwise than this code expects: it is of another model or of another "
            "form of it (converted, quantized, experts one by one or stacked), or the code is of another release"
        )
    if parts.matter != "missing-attribute":
        return None
    if parts.names[0] == "reset_parameters" and any("/fsdp/" in one.frame for one in calls):
        text = (
            "FSDP makes a module that was built without memory (meta device) by its reset_parameters, which {kind} "
            "does not have: define it there, or give FSDP a param_init_fn"
        )
        return phrase(text, kind=parts.symbol)
    if owner_of(parts.symbol) in ENGINES and party(at) in _ASKED_BY_MANY:
        text = "an object of {package} was handed to {asker}, which expects one of its own: look at the caller"
        return phrase(text, package=owner_of(parts.symbol), asker=party(at))
    if parts.names[0] in _OF_POOLING and parts.symbol.endswith("ForCausalLM") and party(at) in ENGINES:
        text = (
            "{package} runs the model to embed, classify or score, and {kind} is the class that generates text: take "
            "the task that it is for, or a model whose config.json names the class for this task in architectures"
        )
        return phrase(text, package=party(at), kind=parts.symbol)
    if _MODEL_CLASS.search(parts.symbol) and any(_INNER.search(one.code) for one in calls[-3:]):
        text = (
            "model.model is itself the whole model here: it is wrapped, as PEFT and DDP do, or this transformers keeps "
            "its parts one level deeper; reach them from the unwrapped model, with PEFT from get_base_model()"
        )
        return phrase(text)
    if _MODEL_CLASS.search(parts.symbol) and at is not None and (not at.installed or party(at) == "verl"):
        text = (
            "the model that was loaded is of another class than this code is written for: look at architectures and "
            "auto_map in its config.json, and at the path that it was loaded from"
        )
        return phrase(text)
    return None
