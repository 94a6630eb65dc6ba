"""What mostly causes a failure whose exception no record covers, where its form or its code shows that."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from patcher.diagnose.attribute_causes import of_attribute, of_releases
from patcher.diagnose.code_sentences import unpacked_of
from patcher.diagnose.evidence import Call
from patcher.diagnose.exception_message import MessageParts, is_plain_for_own
from patcher.diagnose.failed_code import calculated
from patcher.diagnose.frame import Frame
from patcher.diagnose.internal_errors import lies_within, missing_column, rows_of, shadowing, unknown_command
from patcher.diagnose.model_causes import of_model
from patcher.diagnose.package_mistakes import of_mistakes, of_values_of_its_own
from patcher.diagnose.parties import Given, party
from patcher.diagnose.size_causes import of_sizes
from patcher.i18n import Phrase, phrase


def usual_cause(parts: MessageParts, at: Frame | None, calls: Sequence[Call], given: Given | None) -> Phrase | None:
    """What mostly causes failures of this form; None where nothing does."""
    if given is not None:
        return phrase(
            "the key is misspelled, or the configuration was written for another release: take the key out, or install "
            "the release that knows it"
        )
    return next((cause for rule in _RULES if (cause := rule(parts, at, calls)) is not None), None)


def _of_path(parts: MessageParts, at: Frame | None, calls: Sequence[Call]) -> Phrase | None:  # noqa: ARG001
    return shadowing(calls) or lies_within(parts, calls)


_OF_GRAPH = re.compile(r"/(?:torch_compile_cache|inductor_cache|torchinductor_[^/]+)/")


_GRAPH_SIZES = re.compile(
    r"expected size (?P<found>\d+)==(?P<wanted>\d+), stride (?P<step>\d+)==(?P<made>\d+) at dim=(?P<number>\d+)"
)


def _of_graph(parts: MessageParts, at: Frame | None, calls: Sequence[Call]) -> Phrase | None:
    """A graph of torch.compile, kept on the disk or not, that is called with what it was not made for."""
    compiled = at is not None and _OF_GRAPH.search(at.path) is not None
    sizes = _GRAPH_SIZES.search(parts.found)
    if sizes is not None and (compiled or (calls and "assert_size_stride(" in calls[-1].code)):
        text = (
            "torch.compile made this graph for size {wanted} and stride {made} in dimension {number}, and it is called "
            "with size {found} and stride {step}: a graph kept on the disk from other settings (delete that folder), "
            "a weight that FSDP or ZeRO holds in parts at one time and whole at another (compile inside of the "
            "sharding), or a mistake of this release of torch or of the engine; without compilation it runs"
        )
        return phrase(text, **sizes.groupdict())
    if not compiled:
        return None
    return phrase(
        "the code that fails is a graph that torch.compile has kept on the disk, made for other settings or another "
        "release: delete that folder (vLLM: VLLM_DISABLE_COMPILE_CACHE=1), or run without compilation"
    )


def _of_values(parts: MessageParts, at: Frame | None, calls: Sequence[Call]) -> Phrase | None:
    """Why a value is of another kind than its reader expects."""
    if parts.matter == "unpacking" and (called := unpacked_of(at, calls)) is not None:
        callee, package = called
        if package:
            text = "{callee} of {package} returns something else in another release, for which this code was written"
            return phrase(text, callee=callee, package=package)
        text = (
            "where {callee} is of an installed package, it returns something else in another release, "
            "for which this code was written"
        )
        return phrase(text, callee=callee)
    if parts.matter == "argument-type" and parts.found == "BlockMask":
        return phrase(
            "the mask is one of flex attention, and the attention that runs is another: load the model with "
            "attn_implementation='flex_attention', or hand it a plain mask"
        )
    if parts.matter == "dimension":
        return phrase(
            "a tensor has fewer dimensions than this code counts on: weights that a quantisation has packed, a batch "
            "that has lost a dimension, or code of another release"
        )
    if parts.matter == "device" and "meta" in (parts.found, parts.wanted):
        return phrase(
            "what is on the device meta has no values: a model that was made without memory and is not filled yet, or "
            "code that is run with empty tensors to trace it, where another tensor is a real one"
        )
    if at is not None and at.installed and party(at) and is_plain_for_own(parts):
        text = (
            "what calls {package} passes a plain {kind} where this release expects an object that has {name}: "
            "the caller is written for another release, or passes a wrong value"
        )
        return phrase(text, package=party(at), kind=parts.symbol, name=parts.names[0])
    return None


def _of_request(parts: MessageParts, at: Frame | None, calls: Sequence[Call]) -> Phrase | None:  # noqa: ARG001
    """What the user asked for that is not there: a kind of model, a sub-command, a column of the data."""
    if parts.matter == "model-type":
        return phrase(
            "the model is newer than the installed transformers: install a newer one; a model with code of its own "
            "also needs trust_remote_code"
        )
    if unknown_command(parts, calls):
        text = (
            "{name} is the sub-command with which the program was called, and this release has none of that name: see "
            "its help for those that it has"
        )
        return phrase(text, name=parts.names[0])
    if rows := rows_of(parts, calls):
        text = (
            "the key is taken from each of {rows}, and not each has it: what makes them gives {name} for some alone, "
            "so have it give the same keys for all"
        )
        return phrase(text, rows=rows, name=parts.names[0])
    if missing_column(parts, calls):
        text = (
            "the rows of the dataset have no column {name}, which this code, or the kind of training that was chosen, "
            "needs: rename the column that holds it, or take data of that kind"
        )
        return phrase(text, name=parts.names[0])
    if parts.matter == "missing-argument" and calls and (of := _REWARDS.search(calls[-1].code)) is not None:
        text = (
            "{function} is a reward function, which gets the columns of the dataset by their names, and the dataset "
            "has no column {names}: rename the column that holds it, or take a reward that does without"
        )
        return phrase(text, function=of["name"], names=", ".join(parts.names))
    if parts.matter == "validation" and _NOT_KNOWN.match(parts.found):
        return phrase(
            "the installed release knows no key of that name in this place: the key came with a later release, was "
            "taken out of it, belongs into another section, or is misspelled"
        )
    if parts.matter == "hccl" and parts.symbol.lower().startswith("hcclcomminit"):
        return phrase(
            "a group is founded here: its number of ranks, each one's number and its NPU must fit; every rank has an "
            "NPU of its own, chosen before the group, and shares it with no inference engine"
        )
    if parts.matter == "option":
        return phrase(
            "the command is written for another release of the program, the option is one of another of its commands, "
            "or it is misspelled"
        )
    # `assert args.seq_length is not None` says the same as a call of the option's value, which is None.
    unset = parts.names[0].removesuffix(" is not None") if parts.matter == "claim" else parts.symbol
    is_unset = parts.matter == "none" or (parts.matter == "claim" and unset != parts.names[0])
    if is_unset and (option := _OPTION.fullmatch(unset)) is not None:
        text = (
            "nothing has set {name}: give it on the command line or in the configuration; where there is no such "
            "option, the code is of another release than the one that reads its options"
        )
        return phrase(text, name=option["name"])
    if parts.matter == "cut" and (names := of_settings(parts.found)):
        text = "one of the settings that are calculated with there is not set, 0, or of another type: {names}"
        return phrase(text, names=", ".join(names))
    return _of_environment(parts.names[0]) if parts.matter == "environment" else None


_REWARDS = re.compile(
    r"\b(?P<name>(?:self\.)?(?:\w*_)?(?:rewards?|rm)(?:_(?:fn|func\w*|model\w*))?)\(.*\*\*(?:\w*kwargs|\w*inputs)\b"
)
"""A trainer's call of a reward function: `reward_func(completions, **reward_kwargs)`."""


