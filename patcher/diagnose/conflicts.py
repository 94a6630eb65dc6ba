"""Which two wishes exclude each other, in the list that pip prints where no set of versions fits.

The conflict is caused by:
    The user requested torch==2.1.1                    ◀ these two
    accelerate 0.34.2 depends on torch>=1.10.0
    vllm 0.5.4 depends on torch==2.4.0                 ◀
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from patcher.i18n import Phrase, phrase

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

_WISH = re.compile(
    r"^\s*(?:(?P<who>\S+ \d\S*) depends on|The user requested(?: \(constraint\))?) (?P<wanted>[\w.-]+.*)$"
)


def conflict_in(lines: Iterable[str]) -> Phrase | None:
    """The first two wishes for one package that no version can fulfil; None where the lines hold none."""
    for (one, wanted), (other, also) in combinations(_wishes(lines), 2):
        same = canonicalize_name(wanted.name) == canonicalize_name(also.name)
        if same and _exclude(wanted.specifier, also.specifier):
            text = "{one} asks for {wanted}, and {other} for {also}"
            return phrase(text, one=one, wanted=str(wanted), other=other, also=str(also))
    return None


def _wishes(lines: Iterable[str]) -> Iterator[tuple[Phrase, Requirement]]:
    for line in lines:
        if (found := _WISH.match(line)) is not None:
            try:
                wanted = Requirement(found["wanted"])
            except InvalidRequirement:
                continue
            yield phrase("{name}", name=found["who"]) if found["who"] else phrase("the command"), wanted


def _exclude(one: SpecifierSet, other: SpecifierSet) -> bool:
    """Whether no version is in both. Only bounds, and what is right above and below them, need to be tried."""
    points = [Version("0")]
    for specifier in (*one, *other):
        try:
            bound = Version(specifier.version.removesuffix(".*"))
        except InvalidVersion:
            return False
        points += [bound, Version(f"{bound.public}.post999"), *_neighbours(bound)]
    both = one & other
    return not any(both.contains(point, prereleases=True) for point in points)


def _neighbours(bound: Version) -> Iterator[Version]:
    """A release right above and one right below: of 2.4.0 2.4.1 and 2.3.999."""
    *first, last = bound.release
    yield Version(".".join(map(str, (*first, last + 1))))
    for at in range(len(bound.release) - 1, -1, -1):
        if bound.release[at]:
            yield Version(".".join(map(str, (*bound.release[:at], bound.release[at] - 1, 999))))
            return
