"""`python -m bench.zero_day`: a release comes out, and no record knows it yet. What do the drafts of `check` repair?

For each release of vLLM, the shipped records whose range begins there or later are hidden, and the others are applied,
as a user's tree has them. What breaks then is held against the drafts that `check --draft` would make on that day, and
each draft against the record that was written later.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from patcher.analysis.findings import Finding
from patcher.analysis.project import Project
from patcher.analysis.symbols import Symbols
from patcher.analysis.target import Target
from patcher.check.drafts.drafting import draft_records
from patcher.check.drafts.inputs import Draft, DraftInputs, Releases
from patcher.check.matrix import wanted_releases
from patcher.check.pair import check_pair
from patcher.check.repairs import check_with_records, tree_with_records
from patcher.packages.releases import sources, versions, wheel
from patcher.plan.inputs import belongs
from patcher.records.load import load
from patcher.records.model import Record
from patcher.rewrite.edits import Edit

VERL = "0.6.0,0.6.1,0.7.0,0.7.1,0.8.0,0.9.0,0.9.1"
VLLM = ">=0.11.1,<=0.33.0"
KEYS = ("file", "call", "old", "new", "value")
"""What two edits must have in common to be the same: the place and the change, not the anchor."""


@dataclass(frozen=True, slots=True)
class Day:
    """One verl on the day that a vLLM came out: what broke without the later records, and what drafts repair."""

    verl: str
    vllm: str
    hidden: tuple[str, ...]
    broken: tuple[str, ...]
    """The symbols of the breaks."""
    repaired: tuple[str, ...]
    """Those of them that drafts repair."""
    alike: tuple[str, ...]
    """Drafts that make an edit of the record written later."""
    other: tuple[str, ...]
    """Drafts of the same break with other edits: to be read."""
    new: tuple[str, ...]
    """Drafts of what no record repairs either."""


def first_release(record: Record) -> Version | None:
    """The vLLM that a record's range begins with; None where it names none."""
    bounds = [
        one.version
        for one in SpecifierSet(record.when.versions.get("vllm", ""))
        if one.operator in (">=", ">", "==", "~=")
    ]
    return max((Version(one.removesuffix(".*")) for one in bounds), default=None)


@cache
def symbols(version: str) -> Symbols:
    return Symbols(sources("vllm", version) / "vllm")


def breaks_of(verl: str, vllm: str) -> frozenset[tuple[str, str, str, str]]:
    """What breaks as the releases are."""
    target = Target({"vllm": vllm}, {"vllm": symbols(vllm)}, {"vllm": vllm})
    return frozenset(one.key for one in check_pair(Project(wheel("verl", verl)), target, verl=verl).of("break"))


def day(verl: str, vllm: str, records: Sequence[Record], releases: Sequence[str]) -> Day | None:
    """None where nothing breaks anew that no earlier record repairs.

    What the release before breaks too is no news of that day: a verl that needs a newer vLLM breaks on all older ones.
    """
    known = [one for one in records if (first := first_release(one)) is None or first < Version(vllm)]
    hidden = tuple(one.id for one in records if one not in known)
    released = Project(wheel("verl", verl))
    target = Target({"vllm": vllm}, {"vllm": symbols(vllm)}, {"vllm": vllm})
    project = tree_with_records(released, target, known, verl)
    report = check_pair(project, target, verl=verl)
    breaks = list(report.of("break"))
    before = [one for one in releases if Version(one) < Version(vllm)][-1]
    old = breaks_of(verl, before) if breaks else ()
    breaks = [one for one in breaks if one.key not in old]
    if not breaks:
        return None
    later, _ = check_with_records(released, target, records, verl)
    by_hand = {one.key: one.repaired_by for one in later.findings if one.repaired_by is not None}
    earlier = [one for one in releases if Version(one) <= Version(vllm)]  # Nothing later is known on that day.
    inputs = DraftInputs(project, target, verl, Releases({"vllm": earlier}, lambda _package, version: symbols(version)))
    drafts = draft_records(report.findings, inputs, [one.id for one in records])
    done = {_spot(one) for draft in drafts for one in draft.repairs}
    judged: dict[str, list[str]] = {"alike": [], "other": [], "new": []}
    for draft in drafts:
        judged[_judged(draft, by_hand, {one.id: one for one in records}, verl)].append(draft.id)
    return Day(
        verl,
        vllm,
        hidden,
        tuple(f"{one.file}:{one.line} {one.symbol}" for one in breaks),
        tuple(f"{one.file}:{one.line} {one.symbol}" for one in breaks if _spot(one) in done),
        **{name: tuple(found) for name, found in judged.items()},
    )


def _spot(one: Finding) -> tuple[str, int, str]:
    return one.file, one.line, one.symbol


def _judged(draft: Draft, by_hand: dict[tuple[str, str, str, str], str], records: dict[str, Record], verl: str) -> str:
    names = {by_hand[one.key] for one in draft.repairs if one.key in by_hand}
    if not names:
        return "new"
    shipped = {_change(edit) for name in names for edit in records[name].edits if belongs(verl)(edit)}
    return "alike" if any(_change(edit) in shipped for edit in draft.record.edits) else "other"


def _change(edit: Edit) -> tuple[str, ...]:
    return tuple(str(getattr(edit, key, None)) for key in KEYS)


def days(verl: Sequence[str], vllm: str) -> Iterator[Day]:
    """Release by release, so that the symbols of one are read once for all verl releases."""
    known = versions("vllm")
    releases = wanted_releases("vllm", ">=0.8", known)
    records = [one for one in load() if one.enabled]
    for release in wanted_releases("vllm", vllm, known):
        for one in verl:
            if (found := day(one, release, records, releases)) is not None:
                yield found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.zero_day", description=__doc__)
    parser.add_argument("--verl", default=VERL, help="releases of verl, by comma")
    parser.add_argument("--vllm", default=VLLM, help="a specifier")
    parser.add_argument("--json", action="store_true", help="an object a line")
    given = parser.parse_args()
    broken = repaired = alike = other = new = 0
    for one in days(given.verl.split(","), given.vllm):
        broken, repaired = broken + len(one.broken), repaired + len(one.repaired)
        alike, other, new = alike + len(one.alike), other + len(one.other), new + len(one.new)
        if given.json:
            print(json.dumps(asdict(one)), flush=True)
            continue
        print(f"verl {one.verl} vllm {one.vllm}: {len(one.repaired)} of {len(one.broken)} breaks repaired", flush=True)
        for place in one.broken:
            if place not in one.repaired:
                print(f"  left: {place}")
        for name in one.other:
            print(f"  other edits than the record's: {name}")
    share = repaired / broken if broken else 1.0
    print(f"{repaired} of {broken} breaks repaired by drafts alone ({share:.3f}, goal 0.90)", file=sys.stderr)
    print(f"drafts: {alike} make the record's edit, {other} another, {new} have no record", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
