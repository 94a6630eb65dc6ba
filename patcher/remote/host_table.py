"""What the tables `[hosts.NAME]` of uky-patch.toml may hold. All mistakes are noted at once, each with its key.

A function whose name begins with `_is` or `_lies` is a rule for one value: it raises ValueError with a phrase.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any, get_args

from patcher.errors import UkyError
from patcher.i18n import Phrases, phrase
from patcher.i18n.codec import decode
from patcher.messages import Refusal
from patcher.remote.host import HERE, Kubernetes, Profile, parse_target
from patcher.remote.slurm_table import FIELDS as SLURM_FIELDS
from patcher.remote.slurm_table import check_slurm
from patcher.secrets.contexts import is_secret_value
from patcher.secrets.names import is_secret
from patcher.tables.mistakes import KeyPath
from patcher.tables.shapes import Field, Matching, Mistakes, Shape, choice, mapping, table, text, texts, whole
from patcher.worktree import places

_FOLDERS = ("data", "models", "output")
TEXTS = ("python", *_FOLDERS)
"""Keys that hold a text on one line: an interpreter, and folders there."""
_ASSIGNED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(\S*)")
"""An assignment in a line for a shell: `export NCCL_DEBUG=INFO`."""
_ANY_HOME = "/\N{REPLACEMENT CHARACTER}/\N{REPLACEMENT CHARACTER}"
"""Stands for the home on the host, which is not known here: a path that no user has."""


def check_hosts(mistakes: Mistakes, path: KeyPath, hosts: object) -> None:
    """Note every mistake in the table `[hosts]`."""
    if not isinstance(hosts, dict) or not all(isinstance(host, dict) for host in hosts.values()):
        mistakes.note(path, "must be tables: [hosts.NAME]")
        return
    for name, written in hosts.items():
        check_host(mistakes, (*path, name), written)


def check_host(mistakes: Mistakes, path: KeyPath, table: Mapping[str, Any]) -> None:
    """Note every mistake in the table of the host that `path` ends in."""
    name = str(path[-1])
    if name == HERE:
        THIS_MACHINE.read(mistakes, path, table)
    else:
        mistakes.hold_to((_is_target,), path, name)
        HOST.read(mistakes, path, table)
        check_slurm(mistakes, path, table)


def check_path(path: str) -> None:
    """Raise Refusal for a path that can hold no tree on any host."""
    try:
        places.check(places.absolute(path, _ANY_HOME), (_ANY_HOME,))
    except Refusal as refusal:
        raise places.no_place(path, refusal.cause) from None


def _is_target(value: str) -> None:
    _hold(lambda: parse_target(value))


def _is_path(value: str) -> None:
    _hold(lambda: check_path(value))


def _hold(work: Callable[[], object]) -> None:
    """Call `work`, and raise its UkyError or Refusal as the ValueError of a rule."""
    try:
        work()
    except UkyError as error:
        raise ValueError(Phrases((error.title, error.cause), ": ")) from None
    except Refusal as refusal:
        raise ValueError(Phrases((decode(refusal.title), decode(refusal.cause)), ": ")) from None


def _is_line(value: str) -> None:
    """The value goes into shell scripts and messages, where a line break would begin another command or message."""
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in value):
        raise ValueError(phrase("must have no line break and no other control character"))


def _is_absolute(value: str) -> None:
    if not value.startswith("/"):
        raise ValueError(phrase("must be an absolute path"))


def _is_folder(value: str) -> None:
    """Else `layout` would refuse it where the run scripts are rendered, and a migration has sent the tree by then."""
    if value != "~" and not value.startswith(("/", "~/")):
        raise ValueError(phrase("must be an absolute path, or one that begins with ~/"))


def _lies_in_tree(script: str) -> None:
    path = PurePosixPath(script)
    if path.is_absolute() or ".." in path.parts or script.startswith("~"):
        raise ValueError(phrase("must lie in the tree: a path below its root"))


def _is_open(name: str, value: str) -> None:
    """Refuse a secret, as the value is written into files on the host. `${HF_TOKEN}` only names the variable of one."""
    secret = is_secret(name) and value.strip() and not value.startswith(("${", "$("))
    if secret or is_secret_value(value):
        why = "{name} looks like a secret, and would be written into a file; name a variable in secrets, and use that"
        raise ValueError(phrase(why, name=name))


def _is_open_override(override: str) -> None:
    key, _, value = override.partition("=")
    _is_open(key.lstrip("+~"), value)


def _is_open_line(line: str) -> None:
    for name, value in _ASSIGNED.findall(line):
        _is_open(name, value.strip("\"'"))


def _not_here(mistakes: Mistakes, path: KeyPath, _: object) -> None:
    mistakes.note(path, "does not go with this machine, which is reached without ssh")


_IS_VARIABLE = Matching(re.compile(r"[A-Za-z_][A-Za-z0-9_]*"), "{name!r} is no name of a variable", "name")
_IS_CONSTANT = Matching(
    re.compile(r"[A-Z][A-Z0-9_]*"), "{name!r} is no name of a constant: capitals, digits and '_'", "name"
)
_IS_NAME = Matching(
    re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?"),
    "{name!r} is no name in Kubernetes: lower-case letters, digits, '-' and '.'",
    "name",
)
_IS_QUANTITY = Matching(
    re.compile(r"[1-9][0-9]*(\.[0-9]+)?([kMGTP]|[KMGTP]i)?"), "{text!r} is no amount in Kubernetes: 512Gi", "text"
)
KUBERNETES: Shape[Kubernetes] = Shape(
    Kubernetes,
    {
        "image": text(_is_line),
        "nodes": whole(1),
        "gpus": whole(8),
        "cpus": whole(None),
        "memory": text(_IS_QUANTITY, default=None),
        "shm": text(_IS_QUANTITY, default="64Gi"),
        "namespace": text(_IS_NAME, default=None),
        "claim": text(_IS_NAME, default=None),
        "mount": text(_is_line, _is_absolute, default="/workspace"),
        "secret": text(_IS_NAME, default=None),
        "ray": text(_is_line, default=None),
    },
)
_FIELDS = {
    "ssh": text(_is_target, default=None),
    "port": whole(None, most=65535),
    "via": texts(_is_line),
    "path": text(_is_path, default=None),
    "python": text(_is_line, default=None),
    **{key: text(_is_line, _is_folder, default=None) for key in _FOLDERS},
    "profile": choice(get_args(Profile), default=None),
    "script": text(_is_line, _lies_in_tree, default=None),
    "overrides": texts(_is_line, _is_open_override),
    "setup": texts(_is_line, _is_open_line),
    "include": texts(_is_line, _lies_in_tree),
    "env": mapping(_IS_VARIABLE, lambda _, value: _is_line(value)),
    "secrets": texts(_IS_VARIABLE),
    "constants": mapping(_IS_CONSTANT, lambda _, value: _is_line(value), _is_open, lambda _, value: _is_folder(value)),
    "kubernetes": table(KUBERNETES, default=None),
}
HOST: Shape[dict[str, Any]] = Shape(dict, {**_FIELDS, **SLURM_FIELDS})
_ONLY_THERE = ("ssh", "port", "via", *SLURM_FIELDS)
THIS_MACHINE: Shape[dict[str, Any]] = Shape(
    dict, {**_FIELDS, **dict.fromkeys(_ONLY_THERE, Field(_not_here, None, None))}
)
