"""The entry of `uky-patch watch`: watch a log, a process or a job on hosts until it ends, stalls or the user leaves it.

The data flow:

1. `_find_target` finds the log to follow (`local_log`, `host_log`) and the machines with its processes (`machines`).
2. `watcher.Watcher` reads lines and usage into a `run_state.RunState`, and reports to a `Listener` what is new.
3. If the run seems to have stalled, `agent.stacks` takes the stacks of its processes, and `stacks` interprets them.
4. The log is diagnosed as by `uky-patch diagnose`, the symptoms that stacks show are added, and all of it becomes a
   `result.WatchResult`.
"""

from __future__ import annotations

import contextlib
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patcher.diagnose.diagnosis import Diagnosis
from patcher.diagnose.ended import add_signal, how_ended, last_words_tell, silent_end
from patcher.diagnose.fixes import FixContext
from patcher.diagnose.log_argument import advise_logs_near, logs_near, no_log_error, no_run_error
from patcher.diagnose.log_stream import is_packed, open_log
from patcher.diagnose.scanner import Scanner
from patcher.diagnose.verdict import diagnosis_of
from patcher.errors import UsageError
from patcher.i18n import NOTHING, Phrase, Phrases, phrase
from patcher.jobs.agent import processes
from patcher.jobs.agent.folder import STACKS, look
from patcher.jobs.follow_log import LastingConnection
from patcher.jobs.job import job_of
from patcher.profiles.phase_durations import USUAL_SECONDS
from patcher.records.symptoms import Symptom
from patcher.remote.host import HERE, Profile
from patcher.remote.link import linked
from patcher.secrets.redacting import Redactor
from patcher.watch import local_log
from patcher.watch.agent.members import Order
from patcher.watch.agent.process_facts import is_python, title
from patcher.watch.host_log import HostLog
from patcher.watch.local_log import LocalLog
from patcher.watch.machines import Machine, host_machine, other_nodes, this_machine
from patcher.watch.result import WatchResult, WatchVerdict
from patcher.watch.run_state import End, RunState, Source
from patcher.watch.stacks.symptoms import add_stack_symptoms
from patcher.watch.watcher import Listener, Outcome, Watcher

if TYPE_CHECKING:
    from patcher.remote.host import Host
    from patcher.session.session import Session


_COMMAND = "uky-patch watch"
DEFAULT: Profile = "standard"
"""The profile whose durations apply if none is named: the most patient one."""


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """What `watch` was asked to watch: a log, a process, or hosts, of which the first has the job."""

    log: Path | None = None
    pid: int | None = None
    hosts: Sequence[Host] = ()
    job: str | None = None
    profile: Profile | None = None
    limit: float | None = None
    native: bool = False
    once: bool = False
    ray: str | None = None
    wait: float | None = None
    """Seconds to wait for a log that does not exist."""


@dataclass(frozen=True, slots=True)
class _Target:
    source: Source
    machines: Sequence[Machine]
    redactor: Redactor
    versions: Mapping[str, str] = field(default_factory=dict)
    """Versions on the host, as recorded when the job was started."""


def watch(session: Session, asked: WatchRequest, listener: Listener) -> WatchResult:
    """Watch until the run ends, stalls or is left by an interrupt; with `once` take one look.

    Raises KeyboardInterrupt where there is no run that is left: in a look, and once the run has ended; UsageError
    where there is nothing to watch, HostError where a host cannot be reached again, RecordError for a malformed symptom
    record.
    """
    symptoms = session.symptoms
    with _find_target(session, asked, listener) as found:
        state = RunState(_profile(asked.profile or found.source.profile), asked.limit)

        def is_over() -> bool:
            return _diagnosed(found, symptoms, session).verdict in ("ok", "failed")

        watcher = Watcher(found.source, found.machines, state, listener, native=asked.native, is_over=is_over)
        left = False
        try:
            outcome = watcher.once() if asked.once else watcher.watch()
        except KeyboardInterrupt:
            if asked.once or found.source.end() is not None:
                raise
            left = True
            outcome = Outcome(state.status(found.source.now()))
        if left and asked.hosts:
            # The terminal interrupts ssh too, and a log is not worth another login.
            diagnosis = Diagnosis("running", None)
        else:
            diagnosis = _diagnosed(found, symptoms, session, end=outcome.end, silent=outcome.stalled)
        verdict, detail = _verdict(outcome, diagnosis)
        if diagnosis.blank and outcome.end is not None and outcome.end.unseen:
            raise no_run_error(session, found.source.name, diagnosis, _COMMAND)
        if outcome.snapshot is not None and outcome.stalled:
            odd = [pid for group in outcome.snapshot.grouped.odd for pid in group.pids]
            diagnosis = add_stack_symptoms(diagnosis, symptoms, outcome.snapshot.processes, odd)
        return WatchResult(
            verdict,
            outcome.status,
            found.source.now(),
            tuple(state.reached),
            state.activity,
            outcome.snapshot,
            _redacted(diagnosis, found.redactor),
            outcome.end,
            detail,
            left,
        )


