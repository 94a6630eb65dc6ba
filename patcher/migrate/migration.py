"""Migrate: bring the fork to another host, step by step. `_Run.run_steps` has the order of the steps.

Each step is timed, reported, and written to the journal, at the latest when the next begins; one that only reads
together with the next that writes. A step whose connection is cut is repeated on a new one. A step that fails ends the
migration. The same command continues later, as every step first looks at what is done already.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from patcher.errors import CutError, ExitCode, UkyError, UnreachableError, UsageError
from patcher.i18n import phrase
from patcher.migrate import rsync, steps
from patcher.migrate.journal import Entry, Journal, Proven, entry, journal_for
from patcher.migrate.order import READ_ONLY_STEPS, MigrationOrder, Step, StepName
from patcher.migrate.payload import Payload, lay_groundwork
from patcher.migrate.prefetch import prefetched
from patcher.migrate.sent_texts import sent_texts
from patcher.migrate.steps import Listeners, Outcome
from patcher.migrate.transfer import Difference
from patcher.profiles.rendered_file import WrittenFile
from patcher.remote.link import HostLink
from patcher.secrets.redacting import Redactor
from patcher.session.session import Session

if TYPE_CHECKING:
    from patcher.migrate.debug_job import DebugJob

PAUSES = (1.0, 3.0, 9.0)
"""Seconds to wait before each repetition of a step whose connection was cut. A guess: a network that changes (Wi-Fi,
VPN) is back after a few seconds."""
INTERRUPTED = 130
"""The exit code if the job is left running: that of a command ended by Ctrl-C."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Findings:
    """What the steps have found that is reported or kept. None for a step that did not run or failed early."""

    payload: Payload | None = None
    difference: Difference | None = None
    rendered: tuple[WrittenFile, ...] = ()
    proven: Proven | None = None
    """The environment, if it has passed the checks."""


@dataclass(frozen=True, slots=True)
class Migration:
    """The result of a migration."""

    host: str
    steps: tuple[Step, ...]
    findings: Findings
    exit_code: int
    job: Mapping[str, Any] = field(default_factory=dict)
    """The job's id, verdict and further results; empty if no job was started."""


def migrate(
    session: Session,
    order: MigrationOrder,
    listeners: Listeners,
    on_step: Callable[[Step], None],
    link: HostLink,
) -> Migration:
    """Run the steps of the order until one fails. A UkyError ends its step as failed; other exceptions are raised.

    `on_step` gets each step when it has ended. `link` is connected by the first step. Raises UsageError if the host is
    this machine.
    """
    if order.host.here:
        raise UsageError(
            "a tree is migrated to another machine",
            cause=phrase("{name} stands for this one", name=order.host.name),
            advice="Here, the records are applied with: uky-patch apply",
        )
    journal = journal_for(session.tree.root, order.host)
    run = _Run(session, order, listeners, on_step, link, journal)
    with suppress(_StepFailedError):
        run.run_steps()
    link.hang_up()
    run.note()
    return Migration(order.host.name, tuple(run.steps), run.findings, run.exit_code, run.job)


class _StepFailedError(Exception):
    """A step has failed, and was reported: the migration ends."""


