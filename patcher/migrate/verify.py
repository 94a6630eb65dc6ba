"""`verify`: the markers, and the ladder above them, here or on a host."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from patcher.checks import Check, Level
from patcher.preflight.preflight import PreflightOptions, run_preflight
from patcher.remote.connection import Connection, connect
from patcher.remote.opening import begin
from patcher.remote.probing import survey

if TYPE_CHECKING:
    from patcher.remote.host import Host
    from patcher.remote.survey import Survey
    from patcher.session.session import Session


def climb_to(
    session: Session, level: Level, host: Host, wish: PreflightOptions, on_check: Callable[[Check], None]
) -> tuple[Check, ...]:
    """All checks on a host up to the level, the markers first, each told when it is there.

    Raises UsageError, RecordError, HostError as the host or its table give reason to.
    """
    checks: tuple[Check, ...] = ()
    with connect(host) as connection:
        begin(connection, session.tree.root.name, None)
        found = survey(connection, host)
        if host.here:
            from patcher.patching.verifying import checks_here

            checks = checks_here(session)
        else:
            checks = _markers_there(session, connection, found)
        for check in checks:
            on_check(check)
        checks += run_preflight(connection, host, found, level, on_check=on_check, wish=wish)
    if level == "job":
        from patcher.preflight.preflight import check_job

        checks += (check_job(session, host, wish, checks),)
        on_check(checks[-1])
    return checks


def local(session: Session) -> Host:
    """This machine as a host, with the tree and the interpreter of the session."""
    from patcher.remote.host import HERE
    from patcher.session.hosts import host_named

    environment = session.environment
    # What the tree names is left to `host_named`, which asks whether the tree is trusted.
    python = environment.python if environment.chosen_by != "settings" else None
    given = {"path": str(session.tree.root), "python": str(python) if python else None}
    return host_named(session.config, HERE, **given)


def _markers_there(session: Session, connection: Connection, survey: Survey) -> tuple[Check, ...]:
    """Whether the host's tree is this one, with the records that its versions call for."""
    from patcher.migrate.listing import listing
    from patcher.migrate.planning import plan_cargo
    from patcher.migrate.verifying import verify

    cargo = plan_cargo(session, listing(session.tree.root), survey, connection)
    return verify(connection, cargo)
