"""Every pair of the matrix, judged by two processes."""

from __future__ import annotations

import shlex
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from patcher.analysis.findings import Finding
from patcher.analysis.kept_readings import KeptReadings
from patcher.analysis.project import Project, ReadingCache
from patcher.analysis.symbols import Symbols
from patcher.analysis.target import Target
from patcher.check.entries import open_project
from patcher.check.matrix import (
    Cell,
    Matrix,
    Missing,
    cell_of,
    fetch_sources,
    known_to_records,
    parse_against,
    wanted_releases,
    with_since,
)
from patcher.check.repairs import check_with_records
from patcher.check.targets import module_of, symbols_of
from patcher.errors import EnvironmentProbeError, ReleaseError
from patcher.i18n import phrase
from patcher.packages.releases.kept import packed
from patcher.processes import begun, collect, ended_with, pool, starting
from patcher.records.model import Record
from patcher.rewrite import forget
from patcher.worktree import files

if TYPE_CHECKING:
    from patcher.packages.releases import Progress
    from patcher.session.session import Session


PROCESSES = 2
"""How many processes judge."""


@dataclass(frozen=True, slots=True)
class MatrixInputs:
    """What is to be judged. Paths are the folders of the packages themselves."""

    package: str
    verl: Mapping[str, Path | Missing]
    releases: Mapping[str, Path | Missing]
    records: tuple[Record, ...] = ()
    beside: Mapping[str, tuple[str, Path]] = field(default_factory=dict)
    """Further packages that are the same everywhere: version and folder by distribution name."""


def judge_pairs(inputs: MatrixInputs, progress: Progress, processes: int = PROCESSES) -> Matrix:
    """Judge every pair whose sources are there. Raises EnvironmentProbeError where a process is killed."""
    there = {release: path for release, path in inputs.releases.items() if isinstance(path, Path)}
    cells: dict[tuple[str, str], Cell] = {}
    known: dict[bytes, Finding] = {}
    for done, column in enumerate(_columns(inputs, there, processes), start=1):
        cells |= {(cell.verl, cell.release): _sharing(cell, known) for cell in column}
        fields = {"name": inputs.package, "done": done, "total": len(there)}
        progress(phrase("checking on {name}: {done} of {total} {total:release|releases}", **fields), 0, None)
    progress("", 0, None)
    return with_since(
        Matrix(
            inputs.package,
            tuple(inputs.verl),
            tuple(inputs.releases),
            cells,
            {name: gone for name, gone in inputs.verl.items() if isinstance(gone, Missing)},
            {name: gone for name, gone in inputs.releases.items() if isinstance(gone, Missing)},
            {name: version for name, (version, _) in inputs.beside.items()},
        )
    )


def _sharing(cell: Cell, known: dict[bytes, Finding]) -> Cell:
    """The cell with findings of earlier cells in the place of equal ones: most are in dozens of columns."""

    def shared(findings: Iterable[Finding]) -> tuple[Finding, ...]:
        return tuple(known.setdefault(blake2b(packed(one), digest_size=16).digest(), one) for one in findings)

    return replace(cell, findings=shared(cell.findings), added=shared(cell.added))


def _mentions(file: Path, word: bytes) -> int:
    try:
        return files.read(file, files.SOURCE_BYTES, follow=True).count(word)
    except OSError:
        return 0


def _shares(inputs: MatrixInputs, processes: int) -> list[tuple[str, ...]]:
    """The verl releases in equal shares, by how often their trees mention the package."""
    there = {verl: path for verl, path in inputs.verl.items() if isinstance(path, Path)}
    word = module_of(inputs.package).encode()
    weights = {verl: sum(_mentions(file, word) for file in path.rglob("*.py")) for verl, path in there.items()}
    shares: list[list[str]] = [[] for _ in range(processes)]
    for verl in sorted(there, key=lambda verl: -weights[verl]):
        min(shares, key=lambda share: sum(weights[one] for one in share)).append(verl)
    return [tuple(verl for verl in there if verl in share) for share in shares]


def _columns(inputs: MatrixInputs, there: Mapping[str, Path], processes: int) -> Iterator[list[Cell]]:
    """The cells of one release after the other, in the order in which they are done.

    Each process reads a share of the trees, with the first release. From then on each takes whole releases, one from
    the oldest on and the other from the newest back: what is found out about a release serves all trees.
    """
    shares = _shares(inputs, processes)
    waiting = deque(there.items())
    if processes == 1 or len(there) * sum(map(len, shares)) < 2:
        judge = _Judge(inputs, shares, 0)
        yield from (judge.column(release, path, inputs.verl) for release, path in waiting)
        return
    killed = EnvironmentProbeError(
        phrase("a process that checked releases was ended from outside"),
        cause=phrase("most often the machine has no memory left"),
        advice=phrase("Check fewer releases at once, for example with --against 'vllm>=0.20'."),
    )
    pools = [pool(1, _start, inputs, shares, number) for number in range(len(shares))]
    with ended_with(pools, killed):
        first = waiting.popleft()
        with starting():
            parts = [one.submit(_column, *first, share) for one, share in zip(pools, shares, strict=True)]
        yield [cell for part in parts for cell in part.result()]
        everything = tuple(inputs.verl)
        under_way: dict[Future[list[Cell]], int] = {}

        def give(number: int) -> None:
            if waiting:
                release, path = waiting.pop() if number % 2 else waiting.popleft()
                under_way[pools[number].submit(_column, release, path, everything)] = number

        for number in range(len(pools)):
            give(number)
        while under_way:
            done, _ = wait(under_way, return_when=FIRST_COMPLETED)
            for one in done:
                give(under_way.pop(one))
                yield one.result()


