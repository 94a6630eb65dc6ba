"""What a parsed message says, as a sentence: `vllm (vllm/engine.py:8) passes seed to start, which does not take it`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from patcher.diagnose.code_sentences import NOT_OF_ANY_TYPE, callee_of
from patcher.diagnose.exception_message import MessageParts, wanted_type
from patcher.diagnose.frame import distribution
from patcher.i18n import Phrase, phrase

_IS_EXCEPTION = re.compile(r"(?:Error|Exception|Failed|Failure)\.__init__$")

_OF_HCCL = {
    "1": phrase("an argument that is not valid"),
    "2": phrase("a null pointer where a value is needed"),
    "3": phrase("no memory"),
    "4": phrase("an internal error"),
    "5": phrase("what is asked for is not supported"),
    "6": phrase("something is not found, as a rank that did not come"),
    "7": phrase("a resource is in use, mostly a port"),
    "8": phrase("a system call failed"),
    "9": phrase("a timeout: a rank did not come, or the network does not carry"),
    "11": phrase("no TCP connection to another rank"),
    "12": phrase("no RoCE connection to another rank"),
    "13": phrase("a TCP transfer failed"),
    "14": phrase("a RoCE transfer failed"),
    "15": phrase("the runtime refused, as for an NPU that is not visible"),
    "16": phrase("the driver refused, as for an NPU that is not visible"),
    "19": phrase("the network failed in the midst of a transfer"),
    "21": phrase("the other rank reported an error in the midst of a transfer"),
}
"""HcclResult of CANN's hccl_types.h."""


