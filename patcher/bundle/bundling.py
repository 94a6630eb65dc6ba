"""Collect what a bug report needs, here or on a host, and make it harmless: the archive as it would be written."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patcher.bundle.collecting import Learnt, found
from patcher.bundle.gathering import environment_here
from patcher.bundle.model import Asked, Bundle, Found, Section
from patcher.bundle.names import Names
from patcher.bundle.report import DOCUMENTS, render
from patcher.bundle.sealing import Sealer
from patcher.bundle.stacks import stacks
from patcher.errors import TreeError, UsageError
from patcher.i18n import language, phrase
from patcher.jobs.log_or_host import Meant, log_or_host, no_log
from patcher.jobs.logs import opened
from patcher.remote.host import HERE, Host
from patcher.session.hosts import host_for_session

if TYPE_CHECKING:
    from patcher.diagnose.model import Diagnosis
    from patcher.jobs.logs import Log
    from patcher.remote.connection import Connection
    from patcher.remote.survey import Survey
    from patcher.session.session import Session


def target(session: Session, what: str | None, job: str | None, given: Mapping[str, Any]) -> Meant:
    """The log here that is meant, or the host; without a word this machine.

    Raises UsageError for what can be neither, and for a log that is not there.
    """
    meant = log_or_host(session, HERE if what is None else what, given, "uky-patch bundle")
    if meant.log is None:
        return meant
    if job is not None:
        raise UsageError("--job names a job of a host, and a log was given")
    if meant.log != "-" and not Path(meant.log).exists():
        raise no_log(session, meant.log, "uky-patch bundle")
    return replace(meant, host=host_for_session(session, None))


@contextmanager
def bundled(session: Session, host: Host, asked: Asked, output: Path | None) -> Iterator[tuple[Bundle, Path]]:
    """The archive as it would be written, proved to hold no secret, and where to.

    Raises HostError where the host cannot be reached, RefusedError where it has no such job, UsageError for a script,
    log or place that cannot be used, SealError where something looks like a secret still, TreeError where there is no
    room to put it together.
    """
    top = f"uky-bundle-{time.strftime('%Y%m%d-%H%M%S')}"
    path = (output or Path(f"{top}.tar.gz")).absolute()
    if path.is_dir():
        path /= f"{top}.tar.gz"
    if not path.parent.is_dir():
        raise UsageError(phrase("{folder}: there is no such folder", folder=path.parent))
    try:
        with collected(session, host, asked) as learnt, ExitStack() as stack:
            yield seal(learnt, asked, top, stack), path
    except OSError as error:
        told = phrase("{file}: {reason}", file=error.filename or path.parent, reason=error.strerror or str(error))
        raise TreeError("the bundle cannot be put together", cause=told) from error


@contextmanager
def collected(session: Session, host: Host, asked: Asked) -> Iterator[Found]:
    """All that there is, for as long as the log can be read. Raises as `bundled` does."""
    from patcher.remote.connection import connect
    from patcher.remote.survey import survey_host
    from patcher.remote.tree_folder import open_tree_folder

    root = session.root_if_any
    if host.here:
        python = host.python or str(environment_here(session).python)
        host = replace(host, path=str(root) if root is not None else None, python=python)
    elif root is None:
        raise UsageError(phrase("no verl tree here, so the one on {host} cannot be told", host=host.name))
    with connect(host) as connection:
        if root is not None:
            open_tree_folder(connection, root.name, None)
            asked = _with_job(connection, root, asked)
        machine = survey_host(connection, host)
        state = _state(connection, asked, machine)
        with opened(connection, asked, state) as (log, hidden):
            diagnosis = _diagnosed(session, log)
            taken = stacks(connection, state)
            learnt = Learnt(host, machine, state, log, diagnosis, tuple(taken), hidden)
            yield found(session, asked, learnt)


def _with_job(connection: Connection, root: Path, asked: Asked) -> Asked:
    """Where no log was named the newest job is meant, if there is one; a log in a job's folder is that job's."""
    if asked.log is not None and asked.log != "-":
        at = Path(asked.log).absolute()
        if connection.host.here and at.name == "log" and at.parent.parent == root / ".uky-patch" / "host" / "jobs":
            return replace(asked, log=None, job=at.parent.name)
    if asked.log is None and asked.job is None:
        listed = connection.channel.ask("job_list")["jobs"]
        return replace(asked, job=listed[-1]["id"] if listed else None)
    return asked


def _state(connection: Connection, asked: Asked, machine: Survey) -> Mapping[str, Any]:
    args: dict[str, Any] = {"python": machine.interpreter.python if machine.interpreter is not None else None}
    if asked.job is not None:
        args["job"] = asked.job
    elif asked.log is not None and asked.log != "-":
        args["log"] = str(Path(asked.log).absolute())
    return connection.channel.ask("bundle_state", **args).values


def _diagnosed(session: Session, log: Log | None) -> Diagnosis | None:
    """The one place where a log is diagnosed."""
    from patcher.diagnose.diagnosing import diagnosis_of

    return diagnosis_of(session, str(log.spot)) if log is not None else None


def seal(learnt: Found, asked: Asked, top: str, stack: ExitStack) -> Bundle:
    """The archive as it would be written, proved to hold no secret, until `stack` is closed.

    Raises SealError where it would hold one.
    """
    names = None if asked.names else Names(learnt.users, learnt.homes, learnt.hosts)
    sealer = Sealer(learnt.secrets, names, stack)
    sections = list(learnt.sections)
    for name, (_, tongue) in DOCUMENTS.items():
        if tongue in ("en", language()):
            text = render(name, learnt.facts, learnt.diagnosis, learnt.missing, renamed=not asked.names)
            sections.append(Section(name, phrase("the seven points of a bug report, ready to paste"), text))
    files = sorted((sealer.seal(section) for section in sections), key=lambda file: (file.name.count("/"), file.name))
    sealer.prove(files)
    replaced: Counter[str] = Counter({"secrets": learnt.hidden})
    for file in files:
        replaced.update(file.replaced)
    environments = learnt.facts["environments"]
    return Bundle(
        top=top,
        files=files,
        diagnosis=learnt.diagnosis,
        missing=learnt.missing,
        shown=len({name for one in environments for name in one["variables"]}),
        left=max((one["others"] for one in environments), default=0),
        replaced=replaced,
    )
