"""The argument `LOG|HOST` of a command: decide which of the two is meant, and help where there is no such log.

An error for a log that does not exist names the logs of runs that lie near it.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from patcher.diagnose.log_files import both_ends, is_named_like_a_log, may_hold_logs
from patcher.diagnose.log_stream import STANDARD_INPUT, open_log
from patcher.diagnose.scanner import Scanner
from patcher.errors import UnknownHostError, UsageError
from patcher.i18n import Phrase, Phrases, phrase
from patcher.records.symptoms import Symptom
from patcher.remote.agent.place import JOBS
from patcher.remote.host import HERE, Host, parse_target
from patcher.session.hosts import host_for_session

if TYPE_CHECKING:
    from patcher.diagnose.diagnosis import Diagnosis
    from patcher.session.session import Session

Advice: TypeAlias = Phrase | Phrases | str

_SHOWN = 5
"""Logs that an error names. Set by hand: more do not help."""
_LOOKED_AT = 60
"""Files that are opened, the newest first, so that the error appears at once."""
_SEEN = 50_000
"""File names that are looked at below a folder: a tree with data sets may have millions."""


def logs_near(symptoms: Sequence[Symptom], place: Path, *, deep: bool = False) -> list[Path]:
    """The newest logs of runs in a folder, and with `deep` below it; none where the folder cannot be read.

    If `place` is a file, whether it exists or not, its folder is searched, and names similar to its own come first.
    """
    folder = place if place.is_dir() else place.parent
    named = sorted(_log_names(folder, deep=deep), key=_modified, reverse=True)
    alike = difflib.get_close_matches(place.name, [one.name for one in named], n=_SHOWN) if folder != place else []
    named = [*(one for one in named if one.name in alike), *(one for one in named if one.name not in alike)]
    scanner = Scanner(symptoms)
    found = (one for one in named[:_LOOKED_AT] if one != place and _tells_of_a_run(scanner, one))
    return [one for one, _ in zip(found, range(_SHOWN), strict=False)]


def _tells_of_a_run(scanner: Scanner, file: Path) -> bool:
    """Whether the beginning or the end of a file has any trace of a training run."""
    try:
        with open_log(str(file)) as stream:
            ends = both_ends(stream)
    except UsageError:
        return False
    return not scanner.scan([(str(file), BytesIO(ends))]).blank


def advise_logs_near(found: Sequence[Path], command: str, otherwise: Advice = "") -> Advice:
    """The advice of an error: the logs that were found, and the command for the first of them; `otherwise` if none."""
    if not found:
        return otherwise
    names = ", ".join(map(str, found))
    first = f"{command} {shlex.quote(str(found[0]))}"
    return phrase("Logs of runs near it: {names}. For the first: {command}", names=names, command=first)


def _log_names(folder: Path, *, deep: bool) -> Iterator[Path]:
    seen = 0
    for at, folders, names in os.walk(folder):
        folders[:] = [one for one in folders if may_hold_logs(one)] if deep else []
        seen += len(names)
        if seen > _SEEN:
            return
        yield from (Path(at) / name for name in names if is_named_like_a_log(name))


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


@dataclass(frozen=True, slots=True)
class LogOrHost:
    """The subject of a command that takes `LOG|HOST`: either `log`, a path or `-`, or `host`."""

    log: str | None = None
    host: Host | None = None
    guessed: bool = False
    """Whether it was taken for a host only because no file has this name."""


def log_or_host(session: Session, text: str, given: Mapping[str, Any], command: str) -> LogOrHost:
    """Decide whether `text` is a log or a host.

    A host of uky-patch.toml, and `here`, have priority over a file of that name; for the file write ./NAME. A log need
    not exist yet.

    Args:
        given: options that describe a host. If any is set, a host is meant.
        command: the command that `text` was given to, for the advice.

    Raises UsageError if it can be neither, RecordError for a bad table of a host.
    """
    if text == STANDARD_INPUT:
        return LogOrHost(log=text)
    if not text or text.startswith("-"):
        _refuse_option(text)
    root = session.root_if_any
    described = any(value is not None for value in given.values())
    if text == HERE or described or (root is not None and text in session.config.hosts):
        return LogOrHost(host=host_for_session(session, text, **given))
    if os.path.lexists(text) or "/" in text or is_named_like_a_log(text):
        return LogOrHost(log=text)
    try:
        parse_target(text)
    except UsageError as error:
        raise no_log_error(session, text, command, cause=Phrases((error.title, error.cause), ": ")) from error
    if root is None:
        cause = phrase("nor is there a verl tree here, from which a host is reached")
        raise no_log_error(session, text, command, cause=cause)
    return LogOrHost(host=host_for_session(session, text, **given), guessed=True)


def _refuse_option(text: str) -> None:
    """Raise UsageError for a text that begins like an option."""
    try:
        parse_target(text)
    except UsageError as error:
        if not os.path.lexists(text):
            raise
        raise UsageError(
            error.title, cause=error.cause, advice=phrase("For the file: {path}", path=f"./{text}")
        ) from error


def no_log_error(
    session: Session, text: str, command: str, *, cause: Phrase | Phrases | str = "", also: Phrase | None = None
) -> UsageError:
    """The error for a log that does not exist, with the logs that do. `also`: advice that holds besides."""
    path = Path(text)
    if not cause and not path.parent.is_dir():
        cause = phrase("there is no folder {folder}", folder=path.parent)
    near = advise_logs_near(logs_near(session.symptoms, path), command)
    advice = Phrases(tuple(one for one in (near, also) if one), "\n")
    return UsageError(phrase("there is no log at {path}", path=path), cause=cause, advice=advice)


def sources_error(session: Session, folder: Path, command: str) -> UsageError:
    """The error for a folder of source code; `command` is the command that it was given to."""
    logs = logs_near(session.symptoms, folder, deep=True)
    otherwise: Phrase = phrase("Name the log that the run writes: its standard output and standard error.")
    if (folder / JOBS).is_dir():
        otherwise = phrase("A job of this tree was started here. For its log: {command}", command=f"{command} here")
    return UsageError(
        phrase("{folder} is a folder of sources, and no log", folder=folder),
        cause="" if logs else "no file below it tells of a training run",
        advice=advise_logs_near(logs, command, otherwise),
    )


def no_run_error(session: Session, log: str, found: Diagnosis, command: str) -> UsageError:
    """The error for a log without any trace of a run. `command` is the command that the log was given to."""
    near = [] if log == STANDARD_INPUT else logs_near(session.symptoms, Path(log))
    otherwise = phrase("Name the log that the run writes: its standard output and standard error.")
    advice = advise_logs_near(near, command, otherwise)
    if not found.lines and not Path(log).is_dir():
        return UsageError(phrase("{path} is empty", path=log), advice=advice)
    return UsageError(
        phrase("nothing of a training run is in {path}", path=log),
        cause=phrase("no line of {lines} tells a phase, a step, an error or an end", lines=f"{found.lines:,}"),
        advice=advice,
    )


@contextlib.contextmanager
def explain_unknown_host(session: Session, subject: LogOrHost, command: str) -> Iterator[None]:
    """If a host was guessed and no host of that name is known, raise an error that names both readings."""
    try:
        yield
    except UnknownHostError as error:
        if not subject.guessed or subject.host is None:
            raise
        raise UnknownHostError(
            phrase("{name}: there is neither a log nor a host of this name", name=subject.host.name),
            cause=error.cause,
            advice=advise_logs_near(logs_near(session.symptoms, Path(subject.host.name)), command, error.advice),
        ) from error
