"""What the sizes of two tensors that do not fit say of each other.

size of tensor a (9846529) must match the size of tensor b (39386113)     39386113 / 4, rounded up, is 9846529
"""

from __future__ import annotations

import re
from math import ceil, prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from patcher.diagnose.exception_message import MessageParts

_SMALLEST = 100_000
"""Elements of a piece of a parameter. Set by hand: sizes of batches, lengths and widths of layers that differ by a
factor are smaller."""
_MOST_RANKS = 4096


def ranks_apart(parts: MessageParts) -> int:
    """Over how many ranks the larger of two tensors is divided if the other is the flat piece of one; 0 where neither
    is one. What a `view` is asked of is the piece, and not the whole."""
    found, wanted = _sizes(parts.found), _sizes(parts.wanted)
    if parts.wanted.startswith("[") and prod(found) > prod(wanted):
        return 0
    if 1 not in (len(found), len(wanted)):
        return 0
    small, large = sorted((prod(found), prod(wanted)))
    ranks = round(large / small) if small >= _SMALLEST else 0
    return ranks if 2 <= ranks <= _MOST_RANKS and ceil(large / ranks) == small else 0


_MOST_GATHERED = 64


def times_gathered(parts: MessageParts) -> int:
    """How many times the elements are those that the shape asks for: 4 of `shape '[32, 64]'` and size 8192; 0 where
    they are no multiple."""
    wanted = prod(_sizes(parts.wanted)) if parts.wanted.startswith("[") and "-1" not in parts.wanted else 0
    if parts.matter != "shape" or not wanted or not parts.found.isdigit():
        return 0
    times, rest = divmod(int(parts.found), wanted)
    return times if not rest and 2 <= times <= _MOST_GATHERED else 0


def too_few_for_groups(parts: MessageParts) -> int:
    """The size of a group where the elements are fewer than that: 8 of `shape '[0, 8]' is invalid for input of size 2`;
    0 where the message is of another kind."""
    sizes = _sizes(parts.wanted)
    if parts.matter != "shape" or not parts.wanted.startswith("[") or sizes.count(0) != 1 or not parts.found.isdigit():
        return 0
    group = prod(size for size in sizes if size)
    return group if 0 < int(parts.found) < group else 0


def has_other_length(parts: MessageParts) -> bool:
    """Whether the elements are no multiple of the one length that is asked for: `'[-1, 125]'` and size 126."""
    wanted = re.fullmatch(r"\[-1, (\d+)\]", parts.wanted)
    if parts.matter != "shape" or wanted is None:
        return False
    return parts.found.isdigit() and int(wanted[1]) > 1 and int(parts.found) % int(wanted[1]) > 0


_WIDTH, _MULTIPLE = 512, 64
"""The least width of a model, and what widths are multiples of. Set by hand: numbers of samples and tokens are smaller,
or odd."""


def width_of_empty(parts: MessageParts) -> int:
    """The size that a tensor of size 0 meets, where it is a width of a model, as 4096 and 14336 are; else 0."""
    other = next((one for one in (parts.found, parts.wanted) if one.isdigit() and int(one)), "0")
    return int(other) if int(other) >= _WIDTH and int(other) % _MULTIPLE == 0 else 0


_ROWS = 64
"""The fewest rows that a weight has whose values lie in one row. Set by hand."""


def is_packed(parts: MessageParts) -> bool:
    """Whether the second of two matrices that are multiplied has all values of a weight in one row, two in each byte:
    6x8192 and 1x18874368, where 18874368 * 2 is 8192 * 4608."""
    one, other = re.fullmatch(r"\d+x(\d+)", parts.found), re.fullmatch(r"1x(\d+)", parts.wanted)
    if parts.matter != "shape" or one is None or other is None:
        return False
    rows, rest = divmod(2 * int(other[1]), max(int(one[1]), 1))
    return not rest and rows >= _ROWS


def is_half_as_wide(parts: MessageParts) -> bool:
    """Whether a matrix is half as wide as the room for it, as one with two values of 4 bits in each byte is."""
    sizes = sorted(int(one) for one in (parts.found, parts.wanted) if one.isdigit())
    return parts.matter == "shape" and len(sizes) == 2 and sizes[1] == 2 * sizes[0] and sizes[0] % _MULTIPLE == 0


def _sizes(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]