def of_settings(code: str) -> list[str]:
    """The settings that a line of code calculates with: `args.size` and `args.gas` of `size = args.size * args.gas`."""
    return [name for name in calculated(code) if _OPTION.fullmatch(name)]


def _is_of_extension(parts: MessageParts) -> bool:
    """Whether an attribute is missed of a class of a compiled extension, which Python names with its module:
    `_turbomind.Model`. Its own, as `_io.TextIOWrapper`, are not meant."""
    module, dot, _ = parts.symbol.partition(".")
    of_extension = bool(dot) and module.startswith("_") and module not in sys.stdlib_module_names
    return parts.matter == "missing-attribute" and of_extension


_IN_REWARD = re.compile(r", in (?:\w*_rewards?|\w*reward_f\w+|\w*compute_scores?)$")
"""A frame within a reward function: `File "/app/grpo.py", line 81, in accuracy_reward`."""


def _of_reward(parts: MessageParts, at: Frame | None, calls: Sequence[Call]) -> Phrase | None:
    """A reward function that does not survive one answer of the model: what it calls raises."""
    inside = next((n for n, one in enumerate(calls) if _IN_REWARD.search(one.frame)), None)
    if inside is None or inside + 1 >= len(calls) or at is None or not party(at) or parts.matter not in _OF_ANSWERS:
        return None
    text = (
        "it is raised within {function}, for one answer of the model: catch what {package} raises there and give that "
        "answer no reward, so that an odd answer does not end the run; a later release of what checks answers may do so"
    )
    return phrase(text, function=calls[inside].frame.rpartition(", in ")[2], package=party(at))


