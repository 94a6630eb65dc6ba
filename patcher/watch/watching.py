"""Watch a log, a process or a job on hosts: what is meant, where its processes are, and what it came to."""

from __future__ import annotations

import contextlib
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patcher.diagnose.diagnosing import of_no_run
from patcher.diagnose.model import Diagnosis, Verdict
from patcher.diagnose.nearby import advice_near, logs_near
from patcher.diagnose.opening import is_packed, opened
from patcher.errors import UsageError
from patcher.i18n import NOTHING, Phrase, Phrases, phrase
from patcher.jobs.agent import processes
from patcher.jobs.agent.folder import look
from patcher.jobs.agent.hook import FOLDER
from patcher.jobs.log_or_host import no_log
from patcher.profiles.phase_durations import USUAL_SECONDS
from patcher.remote.host import Profile
from patcher.secrets.redacting import Redactor
from patcher.watch import local
from patcher.watch.agent.facts import is_python, title
from patcher.watch.diagnosing import of_log, with_stacks
from patcher.watch.local import Local
from patcher.watch.loop import Ears, Outcome, Watcher
from patcher.watch.model import Report
from patcher.watch.places import Here, Place, There
from patcher.watch.source import End, Source
from patcher.watch.state import State

if TYPE_CHECKING:
    from patcher.records.symptoms import Symptom
    from patcher.remote.host import Host
    from patcher.session.session import Session

HERE = "here"
_COMMAND = "uky-patch watch"
NAP = 0.25
"""Seconds between looks for a log that is waited for."""
DEFAULT: Profile = "standard"
"""Whose expectations count where nobody says which: the most patient ones."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What `watch` was asked for: a log, a process, or hosts, of which the first has the job."""

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
    """Seconds for which a log that is not there is waited for."""


@dataclass(frozen=True, slots=True)
class _Found:
    source: Source
    places: Sequence[Place]
    profile: str | None
    redactor: Redactor
    close: Any
    versions: Mapping[str, str] = field(default_factory=dict)
    """What the host has, as the job's start noted it."""


def watch(session: Session, asked: Asked, ears: Ears) -> Report:
    """Until the run ends, stalls or is left by an interrupt; with `once` one look.

    Raises UsageError where nothing is there to be watched, HostError where a host cannot be reached again, RecordError
    for a bad symptom.
    """
    symptoms = session.symptoms
    with _found(session, asked, ears) as found:
        state = State(_profile(asked.profile or found.profile), asked.limit)

        def is_over() -> bool:
            return _diagnosed(found, symptoms, session, ended=None).verdict in ("ok", "failed")

        watcher = Watcher(found.source, found.places, state, ears, native=asked.native, is_over=is_over)
        left = False
        try:
            outcome = watcher.once() if asked.once else watcher.watch()
        except KeyboardInterrupt:
            left = True
            outcome = Outcome(state.standing(found.source.now()), found.source.end())
        ended = outcome.end is not None and _early(outcome.end, state)
        diagnosis = _diagnosed(found, symptoms, session, ended=ended or None, silent=outcome.stalled)
        verdict, detail = _verdict(outcome, diagnosis)
        if diagnosis.blank and outcome.end is not None and outcome.end.unseen:
            raise of_no_run(session, found.source.name, diagnosis, _COMMAND)
        if outcome.sight is not None and outcome.stalled:
            odd = [pid for group in outcome.sight.grouped.odd for pid in group.pids]
            diagnosis = with_stacks(diagnosis, symptoms, outcome.sight.processes, odd)
        return Report(
            verdict,
            outcome.standing,
            found.source.now(),
            tuple(state.reached),
            state.activity,
            outcome.sight,
            _redacted(diagnosis, found.redactor),
            outcome.end,
            detail,
            left,
        )


def _early(end: End, state: State) -> bool:
    """Whether an end that the log does not tell is a failure: by its exit code, else where a training had begun."""
    return end.code != 0 if end.code is not None else state.phase not in (None, "config")


def _verdict(outcome: Outcome, diagnosis: Diagnosis) -> tuple[Verdict, Phrase | Phrases]:
    end = outcome.end
    if end is None:
        if outcome.stalled:
            return "stalled", NOTHING
        return ("failed", NOTHING) if diagnosis.verdict == "failed" else ("running", NOTHING)
    if end.stopped:
        return "failed", phrase("it was told to stop")
    if end.code is not None:
        return ("ok", NOTHING) if end.code == 0 else ("failed", phrase("exit code {code}", code=end.code))
    if diagnosis.verdict in ("failed", "stalled"):
        return "failed", phrase("it is gone, and nobody noted its exit code")
    return "ok", phrase("it is gone, and nobody noted its exit code; its log names no failure")


def _diagnosed(
    found: _Found, symptoms: Sequence[Symptom], session: Session, *, ended: bool | None, silent: bool = False
) -> Diagnosis:
    versions = {**found.versions, **session.assume}
    return of_log(symptoms, found.source.content(), versions, ended=ended, silent=silent)


def _redacted(diagnosis: Diagnosis, redactor: Redactor) -> Diagnosis:
    """The same without secrets in the lines of the log."""
    findings = tuple(
        replace(one, place=replace(one.place, text=redactor.text(one.place.text))) for one in diagnosis.findings
    )
    telling = tuple(replace(place, text=redactor.text(place.text)) for place in diagnosis.telling)
    return replace(diagnosis, findings=findings, telling=telling)


def _profile(name: str | None) -> Profile:
    return next((profile for profile in USUAL_SECONDS if profile == name), DEFAULT)


