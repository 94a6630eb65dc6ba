"""Migrate: one step after another, each timed and noted; a cut connection is taken up again, and nothing else is."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from patcher.errors import CutError, ExitCode, UkyError, UnreachableError, UsageError
from patcher.i18n import phrase
from patcher.migrate.journal import Entry, Proven, entry, journal
from patcher.migrate.model import STEPS, Step, StepName
from patcher.migrate.walk import LOOKING, Listeners, Order, Outcome, Walk
from patcher.remote.connection import connect
from patcher.secrets.redacting import Redactor

if TYPE_CHECKING:
    from patcher.session.session import Session

TRIES = 3
"""How often a step is taken up again after the connection was cut."""
INTERRUPTED = 130
"""The exit code where the job was left running, as of every command that is interrupted."""
PAUSES = (1.0, 3.0, 9.0)
"""Seconds before each of these."""


@dataclass(frozen=True, slots=True)
class Migration:
    """What a migration came to. `walk` is None where the host was not reached."""

    host: str
    steps: tuple[Step, ...]
    walk: Walk | None
    exit_code: int
    job: Mapping[str, Any] = field(default_factory=dict)


def migrate(session: Session, order: Order, listeners: Listeners, on_step: Callable[[Step], None]) -> Migration:
    """Run the steps that the order wants, until one fails. Mistakes end as failed steps, bugs as exceptions.

    Raises UsageError where the host is this machine.
    """
    if order.host.here:
        raise UsageError(
            "a tree is migrated to another machine",
            cause=phrase("{name} stands for this one", name=order.host.name),
            advice="Here, the records are applied with: uky-patch apply",
        )
    notes = journal(session.tree.root, order.host.name)
    redactor = Redactor(order.host.secrets.values())
    run = _Run(session, order, listeners, on_step, notes.read())
    with ExitStack() as stack:
        for name in STEPS:
            if not order.needs(name) or (order.dry and name in ("verify", "environment", "job")):
                continue
            step = run.take(name, stack)
            if not order.dry:
                notes.write(entry(run.steps, run.job_id, run.proven), redactor)
            if step.status == "fail":
                break
    return Migration(order.host.name, tuple(run.steps), run.walk, run.exit_code, run.job)


class _Run:
    def __init__(
        self,
        session: Session,
        order: Order,
        listeners: Listeners,
        on_step: Callable[[Step], None],
        before: Entry | None,
    ) -> None:
        self._session = session
        self._order = order
        self._listeners = listeners
        self._on_step = on_step
        self._before = before
        self.steps: list[Step] = []
        self.walk: Walk | None = None
        self.exit_code: int = ExitCode.CLEAN

    @property
    def job(self) -> Mapping[str, Any]:
        return self.walk.job if self.walk is not None else {}

    @property
    def job_id(self) -> str | None:
        running = self.job.get("verdict") == "running"
        return str(self.job["id"]) if running else None

    @property
    def proven(self) -> Proven | None:
        tried = any(step.name == "environment" for step in self.steps)
        if self.walk is not None and tried:
            return self.walk.proven
        return self._before.proven if self._before is not None else None

    def take(self, name: StepName, stack: ExitStack) -> Step:
        started = time.monotonic()
        try:
            outcome = self._outcome(name, stack)
        except UkyError as error:
            self.exit_code = error.exit_code
            notes = (error.cause,) if error.cause else ()
            outcome = Outcome(error.title, "fail", error.advice, notes)
        else:
            if outcome.status == "fail":
                self.exit_code = ExitCode.NOT_APPLIED if name == "plan" else ExitCode.FINDINGS
            elif self.job_id is not None:
                self.exit_code = INTERRUPTED
        step = Step(name, outcome.status, time.monotonic() - started, outcome.detail, outcome.fix, outcome.notes)
        self.steps.append(step)
        if name in LOOKING or self._order.wants(name):
            self._on_step(step)
        return step

    def _outcome(self, name: StepName, stack: ExitStack) -> Outcome:
        run: Callable[[Walk], Outcome] = import_module(f"patcher.migrate.steps.{name}").run
        walk = self.walk
        if walk is None:
            inner = stack.enter_context(ExitStack())
            connection = inner.enter_context(connect(self._order.host))
            walk = self.walk = Walk(self._session, self._order, self._listeners, inner, connection, before=self._before)
        for attempt in range(TRIES + 1):
            try:
                if attempt:
                    walk.reconnect()
                return run(walk)
            except (CutError, UnreachableError) as error:
                if attempt == TRIES:
                    raise
                self._listeners.cut(error, PAUSES[attempt])
                time.sleep(PAUSES[attempt])
        raise AssertionError("unreachable")