_OF_ANSWERS = ("words", "type", "value", "key", "index", "none", "unpacking", "unwritten", "claim")


def _of_builds(parts: MessageParts, at: Frame | None, calls: Sequence[Call]) -> Phrase | None:
    """What compiled or generated code does not fit."""
    if parts.matter == "builds" or _is_of_extension(parts):
        return phrase(
            "the compiled extension and the Python code that calls it are of different builds or releases: install "
            "both together, or build the extension again from the sources that are run"
        )
    if parts.matter == "none" and any(_GENERATED.search(f"{one.frame} {one.code}") for one in calls[-2:]):
        text = (
            "code that the compiler of protobuf has generated (_pb2) does not fit the protobuf that is installed: take "
            "another release of protobuf, or one of {package} that is made for this one"
        )
        return phrase(text, package=party(at) or phrase("the package"))
    if parts.matter == "compiled" and party(at):
        text = (
            "the compiled part and the Python part of {package} are of different builds, or it has nothing for this "
            "type, shape or GPU: install it again, made for this torch, or another release"
        )
        return phrase(text, package=party(at))
    return None


_COMMAND = re.compile(
    r"Command '\[?[\"']?(?:[^\s\"',]*/)?(?P<name>[^\s\"',/]+).*['\]] returned non-zero exit status (?P<status>12[67])\b"
)
"""A command that did not even start: `Command '['/opt/bin/pack', '-x']' returned non-zero exit status 127.`"""


def _of_command(parts: MessageParts, at: Frame | None, calls: Sequence[Call]) -> Phrase | None:  # noqa: ARG001
    command = _COMMAND.match(parts.found) if parts.matter == "words" else None
    if command is None:
        return None
    if command["status"] == "126":
        text = (
            "126 says that {command} is there and may not be run: no right to execute it, a file system mounted with "
            "noexec, a folder, or a program for another kind of machine"
        )
        return phrase(text, command=command["name"])
    text = (
        "127 says that a shell did not find {command}, or a program that it starts: it is not installed, or not on the "
        "PATH of this process"
    )
    return phrase(text, command=command["name"])


_NOT_KNOWN = re.compile(r"extra (?:fields|inputs) (?:are )?not permitted", re.IGNORECASE)
"""What pydantic says of a field that a class does not have."""

_OPTION = re.compile(
    r"(?:self\.)?(?:\w*args|cfg|conf|config|opts?|options|params|hparams|FLAGS)\.(?P<name>(?!model\b)[a-z]\w*)"
)
"""A value of the command line or the configuration: `args.batch_size`."""


_GENERATED = re.compile(r"\b\w+_pb2(?:_grpc)?\b")


def _of_environment(name: str) -> Phrase | None:
    """Who should have set an environment variable."""
    if name.startswith("SLURM_"):
        return phrase("Slurm sets it for what srun starts: the run was not started by srun, or only looks like a job")
    if name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        return phrase("torchrun, accelerate and the like set it for what they start: the run was started without them")
    return None


_RULES = (
    _of_path,
    _of_graph,
    of_sizes,
    _of_values,
    _of_request,
    _of_builds,
    _of_command,
    _of_reward,
    of_mistakes,
    of_model,
    of_attribute,
    of_releases,
    of_values_of_its_own,
)
"""In this order: what the frames show comes before what the form of the message makes likely."""
