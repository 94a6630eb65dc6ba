"""`[hosts.NAME]` of uky-patch.toml, and hosts that are named on the command line alone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from patcher.errors import UsageError
from patcher.i18n import phrase
from patcher.messages import Refusal
from patcher.remote.checking import TEXTS, check_host, check_path
from patcher.remote.host import HERE, Host
from patcher.remote.target import target
from patcher.secrets.names import is_secret
from patcher.secrets.redacting import is_secret_value, learn

if TYPE_CHECKING:
    from patcher.session.config import Config


def host_named(config: Config, name: str, **given: Any) -> Host:
    """The host that the user calls `name`: a table of the configuration, else what ssh is to be given.

    `given` are keys of the table from the command line; they come before the file, None is as if not given, `env` and
    `constants` are added to the file's, as are `secrets` and `overrides`.

    Raises:
        UsageError: a name or value that cannot be meant.
        RecordError: mistakes in the table.
    """
    listed = name in config.hosts
    table = {key: value for key, value in given.items() if value not in (None, (), [], {})}
    _refuse(name, {} if name == HERE else table, listed)
    reached_by = tuple(
        word for key in ("ssh", "port", "path") if key in table for word in (f"--{key}", str(table[key]))
    )
    own = _tabled(config, name) if listed else {}
    if name == HERE and config.python is not None:
        own.setdefault("python", str(config.python.path))
    if name == HERE and "python" in own and "python" not in table:
        refuse_untrusted(config, own["python"])
    for key, value in table.items():
        if key in ("env", "constants"):
            own[key] = {**own.get(key, {}), **value}
        elif key in ("secrets", "overrides"):
            own[key] = [*own.get(key, []), *value]
        else:
            own[key] = value
    return replace(_host(name, own), reached_by=reached_by)


def all_hosts(config: Config) -> Mapping[str, Host]:
    """The hosts of the configuration, by name. Raises RecordError with the mistakes of the first that has some."""
    return {name: _host(name, _tabled(config, name)) for name in config.hosts}


def refuse_untrusted(config: Config, python: str) -> None:
    """Raise UsageError for what a tree names for this machine, until its user has said that it counts."""
    from patcher.trust import is_trusted

    if config.root is None or not is_trusted(config.root):
        raise UsageError(
            phrase("uky-patch.toml names an interpreter for this machine: {python}", python=python),
            cause=phrase("a tree that is not trusted has no program started here"),
            advice=phrase("Name the interpreter with --python, or say once that you trust this tree: uky-patch trust"),
        )


def _tabled(config: Config, name: str) -> dict[str, Any]:
    from patcher.tables.mistakes import mistakes_error
    from patcher.tables.shapes import Mistakes

    mistakes = Mistakes("uky-patch.toml", "")
    check_host(mistakes, ("hosts", name), config.hosts[name])
    if mistakes.found:
        title = phrase("mistakes in {name}: {count}", count=len(mistakes.found), name="uky-patch.toml")
        raise mistakes_error(title, mistakes.found)
    return dict(config.hosts[name])


def _refuse(name: str, table: Mapping[str, Any], listed: bool) -> None:
    """Raise for the first thing on the command line that is wrong."""
    from patcher.tables.shapes import Mistakes

    if name != HERE and not listed and "ssh" not in table:
        target(name)
    if "ssh" in table and isinstance(table["ssh"], str):
        target(table["ssh"])
    path = table.get("path")
    if isinstance(path, str):
        try:
            check_path(path)
        except Refusal as refusal:
            raise _usage(refusal) from None
    mistakes = Mistakes("", "")
    check_host(mistakes, ("hosts", name if listed or "ssh" not in table else "host"), table)
    if mistakes.found:
        first = mistakes.found[0]
        raise UsageError(phrase("{key}: {message}", key=first.key.removeprefix("hosts."), message=first.message))


def _host(name: str, table: Mapping[str, Any]) -> Host:
    port = table.get("port")
    if name == HERE:
        ssh = HERE
    else:
        found = target(table.get("ssh", name))
        ssh, port = found.ssh, port or found.port
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
        constants=dict(table.get("constants", {})),
        env=plain,
        secrets={**secrets, **{variable: os.environ[variable] for variable in wanted if variable in os.environ}},
        unset=tuple(variable for variable in wanted if variable not in os.environ and variable not in secrets),
        overrides=tuple(table.get("overrides", ())),
    )
    learn(host.secrets.values())
    others = {key: table[key] for key in (*TEXTS, "path", "profile", "script") if key in table}
    return replace(host, **others)


def _usage(refusal: Refusal) -> UsageError:
    from patcher.i18n.codec import decode

    return UsageError(decode(refusal.title), cause=decode(refusal.cause), advice=decode(refusal.advice))
