"""The steps of a migration, and which of them the user ordered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from patcher.i18n import Phrase, Phrases
from patcher.remote.host import Host

StepName: TypeAlias = Literal["preflight", "probe", "plan", "transfer", "render", "verify", "environment", "job"]
STEPS: tuple[StepName, ...] = ("preflight", "probe", "plan", "transfer", "render", "verify", "environment", "job")
READ_ONLY_STEPS: frozenset[StepName] = frozenset({"preflight", "probe", "plan"})
"""Steps that change nothing. They also run when only a later step was ordered that needs what they find out."""
StepStatus: TypeAlias = Literal["ok", "warn", "fail", "skip"]


@dataclass(frozen=True, slots=True)
class Step:
    """How one step ended. `detail` is one line; `notes` are further lines; `fix` says what to do about a failure."""

    name: StepName
    status: StepStatus
    seconds: float
    detail: Phrase | Phrases | str
    fix: Phrase | Phrases | str = ""
    notes: tuple[Phrase | Phrases | str, ...] = ()


@dataclass(frozen=True, slots=True)
class MigrationOrder:
    """What `migrate` was asked for."""

    host: Host
    start: StepName | None = None
    """`--from`."""
    until: StepName | None = None
    only: tuple[StepName, ...] = ()
    dry: bool = False
    yes: bool = False
    """Go on where somebody's work on the host would be moved aside, and where the tree's folder looks wrong."""
    share: bool = False
    """Start the job though the GPUs are busy."""
    force: bool = False
    """Start the job though no GPU is visible there."""

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
        """Whether the step runs: it was ordered, or one that was ordered builds on it."""
        if self.dry and step in ("verify", "environment", "job"):
            return False
        if self.wants(step) or step in ("preflight", "probe"):
            return True
        return step == "plan" and (self.wants("transfer") or self.wants("verify"))
