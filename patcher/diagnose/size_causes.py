"""What is mostly behind sizes that do not fit: a rank's piece of a parameter, an empty batch, a mask's length."""

from __future__ import annotations

import re
from collections.abc import Sequence

from patcher.diagnose.code_sentences import are_of_tokens, computed_zero, has_empty
from patcher.diagnose.evidence import Call
from patcher.diagnose.exception_message import MessageParts
from patcher.diagnose.frame import Frame
from patcher.diagnose.parties import ENGINES, party
from patcher.diagnose.tensor_code import reshaped
from patcher.diagnose.tensor_sizes import (
    has_other_length,
    is_half_as_wide,
    is_packed,
    ranks_apart,
    times_gathered,
    too_few_for_groups,
    width_of_empty,
)
from patcher.i18n import Phrase, phrase

_OF_LENGTH = re.compile(r"(?:position_ids|attention_mask|input_ids|cache_position|mask|labels)$")
_LOADS = re.compile(r", in _?(?:weight_loader|load_\w+|\w*_load_\w+)$")
"""Functions of engines that copy a weight of the checkpoint into its parameter."""
_REWARDS = re.compile(r"\brewards?_per_func\w*\[[^\]]*\] *= ")
"""Where a trainer takes what a reward function gave: `rewards_per_func[:, i] = torch.tensor(output)`."""
_GROUPS = re.compile(r"\.(?:view|reshape)\([^()]*\b(?:num_generations|group_size|n_samples_per_prompt|rollout_n)\b")
"""Where what was gathered is divided into the groups of answers to one prompt: `rewards.view(-1, num_generations)`."""
_ROTARY = re.compile(r", in apply_\w*rotary_pos_emb\w*$")


def of_sizes(parts: MessageParts, at: Frame | None, calls: Sequence[Call]) -> Phrase | None:
    """Why sizes and shapes do not fit."""
    if parts.matter == "shape" and _is_of_parameter(parts, at, calls) and (ranks := ranks_apart(parts)):
        text = (
            "one of the two has 1/{ranks} of the other's elements: the flat piece that one of {ranks} ranks holds "
            "(FSDP, ZeRO) meets the whole parameter"
        )
        return phrase(text, ranks=ranks)
    if party(at) in ENGINES and calls and _LOADS.search(calls[-1].frame) and is_half_as_wide(parts):
        text = (
            "one is half as wide as the other: weights with two values in each byte (4 bits) meet a parameter for "
            "plain ones, or the other way round. {package} did not see that this layer is quantized: take the release "
            "that the model's page names, and look at quantization_config in its config.json"
        )
        return phrase(text, package=party(at))
    if _is_forward_of_engine(at, calls) and (times := times_gathered(parts)):
        text = (
            "there are {times} times the elements that the shape holds: mostly the tokens of {times} ranks (data or "
            "expert parallel) that were gathered and not divided again; try without expert parallelism, and another "
            "release of {package}"
        )
        return phrase(text, times=times, package=party(at))
    if few := too_few_for_groups(parts):
        text = (
            "{found} elements are fewer than one group of {size}, so that they were divided into 0 groups: fewer "
            "samples came together than a group has"
        )
        return phrase(text, found=parts.found, size=few)
    if zero := computed_zero(parts, calls):
        text = (
            "there is data, and {name} came out as 0: the code computes that size wrongly, or from a field that the "
            "configuration has with another value or meaning; the release of {package} and that of the library or the "
            "model that it reads the field from may not fit"
        )
        return phrase(text, name=zero, package=party(at) or phrase("the code"))
    if parts.matter == "shape" and calls and parts.found.isdigit() and _GROUPS.search(calls[-1].code):
        text = (
            "{found} values were gathered, which are no whole groups of answers: the last batch is not full, or a rank "
            "gave more or fewer; leave the last batch out (dataloader_drop_last), or choose sizes that divide the data"
        )
        return phrase(text, found=parts.found)
    if has_other_length(parts) and calls and _OF_LENGTH.search(reshaped(calls[-1].code)[0]):
        text = (
            "ids, mask and embeddings of one sequence differ in length: {found} elements are no multiple of {length}. "
            "The caller gives a mask that is longer or shorter than what it is for, or the model's code is a copy that "
            "was written for another release of transformers, which prepares these otherwise"
        )
        return phrase(text, found=parts.found, length=parts.wanted.strip("[]").rpartition(", ")[2])
    if parts.matter == "shape" and parts.wanted == "1" and parts.found.startswith("["):
        return phrase(
            "the tensor has size 1 where the pieces are cut: mostly one dimension too many in front, as of a batch "
            "with a single sample that was wrapped once more"
        )
    if parts.matter == "shape" and calls and _REWARDS.search(calls[-1].code):
        text = (
            "a reward function has to give one value for each answer: there are {wanted} answers, and it gave {found} "
            "values"
        )
        return phrase(text, found=parts.found, wanted=parts.wanted)
    if parts.matter == "shape" and parts.wanted == f"[1, {parts.found.strip('[]')}]":
        return phrase(
            "the second has a dimension of 1 in front that the first has not: what makes the batch has wrapped it once "
            "more, or this release of the processor and of the model's code do not fit"
        )
    if is_packed(parts):
        return phrase(
            "a matrix of one long row is how bitsandbytes keeps the weights of a layer in 4 bits: code for plain "
            "weights has got a quantized layer. Take the release of the package that knows such layers, or load the "
            "model without quantization"
        )
    if has_empty(parts) and (width := width_of_empty(parts)):
        text = (
            "{width} is a width of the model, so the tensor of size 0 is mostly a weight that ZeRO-3 or FSDP holds in "
            "parts and has put away again; where neither is used, this rank or batch got no tokens"
        )
        return phrase(text, width=width)
    if has_empty(parts):
        return phrase("a tensor of size 0 is empty: this rank, or this batch, got no tokens, samples or rows")
    if are_of_tokens(parts, calls):
        return phrase("the two come from sequences of different lengths: tokenized, cut or padded in different ways")
    if parts.matter == "shape" and calls and _ROTARY.search(calls[-1].frame):
        return phrase("cos and sin are made from position_ids, whose shape does not fit that of the tokens here")
    if parts.matter == "claim" and "torch.Size([])" in parts.found:
        return phrase("torch.Size([]) is the shape of a single number, where a tensor with dimensions is expected")
    return None


_DIVIDES = re.compile(r"fsdp|deepspeed|/zero/|fully_shard|/verl/workers/|/megatron/", re.IGNORECASE)
_PARAMETER = re.compile(r"weight|param|grad\b|state_dict|embed_tokens|lm_head", re.IGNORECASE)


def _is_of_parameter(parts: MessageParts, at: Frame | None, calls: Sequence[Call]) -> bool:
    """Whether sizes that do not fit may be those of a parameter: FSDP or ZeRO is among the frames, the code names one,
    or a checkpoint is loaded. What an engine computes are activations, which may come from several ranks too."""
    last = calls[-1] if calls else Call("")
    if _is_forward_of_engine(at, calls):
        return False
    divided = any(_DIVIDES.search(one.frame) for one in calls)
    return divided or _PARAMETER.search(last.code) is not None or "Size(" in parts.found


def _is_forward_of_engine(at: Frame | None, calls: Sequence[Call]) -> bool:
    return party(at) in ENGINES and bool(calls) and ", in forward" in calls[-1].frame
