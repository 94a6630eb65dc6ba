"""Parse the message of an exception into parts: which name, argument, key, file or version is the problem.

    ImportError: cannot import name 'AutoModelForVision2Seq' from 'transformers' (/opt/…/transformers/__init__.py)
                 ▲ missing-name     ▲ symbol: transformers.AutoModelForVision2Seq

The known forms of messages are those of Python, importlib, torch, NCCL, hydra and omegaconf, and pkg_resources.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

Matter = Literal[
    "missing-name",
    "missing-module",
    "missing-attribute",
    "unexpected-argument",
    "argument-twice",
    "missing-argument",
    "too-many-arguments",
    "option",
    "version",
    "config-key",
    "config-value",
    "key",
    "file",
    "undefined-name",
    "none",
    "claim",
    "unpacking",
    "index",
    "dimension",
    "place",
    "validation",
    "shape",
    "dtype",
    "device",
    "type",
    "argument-type",
    "value",
    "nccl",
    "hccl",
    "cuda",
    "collective",
    "empty",
    "cut",
    "unpickled",
    "around",
    "unwritten",
    "unprovided",
    "divisor",
    "model-type",
    "compiled",
    "builds",
    "deleted",
    "environment",
    "allocation",
    "words",
]
# These say by themselves which failure it is. Shapes, types and keys do so only together with the code that met them.
TELLING_ALONE: frozenset[Matter] = frozenset(
    (
        *("missing-name", "missing-module", "missing-attribute", "unexpected-argument", "missing-argument"),
        *("argument-twice", "too-many-arguments", "option", "version", "config-key", "config-value", "validation"),
        *("nccl", "hccl", "unpickled"),
    )
)
TELLING_WITH_RECORD: frozenset[Matter] = TELLING_ALONE | {"collective", "allocation"}
"""Those that add something to a record's explanation. `collective`: which ranks ran which operation; `allocation`: what
the memory was for."""


@dataclass(frozen=True, slots=True)
class MessageParts:
    """The parts of a message; "" for what it does not say."""

    matter: Matter
    symbol: str = ""
    """The dotted name that is missing, `vllm.lora.models.LoRAModel`, or was called, `Engine.__init__`, or is None."""
    names: tuple[str, ...] = ()
    """Arguments, a key, a path, or the condition of an assertion."""
    wanted: str = ""
    found: str = ""
    file: str = ""
    """The file of the module that lacks the name."""
    near: str = ""
    """A similar name that the module has, from Python's `Did you mean`."""
    by: str = ""
    """The key of a configuration that refers to the one that is missing."""
    cut: bool = False
    """Whether the missing name may be longer than what is known: the line of the log ends within it."""

    @property
    def package(self) -> str:
        """The top-level package that lacks the name; "" where only the name of a class or function is known."""
        return self.symbol.partition(".")[0] if self.matter in ("missing-name", "missing-module") else ""


_BUILT_IN = frozenset({"dict", "list", "tuple", "set", "str", "bytes", "int", "float", "bool", "function", "generator"})
_VALUES = _BUILT_IN | {"numpy.ndarray", "numpy.float32", "numpy.float64", "numpy.int64", "Tensor", "torch.Tensor"}
_METHODS: Mapping[str, str] = {
    name: kind
    for kind, names in (
        ("list", "append extend insert"),
        ("dict", "get items keys setdefault popitem"),
        ("str", "startswith endswith strip lstrip rstrip lower upper splitlines encode"),
    )
    for name in names.split()
}
"""Methods that only values of one built-in type have, and no array, tensor or table."""


def wanted_type(parts: MessageParts) -> str:
    """The type that a value should have had: `list` where `extend` was called on an array; "" where that is not
    known."""
    if parts.matter != "missing-attribute" or parts.symbol not in _VALUES or not parts.names:
        return ""
    wanted = _METHODS.get(parts.names[0], "")
    return "" if wanted == parts.symbol else wanted


