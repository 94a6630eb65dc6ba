"""Hosts as commands use them: which host the user means, and an open connection to it with what it has.

A host's settings come from `[hosts.NAME]` of uky-patch.toml and from the options of the command line, which count
before the file. A host that is in no file is whatever ssh can be given.
"""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from patcher.errors import UsageError
from patcher.i18n import Phrase, phrase
from patcher.messages import Refusal
from patcher.remote.host import HERE, Host, Kubernetes, parse_target
from patcher.remote.host_table import TEXTS, check_host, check_path
from patcher.remote.slurm import slurm_of
from patcher.secrets.contexts import is_secret_value
from patcher.secrets.names import is_secret
from patcher.secrets.redacting import learn
from patcher.session.config import Config
from patcher.trust import is_trusted

if TYPE_CHECKING:
    from patcher.remote.connection import Connection
    from patcher.remote.survey import Survey
    from patcher.session.session import Session


def find_host(config: Config, name: str, **given: Any) -> Host:
    """The host that the user calls `name`: a table of the configuration, else what ssh is to be given.

    `given` are keys of the table from the command line. They count before the file; None is as if not given; `env` and
    `constants` are added to the file's, as are `secrets` and `overrides`.

    Raises:
        UsageError: a name or value of the command line that is wrong.
        RecordError: mistakes in the table.
    """
    listed = name in config.hosts
    table = {key: value for key, value in given.items() if value not in (None, (), [], {})}
    _check_given(name, {} if name == HERE else table, listed)
    reached_by = tuple(
        word for key in ("ssh", "port", "path") if key in table for word in (f"--{key}", str(table[key]))
    )
    merged = _table_of(config, name) if listed else {}
    if name == HERE and config.python is not None:
        merged.setdefault("python", str(config.python.path))
    if name == HERE and "python" in merged and "python" not in table:
        require_trust(config, merged["python"])
    # Commands that would run on this machine: `setup` here, and a `via` such as `docker exec` that no ssh carries away.
    commands = [merged["setup"][0]] if name == HERE and merged.get("setup") else []
    if merged.get("via") and "ssh" not in {*merged, *table}:
        commands.append(shlex.join(merged["via"]))
    for line in commands:
        title = phrase("uky-patch.toml names a command for this machine: {line}", line=line)
        _require_trust(config, title, phrase("Say once that you trust this tree: uky-patch trust"))
    for key, value in table.items():
        if key in ("env", "constants"):
            merged[key] = {**merged.get(key, {}), **value}
        elif key in ("secrets", "overrides"):
            merged[key] = [*merged.get(key, []), *value]
        else:
            merged[key] = value
    return replace(_host(name, merged), reached_by=reached_by)


def host_for_session(session: Session, name: str | None, **given: object) -> Host:
    """The host that the command line means; this machine if it names none. Raises what `find_host` raises."""
    config = session.config if session.root_if_any is not None else Config()
    named = {key: value for key, value in given.items() if value is not None}
    if session.python is not None:
        named["python"] = str(session.python)
    return find_host(config, HERE if name is None else name, **named)


def this_machine(session: Session) -> Host:
    """This machine as a host, with the tree and the interpreter of the session."""
    environment = session.environment
    # What the tree's settings name is left to `find_host`, which asks whether the user trusts the tree.
    python = environment.python if environment.chosen_by != "settings" else None
    given = {"path": str(session.tree.root), "python": str(python) if python else None}
    return find_host(session.config, HERE, **given)


def require_trust(config: Config, python: str) -> None:
    """Raise UsageError if the tree's settings name an interpreter for this machine and the user does not trust it."""
    title = phrase("uky-patch.toml names an interpreter for this machine: {python}", python=python)
    advice = phrase("Name the interpreter with --python, or say once that you trust this tree: uky-patch trust")
    _require_trust(config, title, advice)


def _require_trust(config: Config, title: Phrase, advice: Phrase) -> None:
    if config.root is None or not is_trusted(config.root):
        raise UsageError(title, cause=phrase("a tree that is not trusted has no program started here"), advice=advice)


@dataclass(frozen=True, slots=True)
class ReachedHost:
    """A host with an open connection, and what it has."""

    host: Host
    connection: Connection
    survey: Survey

    @property
    def python(self) -> str | None:
        """The interpreter that trains there."""
        return self.survey.interpreter.python if self.survey.interpreter is not None else None