def _verdict(outcome: Outcome, diagnosis: Diagnosis) -> tuple[WatchVerdict, Phrase | Phrases]:
    """The verdict, and why: the exit code counts before the diagnosis of the log.

    Without an exit code a run is only called `ok` if its log shows that it came to its end.
    """
    end = outcome.end
    if end is None:
        if outcome.stalled:
            return "stalled", NOTHING
        return ("failed", NOTHING) if diagnosis.verdict == "failed" else ("running", NOTHING)
    if end.stopped:
        return "failed", phrase("it was asked to stop")
    if end.code is not None:
        return ("ok", NOTHING) if end.code == 0 else ("failed", how_ended(end.code))
    gone = phrase("it is gone, and nobody noted its exit code")
    if diagnosis.verdict in ("failed", "stalled"):
        return "failed", gone
    if diagnosis.verdict == "ok":
        return "ok", Phrases((gone, phrase("its log shows that it came to its end")))
    return "lost", Phrases((gone, silent_end(diagnosis)))


def _diagnosed(
    found: _Target, symptoms: Sequence[Symptom], session: Session, *, end: End | None = None, silent: bool = False
) -> Diagnosis:
    """The diagnosis of the log as it is now.

    `end`: how the run ended, where it is known to be over; `silent`: whether nothing has been written to the log for
    longer than its phase may take.
    """
    scanner, files = Scanner(symptoms), found.source.content()
    evidence = scanner.scan(files)
    for _, stream in files:
        stream.close()
    log = files[-1][0] if files and Path(files[-1][0]).is_file() else ""
    context = FixContext({**evidence.versions, **found.versions, **session.assume}, log=log)
    ended = (end is not None and end.code != 0) or None
    told = end is None or last_words_tell(end.code, stopped=end.stopped)
    judged = diagnosis_of(evidence, context, ended=ended, silent=silent, last_words=told)
    if end is not None and not end.stopped:
        judged = add_signal(judged, symptoms, end.code, found.source.name)
    return replace(judged, notes=scanner.notes)


def _redacted(diagnosis: Diagnosis, redactor: Redactor) -> Diagnosis:
    """The diagnosis without secrets in the lines of the log."""
    findings = tuple(
        replace(one, place=replace(one.place, text=redactor.text(one.place.text))) for one in diagnosis.findings
    )
    telling = tuple(replace(place, text=redactor.text(place.text)) for place in diagnosis.telling)
    return replace(diagnosis, findings=findings, telling=telling)


def _profile(name: str | None) -> Profile:
    return next((profile for profile in USUAL_SECONDS if profile == name), DEFAULT)


@contextlib.contextmanager
def _find_target(session: Session, asked: WatchRequest, listener: Listener) -> Iterator[_Target]:
    with ExitStack() as stack:
        if asked.hosts:
            found = _target_on_hosts(session, asked, listener, stack)
        elif asked.pid is not None:
            found = _target_of_process(session, asked, asked.pid, listener, stack)
        else:
            assert asked.log is not None
            found = _target_of_log(session, asked, asked.log, listener, stack)
        stack.callback(found.source.close)
        yield found


def _target_of_process(
    session: Session, asked: WatchRequest, pid: int, listener: Listener, stack: ExitStack
) -> _Target:
    process = processes.one(pid)
    if process is None:
        raise UsageError(phrase("there is no process {pid}", pid=pid))
    log = local_log.log_of(pid)
    if log is None:
        if not _runs_python(pid):
            raise UsageError(
                phrase("process {pid} ({name}) is no training", pid=pid, name=process.name),
                cause="neither it nor what it has started is Python, and it writes no log",
                advice="Name the process of the training, or its log.",
            )
        listener.problem(phrase("no log of process {pid} is found: it is watched without", pid=pid))
    source = LocalLog(log, local_log.started_at(process.start))
    return _target_here(session, asked, source, {"pids": [[pid, process.start]]}, listener, stack)


def _runs_python(pid: int) -> bool:
    everything = processes.table()
    return any(is_python(one, everything[one].name, title(one)) for one in processes.descendants([pid], everything))