_OF_TENSORS = (
    "shape size dim ndim dtype device to cpu cuda view reshape float half bfloat16 long int numpy item tolist sum mean "
    "max min unsqueeze squeeze clone detach contiguous transpose T data requires_grad grad numel new_zeros new_ones"
)


def is_plain_for_own(parts: MessageParts) -> bool:
    """Whether a plain list, tuple or dict is asked for what neither a built-in type nor a tensor has, so that a class
    of the asking package was expected."""
    if parts.matter != "missing-attribute" or parts.symbol not in ("list", "tuple", "dict") or not parts.names:
        return False
    name = parts.names[0]
    return name not in _OF_TENSORS.split() and not any(hasattr(kind, name) for kind in (list, tuple, dict, str, set))


def is_of_two_releases(parts: MessageParts) -> bool:
    """Whether failures of this form are mostly caused by two packages whose releases do not fit together.

    Measured: in two of the samples of docs/diagnosis.md 41 of 64 such failures are, and 23 are mistakes or settings of
    the calling code.
    """
    if wanted_type(parts):
        return False
    if parts.matter in ("missing-attribute", "missing-argument", "unexpected-argument", "too-many-arguments"):
        return parts.symbol not in _BUILT_IN
    return parts.matter == "missing-name" or (parts.matter == "missing-module" and "." in parts.symbol)


