"""What an exception is about whose message says too little by itself: the innermost frames and their code tell it.

  File "/app/pool.py", line 21, in available
    raise NotImplementedError()
NotImplementedError                                ▶ the method `available`, which the class in use does not have
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import replace

from patcher.diagnose.evidence import Call
from patcher.diagnose.exception_message import MessageParts, is_key
from patcher.diagnose.failed_code import called_in, constructed_in, divisor, mapping_with, statement_of, taken_from
from patcher.diagnose.frame import frame_of
from patcher.diagnose.parties import hands_on

_OUT_OF_RANGE = re.compile(r"IndexError:(?: (?:list|tuple|string|deque) index out of range)?$|IndexError$")
_OF_CPP = re.compile(
    r"IndexError: (?P<found>_Map_base::at|(?:unordered_)?map::at\b.*|invalid unordered_map<K, T> key"
    r"|vector::_M_range_check.*|vector)$"
)
"""What C++ says of a lookup that failed. It names neither the key nor what was searched."""
_RAISES_IT = "raise NotImplementedError"
_BY_ZERO = re.compile(r"ZeroDivisionError: .*\b(?:by zero|modulo)$")
_KEY = re.compile(r"KeyError: (?P<quote>['\"])(?P<name>.+?)(?P=quote)$")
_FUNCTION = re.compile(r", in (?:[\w.<>]+\.)?(?P<name>\w+)$")
_GETS = re.compile(r", in (?:\w+\.)?__getattr__$")
_NEAR = 2
"""Innermost frames in which the table of model types is searched."""


def parse_by_code(line: str, calls: Sequence[Call]) -> MessageParts | None:
    """Parse a message with the help of the frames; None for a message that they tell nothing of."""
    if (whole := _MORE_THAN_ALL.search(line)) is not None and float(whole["asked"]) > float(whole["all"]):
        return MessageParts("allocation", wanted=f"{whole['asked']} GiB", found=f"{whole['all']} GiB")
    if (other := _BESIDE.search(line)) is not None and _bytes(other, "held") > _bytes(other, "all") / _MUCH:
        held, of_all = f"{other['held']} {other['held_in']}", f"{other['all']} {other['all_in']}"
        return MessageParts("allocation", symbol=other["process"], names=(held,), wanted=other["asked"], found=of_all)
    if len(each := [*_EACH.finditer(line)]) > 1 and (whole := _WHOLE.search(line)) is not None:
        shares = tuple(f"{one['held']} {one['held_in']} ({one['process']})" for one in each)
        return MessageParts("allocation", names=shares, wanted=whole["asked"], found=whole["all"])
    if (pieces := _IN_PIECES.search(line)) is not None and _bytes(pieces, "unused") > _bytes(pieces, "asked"):
        unused = f"{pieces['unused']} {pieces['unused_in']}"
        return MessageParts("allocation", names=(unused,), wanted=f"{pieces['asked']} {pieces['asked_in']}")
    if not calls:
        return None
    line, last = line.strip(), calls[-1]
    if (failed := _OF_CPP.search(line)) is not None:
        called = called_in(last.code)
        return MessageParts("compiled", symbol=called, found=failed["found"]) if called else None
    if re.fullmatch(r"NotImplementedError:?", line):
        method = _FUNCTION.search(last.frame)
        if not last.frame or not last.code.lstrip().startswith(_RAISES_IT):
            return None
        if len(calls) > 1 and method is not None and method["name"] != "__init__":
            return MessageParts("unwritten", names=(method["name"],))
        return MessageParts("unprovided")
    if _BY_ZERO.match(line):
        name = divisor(last.code, last.marks)
        given, at = _given_divisor(name, calls)
        return MessageParts("divisor", symbol=given, names=(name,), found=at) if name else None
    if _OUT_OF_RANGE.match(line):
        what, place = taken_from(last.code, last.marks)
        return MessageParts("place", names=(what,), found=place) if what else None
    if _OUT_OF_MEMORY.match(line):
        return _allocation(calls)
    if (deleted := _DELETED.fullmatch(line)) is not None:
        asked = rf"del .*\.{deleted['name']}\b|delattr\(.*{deleted['name']}"
        return MessageParts("deleted", names=(deleted["name"],)) if _any_code(asked, calls[-_NEAR:]) else None
    key = _KEY.search(line)
    if key is None or not is_key(key["name"]):
        return None
    if _GETS.search(last.frame):
        # A class that keeps its attributes in a dict. It makes an AttributeError of this.
        return MessageParts("missing-attribute", names=(key["name"],))
    if any("environ[" in one.code for one in calls[-_NEAR:]) and re.fullmatch(r"[A-Z][A-Z0-9_]*", key["name"]):
        return MessageParts("environment", names=(key["name"],))
    if any("CONFIG_MAPPING[" in one.code and "configuration_auto.py" in one.frame for one in calls[-_NEAR:]):
        return MessageParts("model-type", names=(key["name"],))
    return None


_DELETED = re.compile(r"AttributeError: '?(?P<name>[A-Za-z_]\w*)'?")
"""What Python says of `del module.name`, where there is no such attribute."""


def _any_code(pattern: str, calls: Sequence[Call]) -> bool:
    return any(re.search(pattern, one.code) for one in calls)


_OUT_OF_MEMORY = re.compile(r"(?:torch\.(?:cuda\.)?)?OutOfMemoryError: |RuntimeError: (?:CUDA|HIP|NPU) out of memory")
_MORE_THAN_ALL = re.compile(
    r"Tried to allocate (?P<asked>\d{1,9}(?:\.\d+)?) GiB\b.{0,80}? total capacity of (?P<all>\d{1,9}(?:\.\d+)?) GiB"
)
"""What torch says of one allocation: `Tried to allocate 74.16 GiB. GPU 0 has a total capacity of 44.40 GiB of which …`.
"""
_IN_PIECES = re.compile(
    r"Tried to allocate (?P<asked>\d{1,9}(?:\.\d+)?) (?P<asked_in>[MG]iB)\b"
    r".{0,500}? (?P<unused>\d{1,9}(?:\.\d+)?) (?P<unused_in>[MG]iB) is reserved by PyTorch but unallocated"
)


_BESIDE = re.compile(
    r"Tried to allocate (?P<asked>\d{1,9}(?:\.\d+)? [MG]iB)\b.{0,80}? total capacity of (?P<all>\d{1,9}(?:\.\d+)?) "
    r"(?P<all_in>[MG]iB)\b.{0,80}?\. Process (?P<process>\d+) has (?P<held>\d{1,9}(?:\.\d+)?) (?P<held_in>[MG]iB) "
    r"memory in use\. Including non-PyTorch memory, this process has "
)
"""Another process on the same GPU: `… Process 43 has 4.97 GiB memory in use. Including non-PyTorch memory, this process
has 17.05 GiB …`."""
_EACH = re.compile(r"\bProcess (?P<process>\d+) has (?P<held>\d{1,9}(?:\.\d+)?) (?P<held_in>[MG]iB) memory in use\.")
_WHOLE = re.compile(
    r"Tried to allocate (?P<asked>\d{1,9}(?:\.\d+)? [MG]iB)\b"
    r".{0,80}? total capacity of (?P<all>\d{1,9}(?:\.\d+)? [MG]iB)"
)
"""In a container torch does not know its own number, so that it is one of those that the line names."""
_MUCH = 20
"""The part of the GPU from which on another process counts: a twentieth. Set by hand."""


def _bytes(found: re.Match[str], name: str) -> float:
    return float(found[name]) * (1024 if found[f"{name}_in"] == "GiB" else 1)


_NOT_ASKING = re.compile(r"/(?:torch|triton|functorch)/|^<|/lib/python3[\d.]*/(?!site-packages|dist-packages)")
_LONGEST = 100
"""Characters of a line of code that is quoted. Set by hand."""


def _allocation(calls: Sequence[Call]) -> MessageParts | None:
    """Whose memory did not fit: the innermost frame outside of torch, with its code."""
    for one in reversed(calls):
        frame = frame_of(one.frame)
        code = one.code.strip().partition("\n")[0]
        if frame is not None and code and not _NOT_ASKING.search(f"/{frame.path}") and not hands_on(one):
            if code.startswith("raise"):
                return None  # The message is another one's, as of a warm-up that tells what to lower.
            return MessageParts("allocation", symbol=frame.shown, found=code[:_LONGEST])
    return None


def _given_divisor(name: str, calls: Sequence[Call]) -> tuple[str, str]:
    """What the caller gives for the divisor of a function that divides the first of its two arguments by the second,
    and where: `world_size` of `divide(heads, world_size)`, below which `numerator % denominator` fails."""
    given = at = ""
    for outer, inner in zip(calls[-2::-1], calls[:0:-1], strict=True):
        function, frame = _FUNCTION.search(inner.frame), frame_of(outer.frame)
        if not (given or name).isidentifier() or function is None or frame is None:
            break
        node = statement_of(outer.code) or ast.Pass()
        called = [one for one in ast.walk(node) if isinstance(one, ast.Call)]
        called = [one for one in called if ast.unparse(one.func).rpartition(".")[2] == function["name"]]
        match called:
            case [ast.Call(args=[_, ast.expr() as second], keywords=[])]:
                given, at = ast.unparse(second), frame.shown
            case _:
                break
    return given, at


def with_class(parts: MessageParts, calls: Sequence[Call]) -> MessageParts:
    """The parts, where Python before 3.10 says `__init__()` with the class that the line of code calls."""
    if parts.matter == "unexpected-argument" and not parts.symbol and calls:
        # `P(**options)`, where the class itself says `Unexpected keyword argument 'max_new_tokens'`.
        name = called_in(calls[-1].code) if mapping_with(calls[-1].code, "".join(parts.names[:1])) else ""
        return replace(parts, symbol=name) if name else parts
    if parts.symbol != "__init__" or not calls:
        return parts
    # A decorator may stand between: `return func(*args, **kwargs)`.
    asking = next((one for one in reversed(calls) if not hands_on(one)), calls[-1])
    name = constructed_in(asking.code)
    return MessageParts(parts.matter, f"{name}.__init__", parts.names, parts.wanted, parts.found) if name else parts


_CAUGHT = frozenset(("e", "err", "error", "ex", "exc", "exception", "exp", "original_error"))
"""What code calls the exception that it has caught."""


def passes_on(calls: Sequence[Call]) -> bool:
    """Whether the innermost code only raises again what it has caught: `raise TypeError(f"{e} in {hook}") from e`."""
    node = statement_of(calls[-1].code) if calls else None
    if not isinstance(node, ast.Raise) or not isinstance(node.exc, ast.Call):
        return False
    caught = _CAUGHT | ({node.cause.id} if isinstance(node.cause, ast.Name) else set())
    values = [*node.exc.args, *(keyword.value for keyword in node.exc.keywords)]
    return any(isinstance(one, ast.Name) and one.id in caught for value in values for one in ast.walk(value))


_RAISES_AGAIN = re.compile(r"raise [a-z_]\w*")


def is_raised_again(calls: Sequence[Call]) -> bool:
    """Whether the innermost code raises an exception that it was given: `raise result`, from another process."""
    return bool(calls) and _RAISES_AGAIN.fullmatch(calls[-1].code.strip()) is not None


_IN_OBJECT = re.compile(r" in <(?P<of>[A-Za-z_]\w*(?:\.\w+)+) object at 0x")


_NAMED_IN_FRONT = re.compile(r"(?:[\w.]+: )+(?P<of>[A-Z]\w*[a-z]\w*): (?=\S)")


def object_in(line: str) -> str:
    """The class of an object that a message ends with, `… in <package.hooks.Hook object at 0x7f00>`, or that a registry
    puts in front of the message, `NameError: Decoder: Layer: name 'x' is not defined`; "" for others."""
    found = _IN_OBJECT.search(line) or _NAMED_IN_FRONT.match(line.strip())
    return found["of"] if found is not None else ""


_GETTER = re.compile(r", in (?:\w+\.)?(?:_*(?:get|require|lookup|look_up|fetch|resolve)(?:_\w+)?|__getitem__)$")


def is_of_getter(calls: Sequence[Call]) -> bool:
    """Whether the innermost function only looks up what its caller asks for, and refuses it."""
    return bool(calls) and _GETTER.search(calls[-1].frame) is not None and calls[-1].code.lstrip().startswith("raise ")