class _Run:
    """A migration that runs: its steps, and what they have found so far."""

    def __init__(
        self,
        session: Session,
        order: MigrationOrder,
        listeners: Listeners,
        on_step: Callable[[Step], None],
        link: HostLink,
        journal: Journal,
    ) -> None:
        self._session = session
        self._order = order
        self._listeners = listeners
        self._on_step = on_step
        self._link = link
        self._journal = journal
        self._before: Entry | None = journal.read()
        self._redactor = Redactor(order.host.secrets.values())
        self._job: DebugJob | None = None
        self.steps: list[Step] = []
        self._noted = 0
        """How many of them the journal has."""
        self.findings = Findings()
        self.exit_code: int = ExitCode.CLEAN

    @property
    def job(self) -> Mapping[str, Any]:
        return self._job.state if self._job is not None else {}

    def run_steps(self) -> None:
        """Run the steps in their order. Raises _StepFailedError at the first that fails."""
        session, order, link, host = self._session, self._order, self._link, self._order.host
        listeners, confirm = self._listeners, self._listeners.confirm
        groundwork = prefetched(lambda: lay_groundwork(session, host.include)) if order.runs("plan") else None
        # Also while ssh logs in.
        self._redactor.prepare()
        if order.runs("transfer"):
            rsync.here()
        self._take(
            "preflight",
            lambda: steps.preflight(session, order, link.open_folder(), self._before, confirm),
            connect=True,
        )
        survey = self._take("probe", lambda: steps.probe(link.connection, host))
        payload: Payload | None = None
        if groundwork is not None:
            payload = self._take(
                "plan",
                lambda: steps.plan(session, host, survey, link.connection, groundwork()),
                keep=self._keep_payload,
            )
        if order.runs("transfer"):
            assert payload is not None
            sending, texts = payload, sent_texts(self._journal)
            self._take(
                "transfer",
                lambda: steps.transfer(
                    link.connection, sending, order, texts, listeners, self._keep_difference, new=not link.has_files
                ),
            )
            if not order.dry:
                link.note_tree_received()
        if order.runs("render"):
            rendered = self._take(
                "render",
                lambda: steps.render(session, host, survey, payload, link.connection, dry=order.dry),
                needs_tree=not order.dry,
            )
            self.findings = replace(self.findings, rendered=rendered)
        if order.runs("verify"):
            assert payload is not None
            sent = payload
            # If there was nothing to send, the step before has just compared every file.
            looked = self.findings.difference is not None and self.findings.difference.nothing
            self._take("verify", lambda: steps.verify(link.connection, sent, stamps=looked), needs_tree=True)
        if order.runs("environment"):
            fingerprint = steps.fingerprint_of(host, survey, payload, self.findings.rendered)
            last = self._before.proven if self._before is not None else None
            self._take(
                "environment",
                lambda: steps.environment(link.connection, order, survey, fingerprint, last, listeners.check),
                needs_tree=True,
                keep=self._keep_proven,
            )
        if order.runs("job"):
            from patcher.migrate.debug_job import DebugJob

            self._job = DebugJob(link, order, survey, payload, listeners)
            self._take("job", self._job.run, needs_tree=True)

    def _keep_payload(self, payload: Payload) -> None:
        self.findings = replace(self.findings, payload=payload)

    def _keep_difference(self, difference: Difference) -> None:
        self.findings = replace(self.findings, difference=difference)

    def _keep_proven(self, proven: Proven | None) -> None:
        self.findings = replace(self.findings, proven=proven)

    def _take(
        self,
        name: StepName,
        work: Callable[[], Outcome[T]],
        *,
        connect: bool = False,
        needs_tree: bool = False,
        keep: Callable[[T], None] = lambda _: None,
    ) -> T:
        """Run one step, report it and write it to the journal. Returns what it found.

        `connect`: open the connection first. `needs_tree`: the tree must be on the host. `keep` gets what the step
        found, also if it fails. Raises _StepFailedError.
        """
        if any(step.name not in READ_ONLY_STEPS for step in self.steps[self._noted :]):
            self.note()
        started = time.monotonic()
        outcome: Outcome[T] | Outcome[None]
        try:
            if connect:
                self._link.connect()
            found = self._repeated(work, needs_tree=needs_tree)
            keep(found.value)
            outcome = found
        except UkyError as error:
            outcome = steps.failed(error, None)
        if outcome.status == "fail":
            self.exit_code = outcome.exit_code
        elif self._running_job is not None:
            self.exit_code = INTERRUPTED
        step = Step(name, outcome.status, time.monotonic() - started, outcome.detail, outcome.fix, outcome.notes)
        self.steps.append(step)
        self._on_step(step)
        if outcome.status == "fail":
            raise _StepFailedError
        return found.value

    def note(self) -> None:
        """Write the steps so far to the journal, unless it has them. A dry run notes nothing."""
        if not self._order.dry and self._noted < len(self.steps):
            self._journal.write(entry(self.steps, self._running_job, self._proven), self._redactor)
            self._noted = len(self.steps)

    def _repeated(self, work: Callable[[], Outcome[T]], *, needs_tree: bool) -> Outcome[T]:
        """Do the work; if the connection is cut, do it again on a new one, after each of the pauses."""
        pauses = iter(PAUSES)
        reconnect = False
        while True:
            try:
                if reconnect:
                    self._link.reconnect()
                if needs_tree:
                    self._link.require_tree(migrated=True)
                return work()
            except (CutError, UnreachableError) as error:
                pause = next(pauses, None)
                if pause is None:
                    raise
                self._listeners.cut(error, pause)
                time.sleep(pause)
                reconnect = True

    @property
    def _running_job(self) -> str | None:
        """The id of a job that was started and still runs."""
        return str(self.job["id"]) if self.job.get("verdict") == "running" else None

    @property
    def _proven(self) -> Proven | None:
        """For the journal: the environment that has passed; that of the last run if this one did not check any."""
        if any(step.name == "environment" for step in self.steps):
            return self.findings.proven
        return self._before.proven if self._before is not None else None