UNREADABLE_CODE = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What `ast` raises for a line of code that is no whole statement, or that is nested too deeply."""

NAME = r"[A-Za-z_]\w*"
DOTTED = rf"{NAME}(?:\.{NAME})*"
_CALL = rf"(?P<symbol>(?:{NAME}\.)*(?:<locals>\.)?(?:<lambda>|{NAME}))\(\)"
_ITS_NAME = rf"'(?P<names>{NAME})'"
_MODULE, _LAST = rf"'(?P<module>{DOTTED})'", rf"'(?P<last>{NAME})'"
_WANTED = r"(?P<wanted>(?:[<>]=?|[=!~]=)\s*v?\d[\w.*+!-]*(?:\s*,\s*[<>=!~]=?\s*[\w.*+!-]+)*)"
_FOUND = r"(?P<found>\d[\w.+!-]*\w|\d)"
_PROJECT = r"(?P<names>[\w.-]+?)"
_NO_PROJECT = r"(?!(?:at|capability|device|level|rank|port|release|size|stage|step|version)s? )"
_SIZE = r"torch\.Size\([^)]*\)"
_DTYPE = r"[\w.:]*\w"

# `1 is running collective: CollectiveFingerPrint(SequenceNumber=0, OpType=ALLREDUCE, TensorShape=[3], …`
_COLLECTIVE = r"\d+ is running collective: \w+\((?:SequenceNumber=\d+, ?)?OpType=\w+(?:, ?TensorShape=\[[\d, ]*\])?"

_SHAPES: tuple[tuple[Matter, str], ...] = (
    (
        "missing-name",
        rf"cannot import name {_LAST} from (?:partially initialized module )?{_MODULE}(?: \((?P<file>/[^)]*)\))?",
    ),
    ("missing-module", rf"No module named '(?P<symbol>{DOTTED})'"),
    ("missing-module", rf"packages that were not found in your environment: (?P<symbol>{NAME})"),
    ("missing-name", rf"Error (?:locating target|loading) '(?P<symbol>{DOTTED})'"),
    ("missing-name", rf"module {_MODULE} has no attribute {_LAST}"),
    (
        "none",
        r"'NoneType' object (?:has no attribute '(?P<names>\w+)'|is not (?P<found>\w+))"
        r"|cannot unpack non-iterable NoneType",
    ),
    ("none", r"(?:object|argument) of type 'NoneType' (?:has no |is not )(?P<found>len|iterable)"),
    (
        "builds",
        r"(?P<symbol>[A-Za-z_]\w*::\w+)\(\) expected at most (?P<wanted>\d+) argument\(s\) "
        r"but received (?P<found>\d+) argument\(s\)",
    ),
    ("missing-attribute", rf"'(?P<symbol>{DOTTED})'(?: object)? has no attribute {_ITS_NAME}"),
    ("missing-attribute", rf"AttributeError: (?P<symbol>{NAME}) has no attribute `(?P<names>{NAME})`"),
    ("missing-attribute", rf"'(?P<symbol>{DOTTED})' object has no attribute '(?P<names>{NAME}(?:\.\w+)+)'"),
    ("missing-attribute", rf"AttributeError: (?P<symbol>{DOTTED}) has no attribute (?P<names>{NAME})"),
    ("missing-attribute", rf"<\w+ '?(?P<symbol>{DOTTED})'?[^<>]*> does not have the attribute {_ITS_NAME}"),
    ("argument-twice", rf"{_CALL} got multiple values for (?:keyword )?argument {_ITS_NAME}"),
    ("unexpected-argument", rf"{_CALL} got (?:an unexpected|some positional-only).*? {_ITS_NAME}"),
    ("unexpected-argument", rf"Unexpected keyword argument {_ITS_NAME}"),
    ("unexpected-argument", rf"Unrecognized keyword arguments passed to (?P<symbol>{NAME}): \{{{_ITS_NAME}"),
    ("unexpected-argument", rf"Received unknown keyword arguments: \{{{_ITS_NAME}"),
    ("model-type", r"has model type [`'](?P<names>[\w.-]+)[`'] but Transformers does not recognize"),
    ("option", r"unrecognized arguments: (?P<several>--\S+)"),
    ("option", r"(?:keys|arguments) are not used by the HfArgumentParser: \[(?P<several>.*)\]"),
    ("option", r"remaining_argv: \[(?P<several>'--.*)\]"),
    ("missing-argument", rf"{_CALL} missing \d+ required (?:positional|keyword-only) arguments?: (?P<several>'.*')"),
    ("too-many-arguments", rf"{_CALL} takes (?P<wanted>.+?) positional arguments? but (?P<found>\d+)"),
    ("too-many-arguments", rf"{_CALL} takes (?P<wanted>no|[\w ]*\d) arguments? \((?P<found>\d+) given\)"),
    ("version", rf"{_PROJECT}\s*{_WANTED} is required\b.*?but found (?:[\w.-]+?==)?{_FOUND}"),
    ("version", rf"requires {_PROJECT}\s*{_WANTED}.*?, but you have [\w.-]+ {_FOUND}"),
    ("version", rf"\({_PROJECT} {_FOUND} \(.*\), Requirement\.parse\('[\w.-]+?{_WANTED}'\)\)"),
    # `Cannot use version 2 is not supported …` and `port_base at 30000 is not available` name no package.
    ("version", rf"(?<![\w.-]){_NO_PROJECT}{_PROJECT} {_FOUND} is (?:installed )?(?:but|not)\b.*?{_WANTED}"),
    ("config-key", r"Key '(?P<names>[^']+)' is not in struct"),
    (
        "config-key",
        r"Interpolation key '(?P<referred>[^']+)' not found|ConfigAttributeError: Missing key (?P<several>\w+)",
    ),
    ("config-key", r"Could not override '(?P<names>[^']+)'"),
    ("config-key", r"Key '(?P<names>[^']+)' not in '(?P<symbol>\w+)'"),
    ("config-value", r"Missing mandatory value: (?P<names>[\w.]+)"),
    ("file", r"(?P<names>[\w.+-]+\.so[\w.]*): cannot open shared object file"),
    ("file", r"Cannot find primary config '(?P<names>[^']+)'"),
    ("file", r"No such file or directory: '(?P<names>[^']+)'"),
    ("file", r"File (?P<names>\S+\.\w{1,8}) (?:is |was )?(?:not found|does not exist|not exist)\b"),
    ("file", r"(?:can't open file|Not a directory:|Is a directory:) '(?P<names>[^']+)'"),
    ("undefined-name", r"name '(?P<names>\w+)' is not defined|local variable '(?P<several>\w+)'"),
    ("unpacking", r"values to unpack \(expected (?P<wanted>[^,)]+)(?:, got (?P<found>\d+))?\)"),
    (
        "index",
        r"index (?P<found>-?\d+) is out of bounds for (?:dimension|axis) (?P<names>\d+) with size (?P<wanted>\d+)",
    ),
    (
        "dimension",
        r"Dimension out of range \(expected to be in range of \[-(?P<wanted>\d+), -?\d+\], but got (?P<found>-?\d+)\)",
    ),
    ("validation", r"Validation error for field '(?P<names>\w+)'"),
    ("validation", r"\d+ validation errors? for (?P<symbol>\w+)"),
    ("shape", r"Expected size (?P<wanted>\d+) but got size (?P<found>\d+)"),
    ("shape", r"could not be broadcast together with shapes (?P<found>\([\d,]*\)) (?P<wanted>\([\d,]*\))"),
    ("shape", r"mat1 and mat2 shapes cannot be multiplied \((?P<found>[\dx]+) and (?P<wanted>[\dx]+)\)"),
    ("shape", r"size of tensor a \((?P<found>\d+)\) must match the size of tensor b \((?P<wanted>\d+)\)"),
    ("shape", r"size of the tensor \((?P<wanted>\d+)\) must match the existing size \((?P<found>\d+)\)"),
    (
        "shape",
        r"tensor of shape (?P<found>\[[\d, ]*\]) cannot be broadcast to .*? of shape (?P<wanted>\[[\d, ]*\])",
    ),
    ("shape", r"The shape of the mask (?P<found>\[[\d, ]*\]) .*? the indexed tensor (?P<wanted>\[[\d, ]*\])"),
    ("shape", r"Tensors must have same number of dimensions: got (?P<found>\d+) and (?P<wanted>\d+)"),
    (
        "shape",
        rf"size mismatch for (?P<names>[\w.]+): .*?(?P<found>{_SIZE}) .*? model is (?P<wanted>{_SIZE})",
    ),
    (
        "shape",
        rf"ize mismatch between saved (?P<found>{_SIZE}) and current:? (?P<wanted>{_SIZE})(?: for (?P<names>[\w.]+))?",
    ),
    ("shape", r"shape '(?P<wanted>\[[^]]*\])' is invalid for input of size (?P<found>\d+)"),
    (
        "shape",
        r"expects split_sizes to sum exactly to (?P<wanted>\d+) \(.*\), but got split_sizes=(?P<found>\[[\d, ]*\])",
    ),
    ("dtype", r"to have the same dtype, but got: (?P<found>[\w: ]+) != (?P<wanted>[\w: ]+)"),
    ("dtype", r"expected scalar type (?P<wanted>\w+) but found (?P<found>\w+)"),
    ("dtype", r"[Ff]ound dtype (?P<found>\w+) but expected (?P<wanted>\w+)"),
    ("dtype", rf"expected dtype (?P<wanted>{_DTYPE}) for \S+ but got dtype (?P<found>{_DTYPE})"),
    ("dtype", r"gradient with dtype '(?P<found>[^']+)' to a tensor with dtype '(?P<wanted>[^']+)'"),
    ("dtype", rf"must have the same dtype, but got (?P<found>{_DTYPE}) and (?P<wanted>{_DTYPE})"),
    ("dtype", r"Input type \((?P<found>[\w.]+)\) and (?:weight|bias) type \((?P<wanted>[\w.]+)\) should be the same"),
    ("dtype", r"dtypes match, got (?P<wanted>\w+) for the destination and (?P<found>\w+) for the source"),
    ("device", r"found at least two devices, (?P<found>[\w:]+) and (?P<wanted>[\w:]+?)[!.]"),
    ("device", r"Tensor on device (?P<found>[\w:]+) is not on the expected device (?P<wanted>\w+)"),
    ("hccl", r"(?:HCCL|OPS) function error: (?P<symbol>[Hh]ccl\w+).*?, error code is (?P<found>\d+)"),
    ("cuda", r"CUDA (?:driver )?error: (?P<found>.+)"),
    (
        "collective",
        rf"mismatch between collectives on ranks\. Rank (?P<wanted>{_COLLECTIVE}).*? Rank (?P<found>{_COLLECTIVE})",
    ),
    ("value", r"ValueError: (?P<names>.+) is not in (?:list|deque|tuple)$"),
    ("none", r"unsupported operand type\(s\) for (?P<wanted>\S+?)=?: '(?P<found>NoneType)' and '(?!NoneType)"),
    ("none", r"unsupported operand type\(s\) for (?P<wanted>\S+?)=?: '(?!NoneType).*'NoneType'"),
    ("none", r"unsupported operand type\(s\) for .*'NoneType'|not supported between instances of .*'NoneType'"),
    ("none", r"TypeError: .*\b(?:must be|expected|only concatenate) .*(?:not |got )\"?'?NoneType"),
    (
        "argument-type",
        rf"(?P<symbol>{DOTTED})\(\):? argument {_ITS_NAME}(?: \(position \d+\))? must be (?P<wanted>[\w. ]+), "
        r"not (?P<found>[\w.]+)",
    ),
    ("type", r"unsupported operand type\(s\) for \S+ '(?P<found>[\w.]+)' and '(?P<wanted>[\w.]+)'"),
    ("type", r"can't multiply (?P<wanted>sequence) by non-int of type '(?P<found>[\w.]+)'"),
    ("type", r"not supported between instances of '(?P<found>[\w.]+)' and '(?P<wanted>[\w.]+)'"),
    ("type", r"can only (?:concatenate|extend \w+ with|append) (?P<wanted>\w+) \(not \"(?P<found>[\w.]+)\"\)"),
    ("type", r"(?P<wanted>list indices|string indices|tuple indices) must be .*?, not '?(?P<found>[\w.]+)"),
    ("type", r"argument of type '(?P<found>[\w.]+)' is not (?P<wanted>iterable)"),
    ("type", r"'(?P<found>[\w.]+)' object is not (?P<wanted>callable|subscriptable|iterable|a mapping)"),
)
_PATTERNS = tuple((matter, re.compile(pattern)) for matter, pattern in _SHAPES)
_KEY = re.compile(r"KeyError: (?P<quote>['\"]?)(?P<name>.+?)(?P=quote)$")
_FIELD = re.compile(r"^(?P<field>[\w.]+(?: -> [\w.]+)*)$")
_REFUSAL = re.compile(
    r"^\s+(?:Value error, |Assertion failed, )?(?P<words>.+?)"
    r"(?: \[type=(?:(?:literal_error|\w+_type), input_value=(?P<given>'[^']{1,40}'|[\w.]+|\[[^]]{0,40}\]),)?.*"
    r"| \(type=[^()]*\))?$"
)
_BARE_REFUSAL = re.compile(r"^(?P<words>\S.* \S+?)(?: \(type=[^()]*\)| \[type=.*)$")
"""The same where pasted text has lost its indentation: pydantic names the kind of error behind it."""
_FULL_KEY = re.compile(r"^\s*full_key: (?P<key>\S+)")


_OF_KERNEL = re.compile(r"\bCompilationError: at \d+:\d+:")


_OF_FIELDS = re.compile(r"\b\d+ validation errors? for \w+")


def is_of_fields(line: str) -> bool:
    """Whether a message of pydantic follows, which has some lines for each field that is refused."""
    return _OF_FIELDS.search(line) is not None


def is_of_kernel(line: str) -> bool:
    """Whether a message quotes the source of a kernel of Triton that cannot be compiled, before it says why."""
    return _OF_KERNEL.search(line) is not None


_WORD = re.compile(r"[A-Za-z]{2,}")
_FEWEST_WORDS = 4


def has_words(text: str) -> bool:
    """Whether a text has enough words to be understood alone, so that it is no mere name or key."""
    return len(_WORD.findall(text)) >= _FEWEST_WORDS


def is_key(text: str) -> bool:
    """Whether what a KeyError tells is a key, as `'gate_up_proj'` is, and no sentence: `"Invalid keys in …"`."""
    return " " not in text or not has_words(text)


def parse_message(lines: Sequence[str]) -> MessageParts | None:
    """Parse a message, whose first line begins with the exception's name; None for a message of no known form.

    A message may carry another one. `RuntimeError: Failed to import transformers.x because of the following error (look
    up to see its traceback):` has what matters on its next line.
    """
    if len(lines) > 1 and lines[0].rstrip().endswith(":") and lines[1].lstrip()[:1] == "'":
        # A terminal has wrapped it: `Bed.__init__() missing 2 required positional arguments:` / `'soil' and 'depth'`.
        lines = [f"{lines[0].rstrip()} {lines[1].strip()}", *lines[2:]]
    if len(lines) > 1 and _BROKEN_IMPORT.search(lines[0]) and lines[1].lstrip().startswith("from '"):
        lines = [f"{lines[0].rstrip()} {lines[1].strip()}", *lines[2:]]
    for line in lines:
        for matter, pattern in _PATTERNS:
            found = pattern.search(line)
            if found is not None:
                return _parts_of(matter, found.groupdict(), lines)
        key = _KEY.search(line.rstrip())
        if key is not None and is_key(key["name"]):
            return MessageParts("key", names=(key["name"],))
    if len(lines) > 1 and lines[1].strip() and not lines[0].rstrip().endswith((":", ".")):
        whole = f"{lines[0].rstrip()} {lines[1].strip()}"  # A message that somebody has broken over two lines.
        for matter, pattern in _PATTERNS:
            if (found := pattern.search(whole)) is not None:
                return _parts_of(matter, found.groupdict(), lines)
    # NCCL prints the event behind its own name for it: `ncclInternalError: Internal check failed.`, `Last error:`,
    # event.
    last = next((at for at, line in enumerate(lines) if line.strip() == "Last error:"), len(lines))
    said = [line.strip() for line in lines[last + 1 :] if line.strip()]
    return MessageParts("nccl", found=said[0]) if said else None


_BROKEN_IMPORT = re.compile(rf"cannot import name '{NAME}'\s*$")


def is_about_none(line: str) -> bool:
    """Whether a message says that a value is None where code needs another."""
    found = next((matter for matter, pattern in _PATTERNS if pattern.search(line)), None)
    return found == "none"


# Messages of Python that only one exception has. Messages of other forms come with several exceptions.
_RAISED_AS: tuple[tuple[str, str], ...] = (
    ("ImportError", r"cannot import name "),
    ("ModuleNotFoundError", r"No module named '"),
    ("AttributeError", r"\S+ (?:object )?has no attribute '|module '\S+' has no attribute '"),
    (
        "TypeError",
        rf"{_CALL} (?:got (?:an unexpected|some positional-only|multiple values)|missing \d+ required |takes )",
    ),
    (
        "TypeError",
        r"'\S+' object is not (?:callable|subscriptable|iterable|a mapping)|unsupported operand type\(s\) for ",
    ),
    ("TypeError", r"cannot unpack non-iterable |'\S+' not supported between instances of "),
    ("AttributeError", r"Can't get attribute '\w+'"),
    ("NameError", r"name '\w+' is not defined"),
    ("UnboundLocalError", r"(?:cannot access )?local variable '\w+' "),
    ("ValueError", r"(?:not enough|too many) values to unpack \("),
    ("IndexError", r"(?:list|tuple|string|pop) index out of range$|index -?\d+ is out of bounds for "),
    ("FileNotFoundError", r"\[Errno 2\] No such file or directory: "),
)
_SAID_BY = tuple((name, re.compile(pattern)) for name, pattern in _RAISED_AS)
MESSAGE_WORDS = (
    *("cannot import name ", "no module named '", " has no attribute '", " got an unexpected "),
    *(" got multiple values ", " got some positional-only ", " required positional argument"),
    *(" required keyword-only argument", " positional argument but ", " positional arguments but "),
    *("' object is not ", "unsupported operand type(s)", "cannot unpack non-iterable "),
    *(" not supported between instances of ", "' is not defined", "local variable '", " values to unpack ("),
    "can't get attribute '",
    *(" index out of range", " is out of bounds for ", "no such file or directory: '"),
)
"""Each message in `_RAISED_AS` holds one of these words, in lower case."""


def raised_as(message: str) -> str:
    """The exception that has such a message, for a message printed without its name; "" where that is not known.

    'AdamW' object has no attribute 'train' ▶ AttributeError
    """
    return next((name for name, pattern in _SAID_BY if pattern.match(message)), "")


def _parts_of(matter: Matter, parts: dict[str, str | None], lines: Sequence[str]) -> MessageParts:
    def part(name: str) -> str:
        return (parts.get(name) or "").strip()

    symbol = part("symbol") or ".".join(filter(None, (part("module"), part("last"))))
    if matter == "collective":
        one, other = (_collective(part(name)) for name in ("wanted", "found"))
        return MessageParts(matter, wanted=one, found=other)
    several = part("several")
    names = tuple(re.findall(r"'([^']+)'", several)) or tuple(filter(None, (part("names") or several,)))
    # Of `--kl 0.1 --x 3` only the names of the options.
    names = tuple(name for name in names if name.startswith("--")) or names
    if matter == "validation":
        # huggingface_hub names the field on this line, pydantic on the next one. The message is below, indented.
        below = [line for line in lines if line.strip()][1:]
        refused = _refused(below)
        words = refused[0][1] if refused else ""
        if not refused:
            words = next((said["words"] for line in below[:2] if (said := _REFUSAL.match(line)) is not None), "")
        names = names or tuple(dict.fromkeys(field for field, why in refused if why == words))
        others: dict[str, list[str]] = {}
        for field, why in refused:
            if why != words and field not in names:
                others.setdefault(why, []).append(field)
        words = "; ".join((words, *(f"{', '.join(fields)}: {why}" for why, fields in others.items())))
        return MessageParts(matter, symbol, names, found=words)
    if matter in ("config-key", "config-value"):
        full = next((key["key"] for line in lines if (key := _FULL_KEY.match(line)) is not None), "")
        # Of an interpolation omegaconf names both: `full_key` is the key that holds `${…}`.
        missing = part("referred") or (names[0] if matter == "config-value" and names else "")
        if missing:
            return MessageParts(matter, names=(missing,), by=full if full != missing else "")
        names = (full,) if full else names
    # `module 'a' has no attribute 'b'` hides no other failure, as `cannot import name` may.
    imported = matter == "missing-name" and part("module") and lines and "cannot import name" in lines[0]
    near = _NEAR.search(lines[0]) if imported else None
    like = f"{part('module')}.{near['name']}" if near is not None else ""
    return MessageParts(matter, symbol, names, part("wanted"), part("found"), part("file"), like)


def _refused(lines: Sequence[str]) -> list[tuple[str, str]]:
    """The fields that pydantic refuses, each with the reason, which is below it. Its first version writes a field of
    another as `zero -> stage`."""
    found = []
    for line, below in pairwise(lines):
        field = _FIELD.match(line)
        said = (_REFUSAL.match(below) or _BARE_REFUSAL.match(below)) if field is not None else None
        if field is not None and said is not None:
            given = said.groupdict().get("given")
            words = f"{said['words']}, not {given}" if given else said["words"]
            found.append((field["field"].replace(" -> ", "."), words))
    return found


_NEAR = re.compile(rf"Did you mean: '(?P<name>{NAME})'")
_RUNS = re.compile(r"(?P<rank>\d+) .*OpType=(?P<operation>\w+)(?:, ?TensorShape=\[(?P<shape>[^]]*)\])?")


def _collective(text: str) -> str:
    """`1 is running collective: …OpType=ALLREDUCE, TensorShape=[3]` ▶ `rank 1: ALLREDUCE [3]`."""
    found = _RUNS.match(text)
    if found is None:
        return text
    shape = f" [{found['shape']}]" if found["shape"] is not None else ""
    return f"rank {found['rank']}: {found['operation']}{shape}"
