"""Sentences that need the line of code that failed: whose sizes do not fit, what is unpacked, what an assertion saw."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from patcher.diagnose.evidence import Call
from patcher.diagnose.exception_message import UNREADABLE_CODE, MessageParts
from patcher.diagnose.failed_code import expected_and_message, mixed, taken_from, unpacked, used_as
from patcher.diagnose.frame import Frame, frame_of
from patcher.diagnose.parties import Given, owner_of, party
from patcher.diagnose.tensor_code import assigned, indexed, joined, operands, reshaped
from patcher.i18n import Phrase, phrase


def configured_sentence(parts: MessageParts, who: Phrase, given: Given | None) -> Phrase | None:
    """The sentence for a keyword that stands in a configuration; None for anything else."""
    if given is None:
        return None
    fields = {"who": who, "name": parts.names[0], "callee": callee_of(parts)}
    if given.at is None:
        text = "{name} is a key of the configuration, which {who} hands on to {callee}, and that does not take it"
        return phrase(text, **fields)
    text = (
        "{name} is a key of the configuration {section} ({place}), which {who} hands on to {callee}, "
        "and that does not take it"
    )
    return phrase(text, section=given.section, place=given.at.shown, **fields)


def callee_of(parts: MessageParts) -> Phrase | str:
    """What is called, with the package that it is of where its name is that of one package only."""
    owner = owner_of(parts.symbol)
    return phrase("{callee} of {package}", callee=parts.symbol, package=owner) if owner else parts.symbol


NOT_OF_ANY_TYPE = ("callable", "subscriptable", "iterable", "a mapping")
"""What Python says that a value is not, where it names no other type."""
_DIMENSION = re.compile(r"at non-singleton dimension (?P<number>\d+)")
_NUMBER = re.compile(r"for tensor number (?P<number>\d+) in the list")
_MOST_OPERATIONS = 3


def code_sentence(parts: MessageParts, who: Phrase, calls: Sequence[Call], line: str) -> Phrase | None:
    """The sentence with the names that the line of code has for what does not fit; None where the code tells none."""
    call = calls[-1] if calls else Call("")
    if parts.matter == "unpacking":
        return _unpacking_sentence(parts, who, call)
    if parts.matter == "key":
        what, _ = taken_from(call.code, call.marks, parts.names[0])
        # `self._known[key]`; what is computed, such as `json.loads(text)["key"]`, is not told by its code.
        if re.fullmatch(r"[A-Za-z_]\w*(?:\.\w+)*", what) is None:
            return None
        text = "{who} looks for the key {name} in {of}, which lacks it"
        return phrase(text, who=who, name=repr(parts.names[0]), of=what)
    if parts.matter == "type" and parts.wanted in NOT_OF_ANY_TYPE:
        what = used_as(call.code, call.marks, parts.wanted)
        text = "{who}: {what} is of type {found}, which is not {wanted}"
        return phrase(text, who=who, what=what, found=parts.found, wanted=parts.wanted) if what else None
    if parts.matter == "type" and parts.wanted.endswith(" indices"):
        # `sample["img"]`, where sample is a list.
        what, place = taken_from(call.code, call.marks)
        text = "{who} takes {place} from {what}, a {kind}, which takes whole numbers there and no {found}"
        kind = parts.wanted.partition(" ")[0].replace("string", "str")
        return phrase(text, who=who, place=place, what=what, kind=kind, found=parts.found) if what else None
    if parts.matter == "type" and (sides := mixed(call.code, call.marks)) != ("", ""):
        kinds = (
            (parts.wanted, parts.found)
            if "can only " in line or "can't multiply" in line
            else (parts.found, parts.wanted)
        )
        if not all(re.fullmatch(r"[\w.]+", kind) for kind in kinds):
            return None
        text = "{who}: {left} is of type {kind}, {right} of type {other}, and the two do not go together"
        return phrase(text, who=who, left=sides[0], kind=kinds[0], right=sides[1], other=kinds[1])
    return _shape_sentence(parts, who, call, line) if parts.matter == "shape" and call.code else None


def _unpacking_sentence(parts: MessageParts, who: Phrase, call: Call) -> Phrase | None:
    what, is_call = unpacked(call.code)
    if not what:
        return None
    if what.endswith((".shape", ".size")):
        tensor = what.rpartition(".")[0]
        if not parts.found:
            return phrase(
                "{who}: {tensor} does not have {wanted} dimensions", who=who, tensor=tensor, wanted=parts.wanted
            )
        text = "{who}: {tensor} has {found} dimensions, and {wanted} are expected"
        return phrase(text, who=who, tensor=tensor, found=parts.found, wanted=parts.wanted)
    what = f"{what}()" if is_call else what
    if parts.found:
        text = "{who} expects {wanted} values of what {what} gives, and gets {found}"
        return phrase(text, who=who, what=what, wanted=parts.wanted, found=parts.found)
    text = "{who} expects {wanted} values of what {what} gives, and gets more"
    return phrase(text, who=who, what=what, wanted=parts.wanted)


def _shape_sentence(parts: MessageParts, who: Phrase, call: Call, line: str) -> Phrase | None:
    if "tensor a (" in line or "broadcast together" in line or "mat1 and mat2" in line:
        return _sentence_of_operands(parts, who, operands(call.code, call.marks, "mat1 and mat2" in line), line)
    left = right = ""
    if "is invalid for input of size" in line:
        left, right = reshaped(call.code)
        if parts.found == "0":
            text = "{who}: {left} is empty (0 elements) and cannot take the shape {wanted} ({right})"
        else:
            text = "{who}: {left} has {found} elements and cannot take the shape {wanted} ({right})"
    elif (number := _NUMBER.search(line)) is not None:
        left = ", ".join(joined(call.code)[int(number["number"]) :][:1])
        text = "{who}: {left} has size {found} where the first tensor that is joined has {wanted}"
    elif "shape of the mask" in line:
        right, left = indexed(call.code)
        text = "{who}: the mask {left} has shape {found}, and {right} has {wanted}"
    elif "same number of dimensions" in line:
        left = ", ".join(joined(call.code)[:_MOST_OPERATIONS])
        text = "{who}: what is joined ({left}) has {found} and {wanted} dimensions"
    elif "size of the tensor" in line or "indexing result of shape" in line:
        left, right = assigned(call.code)
        text = "{who}: {left} has room for {wanted}, and {right} has {found}"
    return phrase(text, who=who, left=left, right=right, found=parts.found, wanted=parts.wanted) if left else None


def _sentence_of_operands(
    parts: MessageParts, who: Phrase, found: Sequence[tuple[str, str]], line: str
) -> Phrase | None:
    dimension = _DIMENSION.search(line)
    fields = {"who": who, "found": parts.found, "wanted": parts.wanted}
    pairs = list(dict.fromkeys(found))
    if len(pairs) == 1 and dimension is not None:
        text = "{who}: in dimension {number}, {left} has size {found} and {right} has {wanted}"
        return phrase(text, left=pairs[0][0], right=pairs[0][1], number=dimension["number"], **fields)
    if len(pairs) == 1:
        text = "{who}: {left} has shape {found} and {right} has {wanted}, which do not fit"
        return phrase(text, left=pairs[0][0], right=pairs[0][1], **fields)
    if not 1 < len(pairs) <= _MOST_OPERATIONS:
        return None
    shown = "; ".join(f"{left}, {right}" for left, right in pairs)
    text = "{who}: sizes do not fit, {found} of the first and {wanted} of the second of one of these pairs: {pairs}"
    return phrase(text, pairs=shown, **fields)


_LONGEST = 200


def values_of(message: str, code: str) -> str:
    """The values that the message of an assertion gives, with what the code calls them where it shows that.

    `(torch.Size([]), 7)` from `assert a.shape == (n,), (a.shape, n)` ▶ `a.shape = torch.Size([]), n = 7`
    """
    message = " ".join(message.split())
    if not message or message.startswith("assert "):  # pytest repeats the condition.
        return ""
    sides, named = expected_and_message(code)
    values = _values(message)
    if named and len(named) == len(values):
        return ", ".join(f"{name} = {value}" for name, value in zip(named, values, strict=True))[:_LONGEST]
    if values and not named and sides and sides[0].endswith(".shape") and values[0].startswith("torch.Size("):
        return ", ".join((f"{sides[0]} = {values[0]}", *values[1:]))[:_LONGEST]
    return message[:_LONGEST]


def _values(message: str) -> list[str]:
    try:
        node = ast.parse(message, mode="eval").body
    except UNREADABLE_CODE:
        return []
    return [ast.unparse(one) for one in node.elts] if isinstance(node, ast.Tuple | ast.List) else [ast.unparse(node)]


_OF_ANY = frozenset(("config", "core", "data", "engine", "model", "models", "nn", "runtime", "trainer", "utils"))
"""Second names of packages that variables have for other reasons."""


def unpacked_of(at: Frame | None, calls: Sequence[Call]) -> tuple[str, str] | None:
    """The function whose result cannot be unpacked, and the package that it is of where its name shows that; None where
    nothing but own code, or no function at all, is called."""
    what, is_call = unpacked(calls[-1].code) if calls else ("", False)
    root = what.partition(".")[0]
    if not is_call or root in ("self", "cls") or what.endswith((".shape", ".size")):
        return None
    for one in reversed(calls):
        frame = frame_of(one.frame)
        if frame is None or not frame.installed or not frame.package or party(frame) == party(at):
            continue
        names = frame.path.split("/")[:-1]
        if names[:1] == [root]:
            return what, root
        if names[1:2] == [root] and root not in _OF_ANY:
            return what, ".".join(names[:2])
    return what, ""


_OF_TOKENS = re.compile(r"log_?p|logit", re.IGNORECASE)


def are_of_tokens(parts: MessageParts, calls: Sequence[Call]) -> bool:
    """Whether the operands whose sizes do not fit are both values of the tokens of a sequence, such as log-probs."""
    pairs = operands(calls[-1].code, calls[-1].marks) if parts.matter == "shape" and calls else []
    return len(pairs) == 1 and all(_OF_TOKENS.search(one) for one in pairs[0])


def computed_zero(parts: MessageParts, calls: Sequence[Call]) -> str:
    """What the code has computed as 0 in the shape that a tensor with elements cannot take: `head_dim` of
    `q.view(batch, length, heads, head_dim)`; the place in the shape where the code has no name for it; "" where no size
    is 0."""
    sizes = re.findall(r"-?\d+", parts.wanted)
    if parts.matter != "shape" or not parts.wanted.startswith("[") or parts.found in ("", "0") or "0" not in sizes:
        return ""
    if not parts.found.isdigit():
        return ""
    place = sizes.index("0")
    _, shape = reshaped(calls[-1].code) if calls else ("", "")
    try:
        node = ast.parse(shape, mode="eval").body if shape else None
    except UNREADABLE_CODE:
        node = None
    names = [ast.unparse(one) for one in node.elts] if isinstance(node, ast.Tuple | ast.List) else []
    return names[place] if len(names) == len(sizes) else parts.wanted


def has_empty(parts: MessageParts) -> bool:
    """Whether one of the tensors whose shapes do not fit is empty."""
    if parts.names:  # `size mismatch for model.norm.weight`: a parameter that is divided up, and no data.
        return False
    if parts.matter == "shape" and parts.found.isdigit() and parts.wanted.startswith("["):
        return parts.found == "0"  # The wanted shape is what the code asks for, and says nothing of the tensor.
    sizes = [re.findall(r"\d+", text) for text in (parts.found, parts.wanted)]
    return parts.matter == "shape" and any("0" in one for one in sizes)
