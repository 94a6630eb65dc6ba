"""Small forks, and what a test needs to send one."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

from patcher.migrate.listing import Item, list_tree
from patcher.migrate.payload import Payload
from patcher.migrate.transfer import Difference, Sent, compare, send
from patcher.packages import Environment
from patcher.patching.result import ApplyResult
from patcher.remote.connection import Connection, connect
from patcher.remote.host import HERE, Host
from patcher.remote.tree_folder import open_tree_folder
from tests.machines import Machine

VERSION = "verl/__init__.py"


def git(root: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=A User", "-c", "user.email=user@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *identity, *arguments], cwd=root, check=True, capture_output=True, text=True)
    return done.stdout


def write(root: Path, files: Mapping[str, str | bytes]) -> None:
    for path, content in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content if isinstance(content, bytes) else content.encode())


def fork(root: Path, files: Mapping[str, str | bytes] | None = None) -> Path:
    """A git checkout with a commit."""
    root.mkdir(parents=True, exist_ok=True)
    write(root, {VERSION: "", "README.md": "# verl\n", **(files or {})})
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message=all")
    return root


def cargo(root: Path, *changed: Item) -> Payload:
    """The tree as it is here, with some files otherwise."""
    found = list_tree(root)
    items = {**found.items, **{item.path: item for item in changed}}
    return Payload(found, items, result=cast("ApplyResult", None), environment=cast("Environment", None))


@contextlib.contextmanager
def opened(host: Host, *, purpose: str | None = "migrate") -> Iterator[Connection]:
    with connect(host) as connection:
        open_tree_folder(connection, "fork", purpose)
        yield connection


def bring(host: Host, what: Payload) -> tuple[Difference, Sent]:
    """A whole transfer on a connection of its own."""
    with opened(host) as connection:
        difference = compare(connection, what)
        return difference, send(connection, what, difference)


def here(path: Path) -> Host:
    return Host(HERE, HERE, path=str(path))


def there(machine: Machine, name: str) -> Host:
    """A folder in the home of the machine's user."""
    return Host(machine.name, machine.name, path=str(machine.home / name))


def contents(root: Path) -> dict[str, bytes | str]:
    """All files of a tree but uky-patch's own and git's; a symlink's target as text."""
    found: dict[str, bytes | str] = {}
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in (".git", ".uky-patch", ".uky-patch-kept")]
        for name in [*names, *(name for name in folders if (Path(folder) / name).is_symlink())]:
            place = Path(folder) / name
            found[str(place.relative_to(root))] = str(place.readlink()) if place.is_symlink() else place.read_bytes()
    return found
