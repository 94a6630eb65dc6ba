"""What an argument LOG|HOST means: a log here, or a host. One rule for `watch`, `diagnose` and `bundle`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patcher.diagnose.log_files import advise_logs_near, is_named_like_a_log, logs_near
from patcher.errors import UnknownHostError, UsageError
from patcher.i18n import Phrase, Phrases, phrase
from patcher.remote.host import HERE, Host, parse_target
from patcher.session.hosts import host_for_session

if TYPE_CHECKING:
    from patcher.session.session import Session

STANDARD_INPUT = "-"


@dataclass(frozen=True, slots=True)
class LogOrHost:
    """Either `log`, a path or `-`, or `host`."""

    log: str | None = None
    host: Host | None = None
    guessed: bool = False
    """Whether it is taken for a host only because no file is called so."""


def log_or_host(session: Session, text: str, given: Mapping[str, Any], command: str) -> LogOrHost:
    """What `text` means. A host of uky-patch.toml, and `here`, come before a file of that name: write ./NAME for it.

    `given` are options that describe a host, so a host is meant where there are any. `command` is what it was given
    to, for the advice. A log that is named need not be there.

    Raises UsageError for what can be neither, RecordError for a bad table of a host.
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
    """Raise UsageError for what begins like an option."""
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
    """The error for a log that is not there, with the logs that are; `also` is advice that holds besides."""
    path = Path(text)
    if not cause and not path.parent.is_dir():
        cause = phrase("there is no folder {folder}", folder=path.parent)
    near = advise_logs_near(logs_near(session.symptoms, path), command)
    advice = Phrases(tuple(one for one in (near, also) if one), "\n")
    return UsageError(phrase("there is no log at {path}", path=path), cause=cause, advice=advice)


@contextlib.contextmanager
def explain_unknown_host(session: Session, meant: LogOrHost, command: str) -> Iterator[None]:
    """Where a host was guessed and nobody knows one of that name, the error names both readings."""
    try:
        yield
    except UnknownHostError as error:
        if not meant.guessed or meant.host is None:
            raise
        raise UnknownHostError(
            phrase("{name}: there is neither a log nor a host of this name", name=meant.host.name),
            cause=error.cause,
            advice=advise_logs_near(logs_near(session.symptoms, Path(meant.host.name)), command, error.advice),
        ) from error