@contextlib.contextmanager
def _found(session: Session, asked: Asked, ears: Ears) -> Iterator[_Found]:
    with ExitStack() as stack:
        if asked.hosts:
            found = _on_hosts(session, asked, ears, stack)
        elif asked.pid is not None:
            found = _of_process(session, asked, asked.pid, ears, stack)
        else:
            assert asked.log is not None
            found = _of_log(session, asked, asked.log, ears, stack)
        stack.callback(found.close)
        yield found


def _of_process(session: Session, asked: Asked, pid: int, ears: Ears, stack: ExitStack) -> _Found:
    process = processes.one(pid)
    if process is None:
        raise UsageError(phrase("there is no process {pid}", pid=pid))
    log = local.log_of(pid)
    if log is None:
        if not _runs_python(pid):
            raise UsageError(
                phrase("process {pid} ({name}) is no training", pid=pid, name=process.name),
                cause="neither it nor what it has started is Python, and it writes no log",
                advice="Name the process of the training, or its log.",
            )
        ears.trouble(phrase("no log of process {pid} is found: it is watched without", pid=pid))
    source = Local(log, local.started_at(process.start))
    ray, others = _nodes(session, asked, None, ears, stack)
    places = [Here({"pids": [[pid, process.start]], "ray": ray}, HERE), *others]
    return _Found(source, places, source.profile, Redactor(()), source.close)


def _runs_python(pid: int) -> bool:
    everything = processes.table()
    return any(is_python(one, everything[one].name, title(one)) for one in processes.descendants([pid], everything))


def _of_log(session: Session, asked: Asked, log: Path, ears: Ears, stack: ExitStack) -> _Found:
    _require_log(session, log, asked.wait, ears)
    source = Local(log)
    order: dict[str, Any] = {"log": str(log)}
    if source.profile is not None:
        order |= {"job": look(str(log.parent)), "stacks": str(log.parent / FOLDER)}
    mark = order["job"]["id"] if "job" in order else None
    ray, others = _nodes(session, asked, mark, ears, stack)
    places = [Here({**order, "ray": ray}, HERE), *others]
    return _Found(source, places, source.profile, Redactor(()), source.close)


def _require_log(session: Session, log: Path, wait: float | None, ears: Ears) -> None:
    """Raise UsageError for what is no log that can grow; wait for one that is not there yet, where somebody wants it.

    The log of a job of this tree that is being started needs no waiting for: its folder says that it will come.
    """
    if (log.parent / "job.json").is_file() and not log.exists():
        return
    if not log.exists():
        _await(session, log, wait, ears)
    if log.is_dir():
        near = advice_near(logs_near(session.symptoms, log, deep=True), _COMMAND)
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
    with opened(str(log)) as stream:
        stream.read(4096)  # It raises for a file that is no text.
    if is_packed(log):
        raise UsageError(
            phrase("{path} is packed, so nothing is written to it any more", path=log),
            advice=phrase("What it says: {command}", command=shlex.join(["uky-patch", "diagnose", str(log)])),
        )


def _await(session: Session, log: Path, wait: float | None, ears: Ears) -> None:
    if wait is None:
        command = shlex.join(["uky-patch", "watch", str(log), "--wait", "600"])
        later = phrase("To wait for one that is yet to come: {command}", command=command)
        raise no_log(session, str(log), _COMMAND, also=later)
    ears.trouble(phrase("waiting for {path}, {seconds} s at most", path=log, seconds=f"{wait:g}"))
    deadline = time.monotonic() + wait
    while not log.exists():
        if time.monotonic() >= deadline:
            cause = phrase("none has come for {seconds} s", seconds=f"{wait:g}")
            raise no_log(session, str(log), _COMMAND, cause=cause)
        time.sleep(min(NAP, max(0.0, deadline - time.monotonic())))


def _nodes(
    session: Session, asked: Asked, mark: str | None, ears: Ears, stack: ExitStack
) -> tuple[str | None, Sequence[Place]]:
    """The address of the cluster that is named, as its raylets say it, and the other nodes of it."""
    if asked.ray is None:
        return None, ()
    from patcher.watch.nodes import other_nodes

    return other_nodes(session, asked.ray, mark, ears.trouble, stack)


def _on_hosts(session: Session, asked: Asked, ears: Ears, stack: ExitStack) -> _Found:
    from patcher.jobs.following import Lasting
    from patcher.jobs.link import linked
    from patcher.jobs.model import job_of
    from patcher.watch.remote import Remote

    places: list[Place] = []
    source: Remote | None = None
    words = [*(host.name for host in asked.hosts), *asked.hosts[0].reached_by]
    back = shlex.join(["uky-patch", "watch", *words, *(["--job", asked.job] if asked.job else [])])
    for host in asked.hosts:
        link = stack.enter_context(linked(host, session.tree.root))
        connection, place = link.open()
        lasting = Lasting(link.again, connection, ears.trouble, back=back)
        if source is None:
            told = lasting.ask("job_look", id=asked.job).values
            job, versions = job_of(told), dict(told.get("facts", {}).get("versions", {}))
            source = Remote(host, job, lasting)
            order: dict[str, Any] = {"job": job.id, "ray": asked.ray}
            address = asked.ray
            if len(asked.hosts) > 1 and address is None:
                address = next(iter(lasting.ask("pulse", order=order)["rays"]), None)
            ours = {"mark": job.id, "ray": address}
        places.append(There(host.name, order if not places else ours, lasting.do, place.path))
    assert source is not None
    secrets = [value for host in asked.hosts for value in host.secrets.values()]
    return _Found(source, places, source.profile, Redactor(secrets), source.close, versions)
