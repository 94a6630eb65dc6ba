"""Work with one host, this machine among them, for the commands that do one thing there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from patcher.errors import UsageError
from patcher.remote.host import HERE, Host
from patcher.session.config import Config
from patcher.session.session import Session

if TYPE_CHECKING:
    from patcher.profiles.layout import Layout
    from patcher.remote.connection import Connection
    from patcher.remote.survey import Survey


@dataclass(frozen=True, slots=True)
class Reached:
    """A host that answers, and what it has."""

    host: Host
    connection: Connection
    survey: Survey
    layout: Layout

    @property
    def python(self) -> str | None:
        """The interpreter that trains there."""
        return self.survey.interpreter.python if self.survey.interpreter is not None else None


@contextlib.contextmanager
def reached(session: Session, host: Host, purpose: str | None = None) -> Iterator[Reached]:
    """Reach a host and ask what it has. With a purpose its tree's folder is locked, else nothing is written.

    Raises HostError, and UsageError for a path that cannot hold a tree.
    """
    from patcher.profiles import where_on
    from patcher.remote.connection import connect
    from patcher.remote.opening import begin
    from patcher.remote.probing import survey

    root = root_of(session)
    if host.here:
        python = str(session.environment.python) if root is not None else host.python
        host = replace(host, path=str(root) if root is not None else None, python=host.python or python)
    with connect(host) as connection:
        if root is not None:
            begin(connection, root.name, purpose)
        found = survey(connection, host)
        yield Reached(host, connection, found, where_on(host, found, root or Path.cwd()))


def root_of(session: Session) -> Path | None:
    """The tree's root here, None where there is no tree and none was named."""
    try:
        return session.tree.root
    except UsageError:
        if session.root_option is not None:
            raise
        return None


def named_host(session: Session, name: str | None, **given: object) -> Host:
    """The host that the command line means; this machine without a name."""
    from patcher.session.hosts import host_named

    config = session.config if root_of(session) is not None else Config()
    named = {key: value for key, value in given.items() if value is not None}
    if session.python is not None:
        named["python"] = str(session.python)
    return host_named(config, HERE if name is None else name, **named)


def versions_on(session: Session, found: Reached) -> Mapping[str, str]:
    """Versions by name: the tree's verl, and what the host's interpreter has; `--assume` counts before."""
    if found.host.here:
        return session.versions
    from patcher.remote.environment import environment_of

    environment = environment_of(found.survey, session.tree.root, session.assume)
    return {name: item.version for name, item in environment.packages.items()}