def _target_of_log(session: Session, asked: WatchRequest, log: Path, listener: Listener, stack: ExitStack) -> _Target:
    _require_log(session, log, asked.wait, listener)
    source = LocalLog(log)
    order: dict[str, Any] = {"log": str(log)}
    if source.profile is not None:
        order |= {"job": look(str(log.parent)), "stacks": str(log.parent / STACKS)}
    return _target_here(session, asked, source, order, listener, stack)


def _require_log(session: Session, log: Path, wait: float | None, listener: Listener) -> None:
    """Raise UsageError for what cannot be a growing log. Wait for a log that does not exist, if the user wants that.

    The log of a job of this tree that is being started needs no wait: its folder shows that it will come.
    """
    if (log.parent / "job.json").is_file() and not log.exists():
        return
    if not log.exists():
        _await(session, log, wait, listener)
    if log.is_dir():
        near = advise_logs_near(logs_near(session.symptoms, log, deep=True), _COMMAND)
        host = shlex.join(["uky-patch", "watch", log.name, "--ssh", log.name])
        raise UsageError(
            phrase("{path} is a folder; watch one log of it", path=log),
            cause="" if near else "no file below it tells of a training run",
            advice=near or phrase("If a host of this name is meant: {command}", command=host),
        )
    if not log.is_file():
        raise UsageError(
            phrase("{path} is no file that grows", path=log),
            advice=phrase("Write it to a file as well, for example with tee, and watch that."),
        )
    with open_log(str(log)) as stream:
        stream.read(4096)  # It raises for a file that is no text.
    if is_packed(log):
        raise UsageError(
            phrase("{path} is packed, so nothing is written to it any more", path=log),
            advice=phrase("What it says: {command}", command=shlex.join(["uky-patch", "diagnose", str(log)])),
        )


def _await(session: Session, log: Path, wait: float | None, listener: Listener) -> None:
    if wait is None:
        command = shlex.join(["uky-patch", "watch", str(log), "--wait", "600"])
        later = phrase("To wait for one that is yet to come: {command}", command=command)
        raise no_log_error(session, str(log), _COMMAND, also=later)
    listener.problem(phrase("waiting for {path}, {seconds} s at most", path=log, seconds=f"{wait:g}"))
    deadline = time.monotonic() + wait
    while not log.exists():
        if time.monotonic() >= deadline:
            cause = phrase("none has come for {seconds} s", seconds=f"{wait:g}")
            raise no_log_error(session, str(log), _COMMAND, cause=cause)
        time.sleep(min(local_log.NAP, max(0.0, deadline - time.monotonic())))


def _target_here(
    session: Session, asked: WatchRequest, source: LocalLog, order: Order, listener: Listener, stack: ExitStack
) -> _Target:
    """What `order` names on this machine, and what belongs to it on the other nodes of a cluster that is named."""
    ray, others = asked.ray, list[Machine]()
    if ray is not None:
        mark = order["job"]["id"] if "job" in order else None
        ray, others = other_nodes(session, ray, mark, listener.problem, stack)
    return _Target(source, [this_machine(HERE, {**order, "ray": ray}), *others], Redactor())


def _target_on_hosts(session: Session, asked: WatchRequest, listener: Listener, stack: ExitStack) -> _Target:
    machines: list[Machine] = []
    source: HostLog | None = None
    words = [*(host.name for host in asked.hosts), *asked.hosts[0].reached_by]
    back = shlex.join(["uky-patch", "watch", *words, *(["--job", asked.job] if asked.job else [])])
    for host in asked.hosts:
        link = stack.enter_context(linked(host, session.tree.root))
        connection, folder = link.open()
        lasting = LastingConnection(link.reconnect, connection, listener.problem, back=back)
        if source is None:
            state = lasting.ask("job_look", id=asked.job).values
            job, versions = job_of(state), dict(state.get("facts", {}).get("versions", {}))
            source = HostLog(host, job, lasting)
            order: dict[str, Any] = {"job": job.id, "ray": asked.ray}
            address = asked.ray
            if len(asked.hosts) > 1 and address is None:
                address = next(iter(lasting.ask("pulse", order=order)["rays"]), None)
            ours = {"mark": job.id, "ray": address}
        machines.append(host_machine(host.name, order if not machines else ours, lasting.do, folder.path))
    assert source is not None
    secrets = [value for host in asked.hosts for value in host.secrets.values()]
    return _Target(source, machines, Redactor(secrets), versions)
