"""Which argument a compiled function of torch refuses.

Its message lists the types that it was given, and the signatures that it has:

conv2d() received an invalid combination of arguments - got (DataContainer, Parameter, NoneType), but expected one of:
 * (Tensor input, Tensor weight, Tensor bias, tuple of ints stride)     ▶ `input` is a DataContainer, no Tensor
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from patcher.diagnose.exception_message import MessageParts

_GIVEN = re.compile(
    r"(?P<name>\w+)\(\):? received an invalid combination of arguments - got \((?P<given>.*)\), but expected"
)
_SIGNATURE = re.compile(r"\s*\* \((?P<takes>.*)\)\s*$")
_APART = re.compile(r", (?![^(]*\))")
"""The comma between two types; one of `tuple of (int, int)` stands in brackets."""
_ACCEPTED = {
    "int": frozenset({"int"}),
    "float": frozenset({"int", "float"}),
    "Number": frozenset({"int", "float", "bool"}),
    "Scalar": frozenset({"int", "float", "bool"}),
    "torch.dtype": frozenset({"torch.dtype"}),
    "torch.device": frozenset({"torch.device", "str", "int"}),
}
_SEQUENCES = frozenset({"tuple", "list", "Size", "torch.Size", "int"})


def refused_argument(lines: Sequence[str]) -> MessageParts | None:
    """The only argument that a signature refuses; None where several fit as badly, and for any other message."""
    found = next((one for line in lines if (one := _GIVEN.search(line)) is not None), None)
    if found is None:
        return None
    given = [kind for kind in _APART.split(found["given"].rstrip(", ")) if "=" not in kind]
    refused = set()
    for line in lines:
        signature = _SIGNATURE.match(line)
        takes = _APART.split(signature["takes"].replace("*, ", "")) if signature is not None else []
        wrong = [
            (name, wanted, kind)
            for one, kind in zip(takes, given, strict=False)
            if not _accepts(wanted := one.rpartition(" ")[0], kind) and (name := one.rpartition(" ")[2])
        ]
        if len(takes) >= len(given) and len(wrong) == 1:
            refused.add(wrong[0])
    if len(refused) != 1:
        return None
    name, wanted, kind = refused.pop()
    return MessageParts("argument-type", found["name"], (name,), wanted, kind)


def _accepts(wanted: str, kind: str) -> bool:
    """Whether a function that takes `wanted` there may take `kind`, as far as the names tell."""
    if wanted == "Tensor":
        # An argument that may be left out takes None, which the signature does not tell.
        return kind.endswith(("Tensor", "Parameter", "Variable", "NoneType"))
    if wanted.startswith("tuple of "):
        return kind.startswith(("tuple", "list")) or kind in _SEQUENCES
    return kind == "NoneType" or kind == wanted or kind in _ACCEPTED.get(wanted, ())
