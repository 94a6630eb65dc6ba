"""A package that has failed by itself: a case that its release does not provide for, or a mistake of it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from patcher.diagnose.code_message import is_of_getter
from patcher.diagnose.evidence import Call
from patcher.diagnose.exception_message import MessageParts
from patcher.diagnose.frame import Frame, frame_of
from patcher.diagnose.internal_errors import is_internal
from patcher.diagnose.parties import ENGINES, frame_above, owner_of, party
from patcher.diagnose.wrong_class import refused_class
from patcher.i18n import Phrase, phrase

_EXTENSION = re.compile(r"^(?!(?:use|is|has|no|to|on|with|enable)_)\w+_(?:(?:cuda|cpp|hip)(?:_\w+)?|C)$")
"""Names of compiled extensions, `selective_scan_cuda_core`, and not of settings: `use_cuda`."""
_CLASS = re.compile(r"(?:[A-Z][a-z0-9]\w*|[A-Z]{2,}[a-z]\w*)$")
_WRAPS_LAYER = re.compile(r"/tuners/.*, in (?:_replace_module|_create_\w+|update_layer|_move_adapter_to\w*)$")


def of_mistakes(parts: MessageParts, at: Frame | None, calls: Sequence[Call]) -> Phrase | None:
    """Which package has failed by itself."""
    if parts.matter == "unwritten":
        return _of_unwritten(parts, at, calls)
    if parts.matter == "claim":
        return _of_claim(parts, at, calls)
    if parts.matter == "words":
        return _of_words(parts, at, calls)
    if parts.matter == "file" and at is not None and at.installed and f"-packages/{at.package}/" in parts.names[0]:
        text = (
            "a file of {package} itself is not there: it was installed without its data, as from a git address or an "
            "archive that leaves such files out; install another release, or clone the repository and install that"
        )
        return phrase(text, package=party(at))
    if parts.matter == "deleted" and party(at):
        text = (
            "{package} deletes it without looking whether it is there: a mistake of this release, so look for its fix, "
            "or take another release"
        )
        return phrase(text, package=party(at))
    if parts.matter == "undefined-name" and (_CLASS.match(parts.names[0]) or owner_of(parts.names[0])):
        return phrase(
            "a class of this name is mostly imported: that import is missing in the file, or stands in a try or an if, "
            "since what it imports is optional: a package that is not installed, or whose release has it under another "
            "name"
        )
    if parts.matter == "undefined-name" and _EXTENSION.search(parts.names[0]):
        text = (
            "{name} is mostly a compiled extension, whose import stands in a try: it is not built, or does not load "
            "here; import it by itself to see why, then build it for this torch and CUDA, or choose the way without it"
        )
        return phrase(text, name=parts.names[0])
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


_OF_VALUES = ("shape", "dimension", "dtype", "device", "unpacking", "place", "compiled")
_FRAMES = 3
"""Innermost frames that are looked at for a package by itself. Set by hand."""


def of_values_of_its_own(parts: MessageParts, at: Frame | None, calls: Sequence[Call]) -> Phrase | None:
    """Which package meets tensors that do not fit, in code that only it calls. To be asked last: sizes and types
    mostly come from a model, from data or from settings."""
    frames = [frame for one in calls if (frame := frame_of(one.frame)) is not None]
    own = [one for one in frames if not one.path.startswith("torch/") and party(one)][-_FRAMES:]
    name = party(at)
    if parts.matter not in _OF_VALUES or name in ("", "torch", "verl", "transformers") or len(own) < _FRAMES:
        return None
    if any(party(one) != name for one in own):
        return None
    text = (
        "the code that fails and what calls it are of {package}: it may not provide for this model, type or setting; "
        "look for its fix or another release, and try without what is special about this run (quantization, "
        "parallelism, compilation, an option of its own)"
    )
    return phrase(text, package=name)


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


_INSTALLS = re.compile(r"\binstall(?:ing)?[ -](?:the )?(?:latest )?[`'\"]?(?P<name>[A-Za-z][\w.-]*)", re.IGNORECASE)


_NOT_SUPPORTED = re.compile(
    r"(?:[Mm]odel(?: type| architecture)?:? )?[`'\"]?(?P<kind>[a-z][a-z0-9]*[\d_][\w.-]*|[A-Z]\w+For[A-Z]\w+)[`'\"]?"
    r" (?:isn.t|is not) (?:yet )?supported(?: yet)?(?: by \w+)?\.?$"
)
"""A kind of model, by its name in config.json, that a package refuses: `qwen2_5_vl isn't supported yet.`"""
_NO_CLASS = re.compile(
    r"(?=.*\b(?:not|no|unknown|unsupported)\b).*\barchitectures?:? \[?['\"](?P<kind>\w+For\w+)['\"]\]?", re.IGNORECASE
)
"""The same by the class in config.json: `Can not found rewrite for architectures: ['GlmMoeDsaForCausalLM']`."""
_NOT_PICKLED = re.compile(r"\b(?:cannot|can't) pickle\b", re.IGNORECASE)
_OF_GPU = re.compile(r"\b(?:requires?|needs?) .*\b(?:GPUs?|SM ?\d|sm_\d|[Cc]ompute capability)")


_NOT_THERE = re.compile(
    r"\bnot (?:there|found|set|initialized|enabled|defined|registered|given)\b|\bmissing\b", re.IGNORECASE
)


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
    unknown = _NOT_SUPPORTED.match(parts.found) or _NO_CLASS.match(parts.found)
    if unknown is not None and at is not None and at.installed and party(at):
        text = "{kind} is not known to this release of {package}: install a later one, which may know it"
        return phrase(text, kind=unknown["kind"], package=party(at))
    if _NOT_PICKLED.search(parts.found) and any("ray/" in one.frame for one in calls):
        return phrase(
            "what is sent to another process holds it: a client, a logger, a session or a model that the function or "
            "class takes along from outside. Make that inside of the actor or task; "
            "ray.util.inspect_serializability(FUNCTION) names it"
        )
    if parts.found.startswith("cannot use a string pattern on a bytes-like object"):
        return phrase(
            "the text that is searched is bytes, as a binary column of a parquet file is, or a file that was opened "
            "with rb: decode it first"
        )
    if parts.found.startswith("Expecting value: line 1 column 1 "):
        return phrase(
            "what is read there is no JSON: a file that is empty or another one than meant, or an answer that is empty "
            "or a page of HTML"
        )
    above = frame_above(calls)
    known = {party(frame) for one in calls if (frame := frame_of(one.frame)) is not None}
    if len(calls) > 1 and calls[-1].code.lstrip().startswith("assert ") and len(known) == 1 and known <= ENGINES:
        text = "an internal error of {package} at this release: both the assertion and what calls it are its own"
        return phrase(text, package=party(at))
    if _OF_GPU.search(parts.found):
        return None  # An option of the command line may lead there.
    missing = _NOT_THERE.search(parts.found) is not None
    if missing and is_of_getter(calls) and above is not None and party(at) and party(above) == party(at) != "verl":
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
