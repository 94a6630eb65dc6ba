"""The steps of a migration, and which of them the user has ordered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from patcher.i18n import Phrase, Phrases
from patcher.remote.host import Host

StepName: TypeAlias = Literal["preflight", "probe", "plan", "transfer", "render", "verify", "environment", "job"]
STEPS: tuple[StepName, ...] = ("preflight", "probe", "plan", "transfer", "render", "verify", "environment", "job")
READ_ONLY_STEPS: frozenset[StepName] = frozenset({"preflight", "probe", "plan"})
"""Steps that change nothing on the host. They also run if only a later step was ordered, which needs their results."""
StepStatus: TypeAlias = Literal["ok", "warn", "fail", "skip"]


@dataclass(frozen=True, slots=True)
class Step:
    """How one step has ended."""

    name: StepName
    status: StepStatus
    seconds: float
    detail: Phrase | Phrases | str
    """One line to report."""
    fix: Phrase | Phrases | str = ""
    """What to do about a failure: often a command."""
    notes: tuple[Phrase | Phrases | str, ...] = ()
    """Further lines."""


@dataclass(frozen=True, slots=True)
class MigrationOrder:
    """The options of `migrate`."""

    host: Host
    start: StepName | None = None
    """`--from`: the first step."""
    until: StepName | None = None
    """`--until`: the last step."""
    only: tuple[StepName, ...] = ()
    dry: bool = False
    """Only look, and change nothing on the host."""
    yes: bool = False
    """Do not ask, even if edits on the host would be moved aside, or the tree's folder looks wrong."""
    share: bool = False
    """Start the job even if GPUs are busy."""
    force: bool = False
    """Start the job even if no GPU is visible on the host."""

    def wants(self, step: StepName) -> bool:
        """Whether the step itself was ordered."""
        if self.only:
            return step in self.only
        first = STEPS.index(self.start) if self.start else 0
        last = STEPS.index(self.until) if self.until else len(STEPS)
        return first <= STEPS.index(step) <= last

    def names(self, step: StepName) -> bool:
        """Whether the step was ordered by its name: `--from STEP`, or `--only STEP` and nothing else."""
        return step == self.start or self.only == (step,)

    def runs(self, step: StepName) -> bool:
        """Whether the step runs: it was ordered, or an ordered one needs its result."""
        if self.dry and step in ("verify", "environment", "job"):
            return False
        if self.wants(step) or step in ("preflight", "probe"):
            return True
        return step == "plan" and (self.wants("transfer") or self.wants("verify"))
