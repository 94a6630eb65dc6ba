"""What mostly causes a failure whose exception no record covers, where its form or its code shows that."""

from __future__ import annotations

import re
from collections.abc import Sequence

from patcher.diagnose.code_message import is_of_getter
from patcher.diagnose.code_sentences import unpacked_of
from patcher.diagnose.evidence import Call
from patcher.diagnose.exception_message import MessageParts, is_of_two_releases, is_plain_for_own
from patcher.diagnose.failed_code import calculated, is_written
from patcher.diagnose.frame import Frame, distribution, frame_of
from patcher.diagnose.internal_errors import is_internal, missing_column, shadowing, unknown_command
from patcher.diagnose.parties import (
    ENGINES,
    Given,
    asked_party,
    asks_itself,
    frame_above,
    is_getter,
    is_in_tree_of,
    outside_of,
    owner_of,
    party,
)
from patcher.diagnose.size_causes import of_sizes
from patcher.diagnose.wrong_class import refused_class
from patcher.i18n import Phrase, phrase


def usual_cause(parts: MessageParts, at: Frame | None, calls: Sequence[Call], given: Given | None) -> Phrase | None:
    """What mostly causes failures of this form; None where nothing does."""
    if given is not None:
        return phrase(
            "the key is misspelled, or the configuration was written for another release: take the key out, or install "
            "the release that knows it"
        )
    return next((cause for rule in _RULES if (cause := rule(parts, at, calls)) is not None), None)


def _of_shadow(parts: MessageParts, at: Frame | None, calls: Sequence[Call]) -> Phrase | None:  # noqa: ARG001
    return shadowing(calls)


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
    if missing_column(parts, calls):
        text = (
            "the rows of the dataset have no column {name}, which this code, or the kind of training that was chosen, "
            "needs: rename the column that holds it, or take data of that kind"
        )
        return phrase(text, name=parts.names[0])
    if parts.matter == "validation" and _NOT_KNOWN.match(parts.found):
        return phrase(
            "the installed release knows no key of that name in this place: the key came with a later release, was "
            "taken out of it, belongs into another section, or is misspelled"
        )
    if parts.matter == "hccl" and parts.symbol.startswith("HcclCommInit"):
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


def of_settings(code: str) -> list[str]:
    """The settings that a line of code calculates with: `args.size` and `args.gas` of `size = args.size * args.gas`."""
    return [name for name in calculated(code) if _OPTION.fullmatch(name)]


def _of_builds(parts: MessageParts, at: Frame | None, calls: Sequence[Call]) -> Phrase | None:
    """What compiled or generated code does not fit."""
    if parts.matter == "builds":
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


def _of_mistakes(parts: MessageParts, at: Frame | None, calls: Sequence[Call]) -> Phrase | None:
    """Which package has failed by itself."""
    if parts.matter == "unwritten":
        return _of_unwritten(parts, at, calls)
    if parts.matter == "claim":
        return _of_claim(parts, at, calls)
    if parts.matter == "words":
        return _of_words(parts, at, calls)
    if parts.matter == "deleted" and party(at):
        text = (
            "{package} deletes it without looking whether it is there: a mistake of this release, so look for its fix, "
            "or take another release"
        )
        return phrase(text, package=party(at))
    if parts.matter == "undefined-name" and _CLASS.match(parts.names[0]):
        return phrase(
            "a class of this name is mostly imported: that import is missing in the file, or stands in a try or an if, "
            "since what it imports is optional: a package that is not installed, or whose release has it under another "
            "name"
        )
    if parts.matter == "none" and party(at) == "peft" and calls and _WRAPS_LAYER.search(calls[-1].frame):
        return phrase(
            "PEFT wraps a layer of the model here, and finds no plain weight in it: a quantized or fused layer that "
            "this release does not know. Take another release of PEFT or of what has made that layer, or leave such "
            "layers out of target_modules"
        )
    if is_internal(parts, at, calls):
        text = (
            "both the code that fails and what calls it are of {package}: a case that this release does not provide "
            "for, or its mistake; look for its fix or another release, or which setting leads there"
        )
        return phrase(text, package=party(at))
    return None