@contextlib.contextmanager
def reach_host(session: Session, host: Host, purpose: str | None = None) -> Iterator[ReachedHost]:
    """Connect to a host and survey it. With a purpose the tree's folder there is locked; without, nothing is written.

    Raises HostError, and UsageError for a path that cannot hold a tree.
    """
    # Loaded only by commands that reach a host: subprocess, zlib and the agent's program.
    from patcher.remote.connection import connect
    from patcher.remote.survey import survey_host
    from patcher.remote.tree_folder import open_tree_folder

    root = session.root_if_any
    if host.here:
        python = str(session.environment.python) if root is not None else host.python
        host = replace(host, path=str(root) if root is not None else None, python=host.python or python)
    with connect(host) as connection:
        if root is not None:
            open_tree_folder(connection, root.name, purpose)
        yield ReachedHost(host, connection, survey_host(connection, host))


def versions_on_host(session: Session, reached: ReachedHost) -> Mapping[str, str]:
    """Versions by package: the tree's verl, and what the host's interpreter has; `--assume` counts before both."""
    from patcher.remote.environment import environment_of

    if reached.host.here:
        return session.versions
    environment = environment_of(reached.survey, session.tree.root, session.assume)
    return {name: item.version for name, item in environment.packages.items()}


def _table_of(config: Config, name: str) -> dict[str, Any]:
    from patcher.tables.mistakes import mistakes_error
    from patcher.tables.shapes import Mistakes

    mistakes = Mistakes("uky-patch.toml", "")
    check_host(mistakes, ("hosts", name), config.hosts[name])
    if mistakes.found:
        title = phrase("mistakes in {name}: {count}", count=len(mistakes.found), name="uky-patch.toml")
        raise mistakes_error(title, mistakes.found)
    return dict(config.hosts[name])


def _check_given(name: str, table: Mapping[str, Any], listed: bool) -> None:
    """Raise for the first thing on the command line that is wrong."""
    from patcher.i18n.codec import decode
    from patcher.tables.shapes import Mistakes

    if name != HERE and not listed and "ssh" not in table:
        parse_target(name)
    if "ssh" in table and isinstance(table["ssh"], str):
        parse_target(table["ssh"])
    path = table.get("path")
    if isinstance(path, str):
        try:
            check_path(path)
        except Refusal as refusal:
            raise UsageError(
                decode(refusal.title), cause=decode(refusal.cause), advice=decode(refusal.advice)
            ) from None
    mistakes = Mistakes("", "")
    check_host(mistakes, ("hosts", name if listed or "ssh" not in table else "host"), table)
    if mistakes.found:
        first = mistakes.found[0]
        raise UsageError(phrase("{key}: {message}", key=first.key.removeprefix("hosts."), message=first.message))


def _host(name: str, table: Mapping[str, Any]) -> Host:
    """The host of a checked table. Values of `env` that look like secrets are kept apart, as `secrets` are."""
    port = table.get("port")
    if name == HERE:
        ssh = HERE
    else:
        target = parse_target(table.get("ssh", name))
        ssh, port = target.ssh, port or target.port
        if table.get("via") and "ssh" not in table:
            ssh, port = "", None
    plain: dict[str, str] = {}
    secrets: dict[str, str] = {}
    for variable, value in table.get("env", {}).items():
        (secrets if is_secret(variable) or is_secret_value(value) else plain)[variable] = value
    wanted = tuple(dict.fromkeys(table.get("secrets", ())))
    for variable in wanted:
        plain.pop(variable, None)
    host = Host(
        name=name,
        target=ssh,
        port=port,
        via=tuple(table.get("via", ())),
        constants=dict(table.get("constants", {})),
        env=plain,
        secrets={**secrets, **{variable: os.environ[variable] for variable in wanted if variable in os.environ}},
        unset=tuple(variable for variable in wanted if variable not in os.environ and variable not in secrets),
        overrides=tuple(table.get("overrides", ())),
        setup=tuple(table.get("setup", ())),
        include=tuple(path.rstrip("/") for path in table.get("include", ())),
        slurm=slurm_of(table),
    )
    learn(host.secrets.values())
    if "kubernetes" in table:
        host = replace(host, kubernetes=Kubernetes(**table["kubernetes"]))
    others = {key: table[key] for key in (*TEXTS, "path", "profile", "script") if key in table}
    return replace(host, **others)
