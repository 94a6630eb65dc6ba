"""What the steps of one migration share: what was ordered, the connection, and what has been found out so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from patcher.errors import UsageError
from patcher.i18n import Phrase, phrase
from patcher.migrate.model import STEPS, Cargo, Difference, StepName, StepStatus
from patcher.profiles.model import Put, Text
from patcher.remote.connection import Connection, connect
from patcher.remote.host import Host
from patcher.remote.survey import Place, Survey

if TYPE_CHECKING:
    from patcher.checks import Check
    from patcher.errors import UkyError
    from patcher.logs.milestones import Milestone
    from patcher.migrate.journal import Entry, Proven
    from patcher.packages.releases import Progress
    from patcher.session.session import Session

LOOKING: frozenset[StepName] = frozenset({"preflight", "probe", "plan"})
"""Steps that change nothing; they run whenever a later one needs what they find out."""


@dataclass(frozen=True, slots=True)
class Order:
    """What `migrate` was asked for."""

    host: Host
    start: StepName | None = None
    until: StepName | None = None
    only: tuple[StepName, ...] = ()
    dry: bool = False
    yes: bool = False
    """Go on where somebody's work on the host would be moved aside, and where the place looks wrong."""
    share: bool = False
    """Start the job though the GPUs are busy."""

    def wants(self, step: StepName) -> bool:
        """Whether the step itself was asked for."""
        if self.only:
            return step in self.only
        first = STEPS.index(self.start) if self.start else 0
        last = STEPS.index(self.until) if self.until else len(STEPS)
        return first <= STEPS.index(step) <= last

    def names(self, step: StepName) -> bool:
        """Whether it was asked for by its name, before or without all others."""
        return step == self.start or self.only == (step,)

    def needs(self, step: StepName) -> bool:
        """Whether it has to run: asked for, or another that is asked for builds on it."""
        if self.wants(step) or step in ("preflight", "probe"):
            return True
        return step == "plan" and (self.wants("transfer") or self.wants("verify"))


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a step ended, before it has a name and a time."""

    detail: Text
    status: StepStatus = "ok"
    fix: Text = ""
    notes: tuple[Text, ...] = ()


@dataclass(slots=True)
class Listeners:
    """Who is told what while a step runs."""

    progress: Progress
    check: Callable[[Check], None]
    milestone: Callable[[Milestone], None]
    time: Callable[[float], None]
    """The age in seconds of the job that is followed, now and then."""
    cut: Callable[[UkyError, float], None]
    """The connection was cut; it is taken up again after so many seconds."""
    trouble: Callable[[Phrase], None]
    """What is in the way of following the job, while it is waited for."""
    confirm: Callable[[Phrase], bool]
    """Asks the person at the terminal; False where there is none."""


@dataclass(slots=True)
class Walk:
    """One migration under way. Each step puts what it found where the next ones look for it."""

    session: Session
    order: Order
    listeners: Listeners
    stack: ExitStack
    connection: Connection
    place: Place | None = None
    survey: Survey | None = None
    cargo: Cargo | None = None
    difference: Difference | None = None
    put: tuple[Put, ...] = ()
    checks: list[Check] = field(default_factory=list)
    job: Mapping[str, Any] = field(default_factory=dict)
    jobs_before: frozenset[str] | None = None
    """The jobs that were there when one was ordered, until it is known to have been started."""
    proven: Proven | None = None
    """The environment, where it stood the test."""
    before: Entry | None = None
    """The run before this one, where it stopped half-way."""

    @property
    def host(self) -> Host:
        return self.order.host

    def reconnect(self) -> Connection:
        """Open a new connection in the place of one that was cut, and take the host's lock again."""
        self.stack.close()
        self.connection = self.stack.enter_context(connect(self.host))
        if self.place is not None:
            self.begin()
        return self.connection

    def begin(self) -> Place:
        """Open the tree's folder on the host; locked for this run unless it is a dry one."""
        from patcher.remote.opening import begin

        purpose = None if self.order.dry else "migrate"
        self.place = begin(self.connection, self.session.tree.root.name, purpose)
        return self.place

    def received(self) -> None:
        """Raises UsageError where the tree is not on the host yet, so that a later step has nothing to work on."""
        if self.place is None or not self.place.manifest:
            raise UsageError(
                phrase("{host}: the tree is not there yet", host=self.host.name),
                advice=phrase("Run it from the beginning: uky-patch migrate {host}", host=self.host.name),
            )


def found(value: Any) -> Any:
    """A value that an earlier step must have found."""
    assert value is not None
    return value
