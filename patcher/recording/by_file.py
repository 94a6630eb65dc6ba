"""What is worked out about one file alone, spread over processes where many files differ.

A file's trees take megabytes, and making them takes most of the time of `record`. So all that one round asks about a
file is asked at once, in one process, which then lets go of the trees. What comes back is values.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, TypeVar

from patcher.errors import EnvironmentProbeError
from patcher.i18n import Phrase, phrase
from patcher.plan.examples import examples
from patcher.plan.inputs import belongs
from patcher.plan.replay import Rewriting, Workspace, predecessors, rewritten
from patcher.processes import begun, ended_with, pool, starting
from patcher.recording.proof import FileEdits, edits_of_file
from patcher.records.load import in_order
from patcher.records.model import Example, Record
from patcher.rewrite import forget
from patcher.rewrite.edits import Edit, Mark
from patcher.rewrite.layout import Relaid, relaid
from patcher.rewrite.outcome import Outcome

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

    from patcher.recording.proposal import Proposal

PROCESSES = 4
"""How many processes work at most, where there are as many cores: each has up to 150 MB."""
_FEWEST = 8
"""Files from which on processes are started: starting them takes as long as five files do."""

OnProgress = Callable[[Phrase], None]
"""Called with what is under way."""


@dataclass(frozen=True, slots=True)
class Differing:
    """A file that differs: its edits are to be found."""

    file: str
    before: str
    after: str

    @property
    def size(self) -> int:
        return len(self.before) + len(self.after)

    def work(self) -> Compared:
        found = relaid(self.before, self.after) if self.file.endswith(".py") else Relaid.unchanged(self.after)
        return Compared(found, edits_of_file(self.file, self.before, found.text))


@dataclass(frozen=True, slots=True)
class Compared:
    """A file of the fork in the base's layout, and the edits that make it."""

    relaid: Relaid
    edits: FileEdits


Asked = tuple[str, Edit, Mark, frozenset[str]]
"""A text, an edit of it, how lines are marked, and the records whose lines may be edited."""


@dataclass(frozen=True, slots=True)
class Replaying:
    """A file that records edit: what comes of their edits one after the other, and an example of each is to be made."""

    file: str
    base: str
    before: str
    """The base with the records that the fork has already."""
    steps: tuple[tuple[Record, frozenset[str]], ...]
    """The records in their order, each with its edits of this file alone, and the records after which it comes."""
    shown: frozenset[str]
    """The records that get an example."""
    verl: str
    name: str
    """What an example is said to be from."""
    word: str

    @property
    def size(self) -> int:
        return len(self.base) * len(self.steps)

    def work(self) -> Worked:
        found: dict[str, tuple[Example, ...]] = {}
        for record, _ in self.steps:
            if record.id in self.shown:
                made = examples(record, {self.file: self.before}, self.name, self.word, others=False)
                found[record.id] = made or ()
        outcomes: dict[Asked, Outcome] = {}

        def kept(text: str, edit: Edit, mark: Mark, may_touch: frozenset[str]) -> Outcome:
            outcomes[text, edit, mark, may_touch] = made = rewritten(text, edit, mark, may_touch)
            return made

        workspace = Workspace({self.file: self.base}, self.word, "clean", rewriting=kept)
        for record, earlier in self.steps:
            workspace.replay(replace(record, style=None), belongs(self.verl), earlier)
        return Worked(outcomes, found)


@dataclass(frozen=True, slots=True)
class Worked:
    """What comes of edits on the texts of one file, and the examples by record."""

    outcomes: Mapping[Asked, Outcome]
    examples: Mapping[str, tuple[Example, ...]]


Shown = dict[tuple[str, str], tuple[Example, ...]]
"""The examples of records, by record and file."""
Result = TypeVar("Result", covariant=True)


class Job(Protocol[Result]):
    """Something to be worked out about one file."""

    @property
    def size(self) -> int:
        """How long it takes, compared with others: the longest are begun first."""

    def work(self) -> Result: ...


