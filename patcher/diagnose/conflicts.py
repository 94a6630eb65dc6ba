"""Which two wishes exclude each other, in what pip and uv print where no set of versions fits.

The conflict is caused by:
    The user requested torch==2.1.1                    ◀ these two
    accelerate 0.34.2 depends on torch>=1.10.0
    vllm 0.5.4 depends on torch==2.4.0                 ◀

Because a==1 depends on c==2 and you require c==3, we can conclude that …
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
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


_OF_UV = re.compile(
    r"(?:you require|your project depends on|(?P<who>[\w.-]+(?:\[[^\]]*\])?(?:[=<>!~]=?[\w.*+!,<>=~]+)?) depends on) "
    r"(?P<wanted>[\w.-]+(?:\[[^\]]*\])?)(?:\{[^}]*\})?(?P<versions>[=<>!~]=?[\w.*+!<>=~]+(?:,[\w.*+!<>=~]+)*)?"
)
_SAYS = re.compile(r"(?:╰─▶ )?(?:And )?[Bb]ecause ")
_UNKNOWN = re.compile(r"[Bb]ecause (?:there is no version of (?P<one>[\w.-]+)|(?P<other>[\w.-]+) was not found in)")


def conflict_in(lines: Iterable[str]) -> Phrase | None:
    """The first two wishes for one package that no version can fulfil; who asks for the package that uv does not find;
    None where the lines hold neither."""
    lines = list(lines)
    said = _sentences(lines)
    wishes = [*_wishes(lines), *_wishes_of_uv(said)]
    if (unknown := _UNKNOWN.search(said)) is not None:
        name = canonicalize_name(unknown["one"] or unknown["other"])
        asks = next((one for one in wishes if canonicalize_name(one[1].name) == name), None)
        return phrase("{one} asks for {wanted}", one=asks[0], wanted=str(asks[1])) if asks is not None else None
    for (one, wanted), (other, also) in combinations(wishes, 2):
        same = canonicalize_name(wanted.name) == canonicalize_name(also.name)
        if same and _exclude(wanted.specifier, also.specifier):
            text = "{one} asks for {wanted}, and {other} for {also}"
            return phrase(text, one=one, wanted=str(wanted), other=other, also=str(also))
    return None


def _sentences(lines: Sequence[str]) -> str:
    """What uv says, from the first line that gives a reason, without its breaks of lines."""
    begin = next((at for at, line in enumerate(lines) if _SAYS.match(line.strip())), len(lines))
    return " ".join(line.strip() for line in lines[begin:])


def _wishes_of_uv(said: str) -> Iterator[tuple[Phrase, Requirement]]:
    for found in _OF_UV.finditer(said):
        try:
            wanted = Requirement(f"{found['wanted']}{(found['versions'] or '').rstrip(',.')}")
        except InvalidRequirement:
            continue
        yield phrase("{name}", name=found["who"]) if found["who"] else phrase("the command"), wanted


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
        above = bound.base_version if bound.is_devrelease or bound.is_postrelease else bound.public
        points += [bound, Version(f"{above}.post999"), *_neighbours(bound)]
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
