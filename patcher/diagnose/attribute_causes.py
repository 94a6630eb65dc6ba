"""Why something lacks an attribute, a name or an argument: the object, or releases that do not fit together."""

from __future__ import annotations

import ast
import platform
import re
import sys
from collections.abc import Sequence

from patcher.diagnose.evidence import Call
from patcher.diagnose.exception_message import MessageParts, is_of_two_releases, is_plain_for_own
from patcher.diagnose.failed_code import is_written
from patcher.diagnose.frame import Frame, distribution, frame_of
from patcher.diagnose.parties import asked_party, asks_itself, is_beside, is_getter, is_in_tree_of, outside_of, party
from patcher.i18n import Phrase, phrase

_TOKENIZER = re.compile(r"Tokenizer(?:Fast)?$|TokenizersBackend$")
_OF_PROCESSORS = ("tokenizer", "image_processor", "video_processor", "feature_extractor", "image_token", "video_token")
_WRAPS = frozenset(
    (
        *("DistributedDataParallel", "DataParallel", "FullyShardedDataParallel", "OptimizedModule", "DeepSpeedEngine"),
        *("DeepSpeedDataLoader", "DataLoaderShard", "DataLoaderDispatcher", "AcceleratedOptimizer"),
        *("AcceleratedScheduler", "PeftModel", "PeftModelForCausalLM", "PipelineEngine", "DeepSpeedZeroOptimizer"),
        *("DeepSpeedZeroOptimizer_Stage3", "Float16Module"),
    )
)
"""Classes that hold another object, and do not have all of its attributes."""
_CHANGED_BY_UNSLOTH = ("peft", "transformers", "trl")
_BY_DICT = re.compile(r"return self\.\w+\[\w+\]|self\.__dict__\[|^\s*raise KeyError\(")


def of_attribute(parts: MessageParts, at: Frame | None, calls: Sequence[Call]) -> Phrase | None:
    if parts.matter != "missing-attribute" or is_plain_for_own(parts):
        return None
    if (
        party(at) == "triton"
        and isinstance(node := getattr(ast, parts.symbol, None), type)
        and issubclass(node, ast.AST)
    ):
        text = (
            "{kind} is a form of Python's syntax, which this triton does not compile: write that line of the kernel "
            "another way (AnnAssign is `x: T = y`), or take a release that knows it"
        )
        return phrase(text, kind=parts.symbol)
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


def of_releases(parts: MessageParts, at: Frame | None, calls: Sequence[Call]) -> Phrase | None:
    """Which two packages do not fit together, or that one does not fit itself."""
    if not is_of_two_releases(parts):
        return None
    if parts.matter == "missing-name" and parts.package in sys.stdlib_module_names:
        return _of_python(*parts.symbol.rpartition(".")[::2])
    asker, asked = party(at), asked_party(parts, calls)
    if asker in _CHANGED_BY_UNSLOTH and any(party(frame_of(one.frame)) == "unsloth" for one in calls):
        text = (
            "unsloth puts functions of its own in the place of those of {package}: the two releases do not fit; update "
            "unsloth and unsloth_zoo together, or install the {package} that they name"
        )
        return phrase(text, package=asker)
    if is_beside(at, parts):
        text = (
            "{module} is a part of {package} itself: the copy that was imported is incomplete, or the part is "
            "compiled and was built for another Python or not at all; install {package} anew, or build it"
        )
        return phrase(text, module=parts.symbol, package=parts.package)
    if asked and asker == asked:
        return _of_one_package(parts, asked, calls)
    if asked:
        return phrase("the code that asks and the installed {package} are of releases that do not fit", package=asked)
    if parts.package and (asker == distribution(parts.package) or is_in_tree_of(at, parts)):
        if parts.matter != "missing-name":
            text = "both sides are of {package}: this release has a mistake, or files of two releases are mixed"
            return phrase(text, package=asker or parts.package)
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


def _of_python(module: str, name: str) -> Phrase:
    """Why a module of Python itself lacks a name. Nothing is imported for it: a log may name any module."""
    if hasattr(sys.modules.get(module), name):
        text = (
            "{module} is a module of Python itself, and Python {version} has {name}: an older Python runs here, "
            "or a file called {module}.py is imported in its place"
        )
        return phrase(text, module=module, name=name, version=platform.python_version())
    text = (
        "{module} is a module of Python itself: the code is written for another release of Python, or a file called "
        "{module}.py is imported in the module's place"
    )
    return phrase(text, module=module)


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


_OF_OTHER_TENSORS = {
    "offsets": "nested",
    **dict.fromkeys(("full_tensor", "to_local", "placements", "device_mesh", "_local_tensor", "_spec"), "distributed"),
}
"""Attributes that only tensors of another kind have, and the kind: nested ones of unequal rows, and DTensors."""


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
    if kind.rpartition(".")[2] == "Tensor" and name in _OF_OTHER_TENSORS:
        text = "{name} is of a {other} tensor, and a plain one came: what made it has lost or never given it that form"
        return phrase(text, name=name, other=_OF_OTHER_TENSORS[name])
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