class Workers:
    """Works jobs out: in this process, or in several."""

    def __init__(self, processes: ProcessPoolExecutor | None) -> None:
        self._processes = processes

    def results(self, jobs: Sequence[Job[Result]], tell: Callable[[int, int], None]) -> list[Result]:
        """What comes of each job, in their order. `tell` is called with how many are done, and of how many."""
        found: dict[int, Result] = {}
        if jobs:
            tell(0, len(jobs))
        for index, result in self._worked(jobs):
            found[index] = result
            tell(len(found), len(jobs))
        return [found[index] for index in range(len(jobs))]

    def _worked(self, jobs: Sequence[Job[Result]]) -> Iterator[tuple[int, Result]]:
        if self._processes is None:
            for index, job in enumerate(jobs):
                yield index, job.work()
            return
        from concurrent.futures import as_completed

        order = sorted(range(len(jobs)), key=lambda index: -jobs[index].size)
        with starting():
            asked = {self._processes.submit(_alone, jobs[index]): index for index in order}
        for done in as_completed(asked):
            yield asked.pop(done), done.result()


@contextmanager
def workers(files: int, processes: int | None = None) -> Iterator[Workers]:
    """Workers for so many files. `processes`: how many, where the machine's cores are not to decide.

    Raises EnvironmentProbeError where one is killed."""
    count = min(PROCESSES, len(os.sched_getaffinity(0))) if processes is None else processes
    if count < 2 or (processes is None and files < _FEWEST):
        yield Workers(None)
        return
    killed = EnvironmentProbeError(
        phrase("a process that compared files was ended from outside"),
        cause=phrase("most often the machine has no memory left"),
        advice=phrase("Name some of the files or folders, so that fewer are compared at once."),
    )
    started = pool(count, _start)
    with ended_with([started], killed):
        yield Workers(started)


def _start() -> None:
    begun()
    import patcher.rewrite.engine  # noqa: F401  What stays is loaded before it is frozen.

    gc.freeze()


def _alone(job: Job[Result]) -> Result:
    result = job.work()
    forget()
    gc.collect()
    return result


def worked_out(
    records: Sequence[Record], proposal: Proposal, word: str, working: Workers, tell: OnProgress
) -> tuple[Rewriting, Shown]:
    """What comes of the records' edits, made in the order in which they are tried first, and examples by record and
    file. An edit for which another order is tried later is worked out then."""
    files, base = proposal.files, proposal.base
    ordered = in_order([*records, *proposal.known])
    earlier = predecessors(ordered)
    steps: dict[str, list[tuple[Record, frozenset[str]]]] = {}
    for record in ordered:
        for file in record.files:
            if file in files.base:
                edits = tuple(edit for edit in record.edits if edit.file == file)
                steps.setdefault(file, []).append((replace(record, edits=edits), earlier[record.id]))
    ids, name = frozenset(one.id for one in records), base.verl or str(base.name)
    jobs = [
        Replaying(file, files.base[file], files.before[file], tuple(some), ids, base.verl, name, word)
        for file, some in steps.items()
    ]

    def proving(done: int, total: int) -> None:
        tell(phrase("proving: {done} of {total} {total:file|files}", done=done, total=total))

    outcomes: dict[Asked, Outcome] = {}
    shown: Shown = {}
    for job, worked in zip(jobs, working.results(jobs, proving), strict=True):
        outcomes |= worked.outcomes
        shown |= {(one, job.file): made for one, made in worked.examples.items()}

    def rewriting(text: str, edit: Edit, mark: Mark, may_touch: frozenset[str]) -> Outcome:
        asked = (text, edit, mark, may_touch)
        if asked not in outcomes:  # Another order of the records: it is asked for again with each that is tried later.
            outcomes[asked] = rewritten(*asked)
        return outcomes[asked]

    return rewriting, shown
