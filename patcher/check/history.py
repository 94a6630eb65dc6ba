"""Since when: each finding is looked for in earlier releases of the package that it is about, by bisection."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from patcher.analysis.findings import Finding, Report
from patcher.analysis.severity.rating import severity_in_place
from patcher.analysis.target import Target
from patcher.analysis.uses import Use
from patcher.check.pair import check_pair
from patcher.check.targets import Located, release_folder, symbols_of
from patcher.errors import ReleaseError
from patcher.packages.agent.folders import package_in
from patcher.packages.releases.cache import cached_sources
from patcher.worktree import files

if TYPE_CHECKING:
    from patcher.analysis.project import Project
    from patcher.analysis.symbols import Symbols


T = TypeVar("T", bound=Hashable)


@dataclass
class Bisection(Generic[T]):
    """Where each of some findings began, among `releases` (oldest first; all before the one that shows them all).

    `look` tells which of some findings a release shows; None if the release cannot be had, which passes it over.
    """

    releases: Sequence[str]
    found: AbstractSet[T]
    look: Callable[[str, AbstractSet[T]], AbstractSet[T] | None]
    target: str
    most: int = 40
    """How many looks are taken. A guess, to bound the time of one check."""
    extra: int = 8
    """How many of these look into releases that were left out, for findings that every release so far shows. A guess.
    """
    also: AbstractSet[T] = frozenset()
    """Findings of less interest: they are looked for where a release is looked at anyway."""
    _shown: dict[T, dict[int, bool]] = field(default_factory=dict)
    _lost: set[int] = field(default_factory=set)
    _looks: int = 0

    def run(self, known_good: Sequence[str] = ()) -> dict[T, str | None]:
        """For each finding the first release of the last unbroken run of releases that show it.

        None where every release looked at shows it, and where the looks did not suffice. `known_good` are looked at
        first; they need not be right.
        """
        self._shown = {one: {} for one in self.found | self.also}
        likely = [self.releases.index(release) for release in known_good if release in self.releases]
        for index in likely:
            self._try(index, self.found)
        self._while_never_good(self._backwards(), self.most)
        self._halve()
        self._while_never_good(self._gaps(max(likely, default=len(self.releases))), self._looks + self.extra)
        self._halve()
        return {one: self._since(one) for one in self._shown}

    def _halve(self) -> None:
        while self._looks < self.most and (step := self._next()) is not None:
            self._try(*step)

    def _while_never_good(self, steps: Iterator[int], most: int) -> None:
        """Look at more releases while there is a finding that every release so far shows."""
        for step in steps:
            left = {one for one in self.found if all(self._shown[one].values())}
            if self._looks >= min(most, self.most) or not left:
                return
            self._try(step, left)

    def _try(self, index: int, wanted: AbstractSet[T]) -> None:
        """Look at a release for those findings that it has not been looked at for."""
        wanted = {one for one in wanted if index not in self._shown[one]}
        if index in self._lost or not wanted:
            return
        wanted |= {one for one in self.also if index not in self._shown[one] and self._narrows(one, index)}
        self._looks += 1
        shown = self.look(self.releases[index], wanted)
        if shown is None:
            self._lost.add(index)
            return
        for one in wanted:
            self._shown[one][index] = one in shown

    @property
    def _seen(self) -> set[int]:
        return self._lost.union(*self._shown.values())

    def _backwards(self) -> Iterator[int]:
        """Ever farther back from the oldest release looked at so far, else from the target: 2, 4, 8, … releases."""
        # Releases close to the target are the likeliest; doubling the step reaches the oldest in a few looks.
        start, back = min(self._seen, default=len(self.releases)), 2
        while back <= start:
            yield start - back
            back *= 2
        if start:
            yield 0

    def _gaps(self, end: int) -> Iterator[int]:
        """The middles of the widest stretches that nothing was looked at in: before `end`, and then after it."""
        for first, last in ((-1, end), (end, len(self.releases))):
            while True:
                marks = sorted({first, *(at for at in self._seen if first < at < last), last})
                width, low = max(((after - before, before) for before, after in pairwise(marks)), default=(0, 0))
                if width < 2:
                    break
                yield low + width // 2

    def _open(self, one: T) -> list[int]:
        """The releases among which the finding began, the first that is known to show it left out."""
        low, high = self._bounds(one)
        return [index for index in range(low + 1, high) if index not in self._lost] if low >= 0 else []

    def _bounds(self, one: T) -> tuple[int, int]:
        """The last release seen without the finding (-1: none), and the first after it that shows it."""
        low = max((index for index, shows in self._shown[one].items() if not shows), default=-1)
        return low, min((index for index in self._shown[one] if index > low), default=len(self.releases))

    def _narrows(self, one: T, index: int) -> bool:
        """Whether a release can tell more of when a finding began."""
        low, high = self._bounds(one)
        return low < index < high

    def _next(self) -> tuple[int, set[T]] | None:
        """The release that halves the most open stretches, and the findings whose stretches it halves."""
        stretches = {one: indexes for one in self.found if (indexes := self._open(one))}
        if not stretches:
            return None
        middles = Counter(indexes[len(indexes) // 2] for indexes in stretches.values())
        index = min(middles, key=lambda at: (-middles[at], at))
        return index, {one for one, indexes in stretches.items() if index in indexes}

    def _since(self, one: T) -> str | None:
        low, high = self._bounds(one)
        if low < 0 or self._open(one):
            return None
        return self.target if high == len(self.releases) else self.releases[high]


Place: TypeAlias = "tuple[str, int, str]"
"""File, line and symbol: what a finding is about, whatever kind it is of on another release."""
_REACH = 16
"""How many releases before the one that the tree was made for are looked at. A guess: a tree uses names that were there
when it was written, so that older releases have nothing to tell."""
MOST_FETCHED = 12
"""How many releases of one package are fetched to find out since when. A guess: halving 16 releases takes four looks
for one finding, and findings share looks."""


@dataclass(frozen=True, slots=True)
class History:
    """Where to look for earlier findings."""

    project: Project
    target: Target
    baseline: Target | None
    root: Path
    unreachable: list[str] = field(default_factory=list)
    """Packages whose releases, or one of them, could not be fetched: what is found later may say more."""


def with_since(report: Report, located: Iterable[Located], history: History) -> Report:
    """The report with `since`. What cannot be found out stays None."""
    findings = report.findings
    for one in located:
        module = one.asked.module
        about = [finding for finding in findings if _module(finding, report) == module]
        if one.package is None or not about:
            continue
        since = _of_package(report, about, one, history)
        findings = tuple(_with(finding, since) if finding in about else finding for finding in findings)
    return replace(report, findings=findings)


def _with(finding: Finding, since: Mapping[Place, str | None]) -> Finding:
    """A variable that an earlier release knew was removed; one that none knew is unknown."""
    first = since[_place(finding)]
    # A release before `first` read the variable, so it existed once.
    removed = finding.kind == "env-unknown" and first is not None
    return replace(finding, since=first, kind="env-removed" if removed else finding.kind)


def _of_package(report: Report, about: list[Finding], one: Located, history: History) -> dict[Place, str | None]:
    # Guarded findings are of little interest: no release is opened for them alone.
    live = {_place(finding) for finding in about if finding.severity != "guarded"}
    guarded = {_place(finding) for finding in about} - live
    target = one.version.partition("+")[0]
    releases = earlier_releases(one.asked.known_as, target, unreachable=history.unreachable)
    earlier = _EarlierReleases(report, one, history, about)
    known = _hints(one, history, releases)
    first = min((releases.index(version) for version in known if version in releases), default=len(releases) - _REACH)
    releases = releases[max(0, first - _REACH) :]
    return Bisection(releases, live, earlier.look, target or one.shown, also=guarded).run(known)


class _EarlierReleases:
    """Which of the findings earlier releases of one package show."""

    def __init__(self, report: Report, one: Located, history: History, about: Iterable[Finding]) -> None:
        self.report, self.one, self.history = report, one, history
        self.found = {_place(finding): finding for finding in about}
        self._fetched = 0
        self._offline = False

    def look(self, version: str, wanted: AbstractSet[Place]) -> AbstractSet[Place] | None:
        """What a release shows, fetched if that is allowed; None if it is not to be had."""
        package = self._package(version)
        if package is None:
            return None
        symbols = symbols_of(package)
        again = check_pair(
            self.history.project,
            self._then(version, symbols),
            verl=self.report.verl,
            baseline=self.history.baseline,
            files=(),
            further=self._uses(wanted),
            weigh=severity_in_place,
        )
        symbols.modules.keep()
        shown = {place for one in again.findings if (place := _place(one)) in wanted and self._counts(one, place)}
        return shown | {place for place in wanted & self._missing(again.unrelated) if symbols.has(place[2]) is False}

    def _package(self, version: str) -> Path | None:
        name, module = self.one.asked.known_as, self.one.asked.module
        folder = cached_sources(name, version)
        # One failed transfer ends all fetching: an index that cannot be reached would cost a time-out for each release.
        if folder is None and not self._offline and self._fetched < MOST_FETCHED:
            try:
                folder = release_folder(name, version)
            except ReleaseError:
                self._offline = True
                self.history.unreachable.append(name)
                return None
            self._fetched += 1
        return package_in(folder, module) if folder is not None else None

    def _then(self, version: str, symbols: Symbols) -> Target:
        module, target = self.one.asked.module, self.history.target
        symbols.newest = target.packages[module].newest
        return replace(
            target,
            against={**target.against, module: version},
            packages={**target.packages, module: symbols},
            versions={**target.versions, self.one.asked.known_as: version},
            moves=False,
        )

    def _uses(self, wanted: AbstractSet[Place]) -> list[Use]:
        """The broken uses of the functions that the findings are in."""
        places = {(self.found[place].file, self.found[place].function) for place in wanted}
        return [use for use, _ in self.report.broken if (use.file, use.context.function) in places]

    def _missing(self, uses: Iterable[Use]) -> set[Place]:
        """What the target lacks for some of the broken uses.

        Of `AsyncLLM.from_vllm_config` vLLM 0.6.3 shows nothing, as it has no `vllm.v1`. That 0.7.3 lacks the name is
        not "since 0.6.4", where the class came: the name was never there."""
        among = {id(use) for use in uses}
        broken = ((use, found.problems) for use, found in self.report.broken if id(use) in among)
        found = ((use.file, problem) for use, problems in broken for problem in problems)
        return {(file, one.line, one.symbol) for file, one in found if one.kind.endswith("-removed")}

    def _counts(self, then: Finding, place: Place) -> bool:
        """Whether a finding of then counts: a finding that is not guarded now counts only where it was not guarded
        then."""
        return then.severity != "guarded" or self.found[place].severity == "guarded"


def _place(finding: Finding) -> Place:
    return (finding.file, finding.line, finding.symbol)


def _module(finding: Finding, report: Report) -> str:
    """The package whose releases tell since when: of variables and flags vLLM, if it is checked against.

    A comparison of versions as text is wrong on every release, and what a module refuses is the tree's own doing.
    """
    if finding.kind in ("version-compared-as-text", "import-raises"):
        return ""
    if finding.package in report.against:
        return finding.package
    # Variables and flags are named after no module: `VLLM_USE_V1`, `--enable-x`.
    engine = finding.kind in ("env-removed", "env-unknown", "flag-removed")
    return "vllm" if engine and "vllm" in report.against else ""


def earlier_releases(name: str, target: str, *, fetch: bool = True, unreachable: list[str] | None = None) -> list[str]:
    """The final releases before a version, oldest first; all of them where the version is not known.

    The name is added to `unreachable` where only what is on this machine could be asked."""
    from packaging.version import InvalidVersion, Version

    from patcher.packages.releases import versions

    try:
        every = versions(name, offline=not fetch)
    except ReleaseError:
        if unreachable is not None:
            unreachable.append(name)
        try:
            every = versions(name, offline=True)
        except ReleaseError:
            return []
    numbered = sorted({Version(text): text for text in every}.items())
    try:
        before = Version(target)
    except InvalidVersion:
        before = None
    final = [(number, text) for number, text in numbered if not number.is_prerelease]
    return [text for number, text in final if before is None or number < before]


def _hints(one: Located, history: History, releases: Sequence[str]) -> list[str]:
    """Releases that the tree may well work with: the baseline, and the newest that its own requirements allow."""
    module = one.asked.module
    known = history.baseline.against.get(module) if history.baseline is not None else None
    allowed = newest_allowed(history.root, one.asked.known_as, releases)
    return [version for version in (known, allowed) if version is not None]


def newest_allowed(root: Path, name: str, releases: Sequence[str]) -> str | None:
    """The newest of `releases` that the tree's metadata or setup.py allows, where they set a limit."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    # `vllm>=0.8,<0.9` and `vllm[extra] (>=0.8)`, in metadata and in the source of setup.py alike.
    pattern = re.compile(rf"(?<![\w-]){re.escape(name)}\s*(?:\[[^\]]*\]\s*)?((?:[<>=!~]=?\s*[\w.*]+\s*,?\s*)+)")
    for file in (*sorted(root.glob("verl-*.dist-info/METADATA")), root / "setup.py", root / "pyproject.toml"):
        try:
            text = files.read_text(files.inside(root, file), files.SETTINGS_BYTES, errors="replace")
        except OSError:
            continue
        for found in pattern.findall(text):
            try:
                allowed = list(SpecifierSet(found.strip().strip(",")).filter(releases))
            except InvalidSpecifier:
                continue
            # A requirement without an upper limit says nothing of what the tree was made for.
            if allowed and allowed[-1] != releases[-1]:
                return allowed[-1]
    return None