_WRAPS_LAYER = re.compile(r"/tuners/.*, in (?:_replace_module|_create_\w+|update_layer|_move_adapter_to\w*)$")
_MODEL_CLASS = re.compile(r"For(?:Conditional|Causal|Sequence|Action|Image|Vision|Token|Question|Masked)\w+$")
_OF_DATA = frozenset(
    (
        *("pixel_values", "pixel_values_videos", "image_grid_thw", "video_grid_thw", "image_sizes", "input_features"),
        *("input_ids", "attention_mask", "position_ids", "labels"),
    )
)
"""What a batch gives to a model's `forward`."""
_OF_POOLING = ("pooler", "_pooler", "score", "classifier")
"""What models that embed, classify or score have, and those that generate text have not."""
_ASKED_BY_MANY = frozenset(("transformers", "torch", "accelerate", "peft", "datasets", "numpy"))
"""Packages that engines build upon, and that know of no engine."""


def _of_model(parts: MessageParts, at: Frame | None, calls: Sequence[Call]) -> Phrase | None:
    """What a model lacks: a method of the class that the code is for, or a field of the batch."""
    if parts.matter == "missing-argument" and parts.symbol.endswith("forward") and _OF_DATA.issuperset(parts.names):
        return phrase(
            "these come from the batch: the rows have no such field, or the processor that makes it was not loaded"
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
    if _MODEL_CLASS.search(parts.symbol) and at is not None and (not at.installed or party(at) == "verl"):
        text = (
            "the model that was loaded is of another class than this code is written for: look at architectures and "
            "auto_map in its config.json, and at the path that it was loaded from"
        )
        return phrase(text)
    return None


def _of_attribute(parts: MessageParts, at: Frame | None, calls: Sequence[Call]) -> Phrase | None:
    if parts.matter != "missing-attribute" or is_plain_for_own(parts):
        return None
    if (found := _of_object(parts, at, calls)) is not None:
        return found
    if _TOKENIZER.search(parts.symbol) and parts.names[0] in _OF_PROCESSORS and is_of_two_releases(parts):
        text = (
            "{name} is one of a processor, and a tokenizer was given: AutoProcessor makes a tokenizer where the "
            "model's processor is not known or cannot be loaded: files of it, or a package that it imports, are "
            "missing, or the release does not support this model"
        )
        return phrase(text, name=parts.names[0])
    return None


def _of_releases(parts: MessageParts, at: Frame | None, calls: Sequence[Call]) -> Phrase | None:
    """Which two packages do not fit together, or that one does not fit itself."""
    if not is_of_two_releases(parts):
        return None
    asker, asked = party(at), asked_party(parts, calls)
    if asked and asker == asked:
        return _of_one_package(parts, asked, calls)
    if asked:
        return phrase("the code that asks and the installed {package} are of releases that do not fit", package=asked)
    if parts.package and (asker == distribution(parts.package) or is_in_tree_of(at, parts)):
        text = (
            "both sides are of {package}: it defines the name only where an optional package can be imported, or files "
            "of two releases are mixed"
        )
        return phrase(text, package=asker or parts.package)
    if not parts.package:
        return phrase(
            "where the code that asks and what it asks are of two packages, their releases do not fit together; where "
            "they are of one, it has a mistake"
        )
    return phrase("the code that asks and what it asks are of releases that do not fit together")


def _of_one_package(parts: MessageParts, package: str, calls: Sequence[Call]) -> Phrase:
    """What it means that a package asks itself for what it does not have."""
    if parts.matter == "missing-attribute":
        text = (
            "both sides are of {package}: the object is not set up as this code expects, or this release has a "
            "mistake, which another release may not have"
        )
        return phrase(text, package=package)
    outer = outside_of(package, calls)
    if outer is not None and parts.matter == "unexpected-argument" and not is_written(parts.names, calls):
        text = (
            "where {package} only hands on what {place} gives it, that is written for another release of "
            "{package}; else this release has a mistake, or files of two releases are mixed"
        )
        return phrase(text, package=package, place=outer.shown)
    return _mixed(package)


def _mixed(package: str) -> Phrase:
    text = "both sides are of {package}: this release has a mistake, or files of two releases are mixed"
    return phrase(text, package=package)


_NOT_KNOWN = re.compile(r"extra (?:fields|inputs) (?:are )?not permitted", re.IGNORECASE)
"""What pydantic says of a field that a class does not have."""

_OPTION = re.compile(
    r"(?:self\.)?(?:\w*args|cfg|conf|config|opts?|options|params|hparams|FLAGS)\.(?P<name>(?!model\b)[a-z]\w*)"
)
"""A value of the command line or the configuration: `args.batch_size`."""

_RULES = (
    _of_shadow,
    of_sizes,
    _of_values,
    _of_request,
    _of_builds,
    _of_command,
    _of_mistakes,
    _of_model,
    _of_attribute,
    _of_releases,
)
"""In this order: what the frames show comes before what the form of the message makes likely."""

_GENERATED = re.compile(r"\b\w+_pb2(?:_grpc)?\b")
_CLASS = re.compile(r"(?:[A-Z][a-z0-9]\w*|[A-Z]{2,}[a-z]\w*)$")
_TOKENIZER = re.compile(r"Tokenizer(?:Fast)?$|TokenizersBackend$")
_OF_PROCESSORS = ("tokenizer", "image_processor", "video_processor", "feature_extractor", "image_token", "video_token")


def _of_unwritten(parts: MessageParts, at: Frame | None, calls: Sequence[Call]) -> Phrase | None:
    """Why a class lacks a method that its base class only announces."""
    base = party(frame_of(calls[-1].frame)) if calls else ""
    if base and base == party(at):
        text = (
            "both sides are of {package}: a case that this release does not support, or its mistake; another release "
            "may have {name}"
        )
        return phrase(text, package=base, name=parts.names[0])
    return None


def _of_environment(name: str) -> Phrase | None:
    """Who should have set an environment variable."""
    if name.startswith("SLURM_"):
        return phrase("Slurm sets it for what srun starts: the run was not started by srun, or only looks like a job")
    if name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        return phrase("torchrun, accelerate and the like set it for what they start: the run was started without them")
    return None


_INSTALLS = re.compile(r"\binstall(?:ing)?[ -](?:the )?(?:latest )?[`'\"]?(?P<name>[A-Za-z][\w.-]*)", re.IGNORECASE)


_OF_GPU = re.compile(r"\b(?:requires?|needs?) .*\b(?:GPUs?|SM ?\d|sm_\d|[Cc]ompute capability)")


def _of_words(parts: MessageParts, at: Frame | None, calls: Sequence[Call]) -> Phrase | None:
    """What is behind a message that leads astray: one that tells to install what is running, and the refusal of a
    function that only looks something up for its own package."""
    frames = [frame for one in calls if (frame := frame_of(one.frame)) is not None and frame != at]
    for found in _INSTALLS.finditer(parts.found):
        name = found["name"].rstrip(".").lower().replace("_", "-")
        asker = next((one for one in reversed(frames) if one.installed and party(one) == name != party(at)), None)
        if asker is not None:
            text = (
                "{name} is installed and has called {package} itself ({place}): the releases of the two do not fit, so "
                "update both together"
            )
            return phrase(text, name=name, package=party(at) or "it", place=asker.shown)
    if (refused := refused_class(parts.found)) is not None:
        return refused
    above = frame_above(calls)
    if _OF_GPU.search(parts.found):
        return None  # An option of the command line may lead there.
    if is_of_getter(calls) and above is not None and party(at) and party(above) == party(at) != "verl":
        text = (
            "{package} itself asks for it, at {place}: where your settings leave it out on purpose, this release does "
            "not support that there"
        )
        return phrase(text, package=party(at), place=above.shown)
    return None


_OF_CALLER = re.compile(
    r"conf|cfg|arg|param|option|setting|size|num|count|batch|world|rank|shape|dim|dtype|device|cuda|len_|max|min|path"
    r"|file|isinstance|version|%|\bin\b|\.ndim|is_available",
    re.IGNORECASE,
)
"""What an assertion is about that checks what it is given, and so may fail for settings and data."""


_OWN_NAME = re.compile(r"(?<![\w.])[a-z_]\w*(?![\w.(])")


def _hands_on(code: str, name: str) -> bool:
    """Whether a call passes on what itself was given by that name: `is_last_stage(vp_stage=vp_stage)`."""
    return re.search(rf"\b{name} ?= ?{name}\b", code) is not None


def _of_claim(parts: MessageParts, at: Frame | None, calls: Sequence[Call]) -> Phrase | None:
    """What it means where a package breaks an assertion of its own, which has no message."""
    above = frame_above(calls)
    name = party(at)
    if parts.found or not name or above is None or party(above) != name or name == "verl":
        return None
    claim = " ".join(parts.names)
    if _OF_CALLER.search(claim) or any(_hands_on(calls[-2].code, name) for name in _OWN_NAME.findall(claim)):
        return None
    text = "an internal error of {package} at this release: both the assertion and what calls it are its own"
    return phrase(text, package=name)


_WRAPS = frozenset(
    (
        *("DistributedDataParallel", "DataParallel", "FullyShardedDataParallel", "OptimizedModule", "DeepSpeedEngine"),
        *("DeepSpeedDataLoader", "DataLoaderShard", "DataLoaderDispatcher", "AcceleratedOptimizer"),
        *("AcceleratedScheduler", "PeftModel", "PeftModelForCausalLM", "PipelineEngine", "DeepSpeedZeroOptimizer"),
        *("DeepSpeedZeroOptimizer_Stage3", "Float16Module"),
    )
)
"""Classes that hold another object, and do not have all of its attributes."""
_BY_DICT = re.compile(r"return self\.\w+\[\w+\]|self\.__dict__\[|^\s*raise KeyError\(")


def _of_object(parts: MessageParts, at: Frame | None, calls: Sequence[Call]) -> Phrase | None:
    """Why an object lacks an attribute, where it is not the releases of two packages."""
    name, kind = (parts.names[0] if parts.names else ""), parts.symbol
    if "." in name:
        text = (
            "{name} is the path of a parameter: a checkpoint, a device map or a list of modules names it, and the code "
            "of the model at this release has it elsewhere or not at all; take the releases that belong together, or "
            "leave the name out there"
        )
        return phrase(text, name=name)
    last = calls[-1] if calls else None
    if not kind or (last is not None and is_getter(last) and _BY_DICT.search(last.code)):
        text = "the object keeps its attributes in a dict, and nothing has put {name} there, as code before it should"
        return phrase(text, name=name)
    if kind == "Namespace":
        return phrase(
            "the program that was started does not define this option: it and the code that reads the option are of "
            "different releases, or that way to start it does not support it"
        )
    if kind in _WRAPS:
        text = (
            "a {kind} holds another object and does not have all of its attributes: ask that object for {name}, or the "
            "releases do not fit"
        )
        return phrase(text, kind=kind, name=name)
    if kind.endswith("Linear") and name == "weight":
        return phrase(
            "a layer of a quantized model has qweight or the like in place of weight: this code does not take such a "
            "model"
        )
    if asks_itself(name, calls) and kind != "type":
        if party(at):
            text = (
                "the object asks itself for it: this release of {package} has a mistake, or a class that inherits from "
                "it was made for another release"
            )
            return phrase(text, package=party(at))
        return phrase(
            "the object asks itself for it: nothing has set it, or a base class from a package has it in other "
            "releases only"
        )
    return None
