"""What the tables `[hosts.NAME]` of uky-patch.toml may hold. All mistakes are noted at once; nothing is guessed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any, get_args

from patcher.errors import UkyError
from patcher.i18n import Phrases, phrase
from patcher.i18n.decoding import heard
from patcher.messages import Refusal
from patcher.remote.host import HERE, Profile, parse_target
from patcher.secrets.names import is_secret
from patcher.secrets.redacting import is_secret_value
from patcher.tables.mistakes import Checker
from patcher.worktree.host import paths

KEYS = (
    *("ssh", "port", "path", "python", "data", "models", "output"),
    *("profile", "script", "overrides", "env", "secrets", "constants"),
)
TEXTS = ("python", "data", "models", "output")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CONSTANT = re.compile(r"[A-Z][A-Z0-9_]*")
_ANY_HOME = "/\N{REPLACEMENT CHARACTER}/\N{REPLACEMENT CHARACTER}"
"""Stands for the home on the host, which is not known here."""


def check_hosts(hosts: object, check: Checker) -> None:
    """Note every mistake in the table `[hosts]`."""
    if not isinstance(hosts, dict) or not all(isinstance(host, dict) for host in hosts.values()):
        check.note(("hosts",), "must be tables: [hosts.NAME]")
        return
    for name, table in hosts.items():
        check_host(name, table, check)


def check_host(name: str, table: Mapping[str, Any], check: Checker) -> None:
    """Note every mistake in the table of one host."""
    at = ("hosts", name)
    check.table(table, at, KEYS)
    if name == HERE:
        for key in ("ssh", "port"):
            if key in table:
                check.note((*at, key), "does not go with this machine, which is reached without ssh")
    else:
        _note_failure(check, at, lambda: parse_target(name))
        if "ssh" in table and (ssh := check.string(table, at, "ssh")):
            _note_failure(check, (*at, "ssh"), lambda: parse_target(ssh))
    port = table.get("port", 22)
    if not isinstance(port, int) or isinstance(port, bool) or not 0 < port < 65536:
        check.note((*at, "port"), "must be a whole number from 1 to 65535")
    for key in TEXTS:
        if key in table:
            _text(check, at, key, check.string(table, at, key))
    if "path" in table and (path := check.string(table, at, "path")):
        _note_failure(check, (*at, "path"), lambda: check_path(path))
    if "profile" in table:
        check.choice(table, at, "profile", get_args(Profile))
    if "script" in table and (script := check.string(table, at, "script")):
        _text(check, at, "script", script)
        parts = PurePosixPath(script)
        if parts.is_absolute() or ".." in parts.parts or script.startswith("~"):
            check.note((*at, "script"), "must lie in the tree: a path below its root")
    for override in check.strings(table, at, "overrides"):
        _text(check, at, "overrides", override)
        key, _, value = override.partition("=")
        _refuse_secret(check, (*at, "overrides"), key.lstrip("+~"), value)
    for variable in check.strings(table, at, "secrets"):
        if not _VARIABLE.fullmatch(variable):
            check.note((*at, "secrets"), phrase("{name!r} is no name of a variable", name=variable))
    _table(check, table, at, "env", _VARIABLE, "{name!r} is no name of a variable")
    _table(check, table, at, "constants", _CONSTANT, "{name!r} is no name of a constant: capitals, digits and '_'")


def _table(
    check: Checker, table: Mapping[str, Any], at: tuple[str, ...], key: str, names: re.Pattern[str], wrong: str
) -> None:
    inner = table.get(key, {})
    path = (*at, key)
    for name in check.table(inner, path, inner if isinstance(inner, dict) else ()):
        if not names.fullmatch(name):
            check.note((*path, name), phrase(wrong, name=name))
        value = check.string(inner, path, name, required=False)
        _text(check, path, name, value)
        if key == "constants" and value:
            _refuse_secret(check, (*path, name), name, value)


def _refuse_secret(check: Checker, path: tuple[str, ...], name: str, value: str) -> None:
    """Note a value that looks like a secret: overrides and constants are written into files on the host."""
    secret = is_secret(name) and value.strip() and not value.startswith("${")
    if secret or is_secret_value(value):
        template = (
            "{name} looks like a secret, and would be written into a file; name a variable in secrets, and use that"
        )
        check.note(path, phrase(template, name=name))


def _text(check: Checker, path: tuple[str, ...], key: str, value: str | None) -> None:
    if value and any(ord(letter) < 32 or ord(letter) == 127 for letter in value):
        check.note((*path, key), "must have no line break and no other control character")


def check_path(path: str) -> None:
    """Raise Refusal for a path that can hold no tree on any host."""
    try:
        paths.check(paths.absolute(path, _ANY_HOME), (_ANY_HOME,))
    except Refusal as refusal:
        raise paths.no_place(path, refusal.cause) from None


def _note_failure(check: Checker, at: tuple[str, ...], work: Callable[[], object]) -> None:
    """Note what `work` raises as a mistake at `at`."""
    try:
        work()
    except UkyError as error:
        check.note(at, Phrases((error.title, error.cause), ": "))
    except Refusal as refusal:
        check.note(at, Phrases((heard(refusal.title), heard(refusal.cause)), ": "))