def sentence_of(parts: MessageParts, who: Phrase, versions: Mapping[str, str]) -> Phrase | None:
    names = ", ".join(parts.names)
    match parts.matter:
        case "missing-name":
            text = "{who} asks for {symbol}, which {owner} does not have"
            return phrase(text, who=who, symbol=parts.symbol, owner=_owner(parts.package, versions))
        case "missing-module" if "." not in parts.symbol:
            return phrase("{who} imports {module}, which is not installed", who=who, module=parts.symbol)
        case "missing-module":
            text = "{who} imports {module}, which {owner} does not have"
            return phrase(text, who=who, module=parts.symbol, owner=_owner(parts.package, versions))
        case "missing-attribute" if not parts.symbol:
            return phrase("{who} asks an object for {name}, which it does not have", who=who, name=names)
        case "missing-attribute" if wanted := wanted_type(parts):
            text = "{who} expects a {wanted}, which has {name}, and is given a value of type {kind}"
            return phrase(text, who=who, wanted=wanted, name=names, kind=parts.symbol)
        case "missing-attribute":
            text = "{who} asks an object of {kind} for {name}, which it does not have"
            return phrase(text, who=who, kind=callee_of(parts), name=names)
        case "unexpected-argument" if not parts.symbol:
            return phrase("{who} passes {name}, which is not taken", who=who, name=names)
        case "unexpected-argument":
            text = "{who} passes {name} to {callee}, which does not take it"
            return phrase(text, who=who, name=names, callee=callee_of(parts))
        case "argument-twice":
            # `postprocess(output, **row)`, where the row also has a column `output`.
            text = "{who} passes {name} to {callee} twice: by its place and by name, or by name and within **"
            return phrase(text, who=who, name=names, callee=parts.symbol)
        case "option":
            return phrase("the program is given {name}, which it does not take", name=names)
        case "missing-argument" if _IS_EXCEPTION.search(parts.symbol):
            text = "{callee} was lost between two processes: what it said is above, or in that process's own log"
            return phrase(text, callee=parts.symbol.rpartition(".")[0])
        case "missing-argument":
            return phrase("{who} calls {callee} without {names}", who=who, callee=callee_of(parts), names=names)
        case "too-many-arguments":
            text = "{who} passes {found} positional arguments to {callee}, which takes {wanted}"
            return phrase(text, who=who, callee=callee_of(parts), found=parts.found, wanted=parts.wanted)
        case "version" if not parts.found:
            text = "{who} needs {name} {wanted}, and another release is installed, or none"
            return phrase(text, who=who, name=names, wanted=parts.wanted)
        case "version":
            text = "{who} needs {name} {wanted}, and {found} is installed"
            return phrase(text, who=who, name=names, wanted=parts.wanted, found=parts.found)
        case "config-key" if parts.by:
            return phrase("{key} refers to {name}, which the configuration does not have", key=parts.by, name=names)
        case "config-key":
            return phrase("the configuration has no key {name}", name=names)
        case "config-value" if parts.by:
            return phrase("{key} refers to {name}, which has no value", key=parts.by, name=names)
        case "config-value":
            return phrase("the configuration has no value for {name}", name=names)
        case "key":
            return phrase("{who} looks for the key {name}, which is not there", who=who, name=repr(parts.names[0]))
        case "file" | "value":
            return phrase("{who} looks for {path}, which is not there", who=who, path=names)
        case "undefined-name":
            return phrase("{who} uses {name}, which nothing has defined there", who=who, name=names)
        case "collective":
            return phrase("at the same point, {one}, and {other}", one=parts.wanted, other=parts.found)
        case "empty":
            return phrase("{who} takes the first of {name}, which has none", who=who, name=names)
        case "claim":
            return phrase("{who} asserts {claim}, which does not hold", who=who, claim=names)
        case "none" if names and parts.symbol:
            text = "{who} asks {of} for {name}: {of} is None"
            return phrase(text, who=who, of=parts.symbol, name=names)
        case "none" if parts.symbol:
            return phrase("{who} gets None where it needs a value: {of} is None", who=who, of=parts.symbol)
        case "none" if names:
            return phrase("{who} asks None for {name}: what should be there is not", who=who, name=names)
        case "none":
            return phrase("{who} gets None where it needs a value", who=who)
        case "unpacking" if parts.found:
            text = "{who} expects {wanted} values and gets {found}"
            return phrase(text, who=who, wanted=parts.wanted, found=parts.found)
        case "unpacking":
            return phrase("{who} expects {wanted} values and gets more", who=who, wanted=parts.wanted)
        case "index":
            text = "{who} asks for place {found} of dimension {name}, which has {wanted}"
            return phrase(text, who=who, found=parts.found, name=names, wanted=parts.wanted)
        case "dimension" if names:
            text = "{who} asks for dimension {found} of {name}, which has {wanted}, counted from 0"
            return phrase(text, who=who, found=parts.found, name=names, wanted=parts.wanted)
        case "dimension":
            text = "{who} asks for dimension {found} of a tensor that has {wanted}, counted from 0"
            return phrase(text, who=who, found=parts.found, wanted=parts.wanted)
        case "place":
            text = "{who} takes place {found} of {name}, which has fewer"
            return phrase(text, who=who, found=parts.found, name=names)
        case "unwritten":
            return phrase("{who} calls {name}, which the class in use does not implement", who=who, name=names)
        case "unprovided":
            return phrase("{who} has nothing for this case: the conditions above that line tell what it takes", who=who)
        case "divisor":
            if parts.symbol:
                text = "{who} divides by {name}, which is 0: {place} gives {given} for it"
                return phrase(text, who=who, name=names, place=parts.found, given=parts.symbol)
            return phrase("{who} divides by {name}, which is 0", who=who, name=names)
        case "model-type":
            text = "{who} does not know the type of this model: {name}"
            return phrase(text, who=who, name=names)
        case "compiled":
            text = "{who} calls {callee} of a compiled extension, where a lookup fails: it has nothing for this call"
            return phrase(text, who=who, callee=parts.symbol)
        case "builds":
            text = (
                "{who} calls {callee} of a compiled extension with {found} arguments, and the build that is installed "
                "takes at most {wanted}"
            )
            return phrase(text, who=who, callee=parts.symbol, found=parts.found, wanted=parts.wanted)
        case "deleted":
            return phrase("{who} deletes {name}, which the object does not have", who=who, name=names)
        case "environment":
            text = "{who} reads the environment variable {name}, which is not set"
            return phrase(text, who=who, name=names)
        case "allocation" if len(parts.names) > 1:
            text = (
                "{asked} are asked for, and the {whole} of this GPU are held by processes of which only one is this "
                "one: {held}. End the others if they are left over or somebody else's; if they are of this job, as an "
                "inference engine, give them a smaller share"
            )
            return phrase(text, asked=parts.wanted, whole=parts.found, held=", ".join(parts.names))
        case "allocation" if parts.names and parts.symbol:
            text = (
                "{asked} are asked for, and another process, {process}, holds {held} of the {whole} of this GPU: "
                "end it if it is left over or somebody else's; if it is of this job, as an inference engine, "
                "give it a smaller share"
            )
            fields = {"asked": parts.wanted, "process": parts.symbol, "held": parts.names[0], "whole": parts.found}
            return phrase(text, **fields)
        case "allocation" if parts.names:
            text = (
                "{asked} are asked for, and torch holds {unused} that it does not use: its memory is in pieces that "
                "are too small. Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True first"
            )
            return phrase(text, asked=parts.wanted, unused=parts.names[0])
        case "allocation" if parts.wanted:
            text = (
                "one tensor of {asked} is asked for, and the whole GPU has {found}: smaller shares and offload do not "
                "help; a size of the input is too large (image, sequence, batch), or attention is computed in whole, "
                "where flash attention would not need that tensor"
            )
            return phrase(text, asked=parts.wanted, found=parts.found)
        case "allocation":
            return phrase("the memory is asked for at {place}: {code}", place=parts.symbol, code=parts.found)
        case "validation":
            what = ".".join(filter(None, (parts.symbol, names)))
            text = "{who}: {what} are refused: {words}" if len(parts.names) > 1 else "{who}: {what} is refused: {words}"
            return phrase(text, who=who, what=what, words=parts.found)
        case "shape":
            of = phrase("{who}, {name}", who=who, name=names) if names else who
            return phrase(
                "{of}: shapes do not fit, {found} against {wanted}", of=of, found=parts.found, wanted=parts.wanted
            )
        case "type" if parts.wanted in NOT_OF_ANY_TYPE:
            text = "{who}: a value of type {found} is not {wanted}"
            return phrase(text, who=who, found=parts.found, wanted=parts.wanted)
        case "type":
            text = "{who}: types of values do not fit, {found} against {wanted}"
            return phrase(text, who=who, found=parts.found, wanted=parts.wanted)
        case "argument-type":
            text = "{who} passes {name} of type {found} to {callee}, which takes {wanted} there"
            return phrase(text, who=who, name=names, found=parts.found, callee=parts.symbol, wanted=parts.wanted)
        case "nccl":
            return phrase("NCCL tells: {words}", words=parts.found)
        case "hccl":
            meaning = _OF_HCCL.get(parts.found, phrase("a code that CANN's header hccl_types.h tells"))
            return phrase("{call} gives {code}: {meaning}", call=parts.symbol, code=parts.found, meaning=meaning)
        case "cuda":
            return phrase("{who}: CUDA tells: {words}", who=who, words=parts.found)
        case "dtype":
            text = "{who}: types of tensors do not fit, {found} against {wanted}"
            return phrase(text, who=who, found=parts.found, wanted=parts.wanted)
        case "device":
            text = "{who}: tensors are on two devices, {found} and {wanted}"
            return phrase(text, who=who, found=parts.found, wanted=parts.wanted)
        case "cut" if parts.symbol:
            text = "{who} takes {name} from {of}, which has no such key or position; the traceback ends there"
            return phrase(text, who=who, name=names, of=parts.symbol)
        case "cut" if not names and parts.found:
            return phrase("the log ends within a traceback, at {place}: {code}", place=who, code=parts.found)
        case "cut" if not names:
            return phrase("the log ends within a traceback, at {place}", place=who)
        case "cut":
            return phrase("{who} raises {name}; what it says is cut off", who=who, name=names)
        case "unpickled":
            text = "{who} reads what another process has pickled; {module}, which that one could import, is not here"
            return phrase(text, who=who, module=names)
        case "around":
            return None
        case "words":
            return phrase("{who} says: {words}", who=who, words=parts.found)


def _owner(module: str, versions: Mapping[str, str]) -> str:
    name = distribution(module)
    return f"{name} {versions.get(name, '')}".strip()