class _Judge:
    """What one process keeps from one release to the next: the verl trees and what was read of them."""

    def __init__(self, inputs: MatrixInputs, shares: Sequence[Sequence[str]], number: int) -> None:
        """`number` is that of its own share of the trees, which no other process reads."""
        self.inputs = inputs
        trees = [[path.parent for one in share if isinstance(path := inputs.verl[one], Path)] for share in shares]
        self._kept = KeptReadings(trees[number], apart=True)
        self._others = [KeptReadings(share) for at, share in enumerate(trees) if at != number]
        self._known = ReadingCache(most=None, kept=self._kept)
        packages = [*inputs.releases.values(), *(folder for _, folder in inputs.beside.values())]
        self._against = {path.name: "" for path in packages if isinstance(path, Path)}
        self._last: Symbols | None = None
        self._projects: dict[str, Project] = {}
        self._collected = 0
        """How many trees were read when garbage was last collected for one."""
        self._beside = {path.name: symbols_of(path) for _, path in inputs.beside.values()}

    def column(self, release: str, path: Path, verl: Iterable[str]) -> list[Cell]:
        """These verl releases on one release of the package, whose symbols are let go of afterwards."""
        beside = self.inputs.beside
        versions = {self.inputs.package: release, **{name: version for name, (version, _) in beside.items()}}
        against = {path.name: release, **{folder.name: version for version, folder in beside.values()}}
        self._last = symbols_of(path, self._last)
        target = Target(against, {path.name: self._last, **self._beside}, versions)
        # The newest tree is the largest: what reading it takes for a while comes before the others are in memory.
        trees = ((one, tree) for one in reversed([*verl]) if (tree := self._project(one)) is not None)
        cells = [self._cell(one, tree, release, target) for one, tree in trees]
        self._kept.keep()
        for symbols in target.packages.values():
            symbols.modules.keep()
        # From here on the others have kept what they read of their shares.
        self._kept.also(self._others)
        self._others = []  # Once all trees were read, nobody needs theirs.
        return cells

    def _project(self, verl: str) -> Project | None:
        path = self.inputs.verl[verl]
        if verl not in self._projects and isinstance(path, Path):
            words = Target(self._against, {}).words
            self._projects[verl] = open_project(path.parent, self._against, words, self._known)[0]
        return self._projects.get(verl)

    def _cell(self, verl: str, project: Project, release: str, target: Target) -> Cell:
        as_is, after = check_with_records(project, target, self.inputs.records, verl)
        project.forget_texts()
        forget()
        # Reading a tree has taken most of what a tree ever takes. Without `_JUDGE` this process has other work too.
        if _JUDGE and len(self._projects) > self._collected:
            self._collected = len(self._projects)
            collect()
        return cell_of(release, as_is, after)


_JUDGE: list[_Judge] = []
"""This process's own; filled by `_start`."""


def _start(inputs: MatrixInputs, shares: Sequence[Sequence[str]], number: int) -> None:
    begun()
    _JUDGE.append(_Judge(inputs, shares, number))


def _column(release: str, path: Path, verl: Sequence[str]) -> list[Cell]:
    """The cells of one release. Garbage is collected once a release."""
    cells = _JUDGE[0].column(release, path, verl)
    collect()
    return cells


@dataclass(frozen=True, slots=True)
class MatrixRequest:
    """`verl` is a specifier ("": the releases that the records speak of); `against` as on the command line."""

    verl: str = ""
    against: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """The command line that asks for it."""
        verl = ("--verl", self.verl) if self.verl else ()
        against = [part for item in self.against for part in ("--against", item)]
        return shlex.join(("uky-patch", "check", "--matrix", *verl, *against))


def survey_releases(session: Session, request: MatrixRequest, progress: Progress) -> Matrix:
    """Judge all pairs that the order means.

    Raises UsageError where no release is meant, ReleaseError where a package is not known at all.
    """
    records = session.records_anywhere
    wanted = [record for record in records if record.enabled]
    return judge_pairs(inputs_of(request, wanted, progress), progress)


def inputs_of(request: MatrixRequest, records: Sequence[Record], progress: Progress) -> MatrixInputs:
    """The pairs that the order means, with their sources fetched."""
    from patcher.packages.releases import versions

    (package, specifier), fixed = parse_against(request.against)
    verl = wanted_releases("verl", request.verl or known_to_records(records), versions("verl"))
    releases = wanted_releases(package, specifier, versions(package))
    rows = fetch_sources("verl", verl, progress)
    columns = fetch_sources(package, releases, progress)
    beside: dict[str, tuple[str, Path]] = {}
    for name, version in fixed.items():
        folder = fetch_sources(name, (version,), progress)[version]
        if isinstance(folder, Missing):
            raise ReleaseError(
                phrase("the sources of {release} cannot be had", release=folder.release), cause=folder.reason
            )
        beside[name] = (version, folder)
    return MatrixInputs(package, rows, columns, tuple(records), beside)
