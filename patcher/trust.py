"""Which trees the user trusts, remembered outside of them; and which programs count without that.

A tree is data: its `.venv/bin/python`, and what its uky-patch.toml names for this machine, are not started to look at
something. `uky-patch trust` says that this tree's own environment may be.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from patcher.errors import TreeError
from patcher.i18n import phrase
from patcher.worktree import files
from patcher.worktree.files import lies_in
from patcher.worktree.json_text import parse_json
from patcher.worktree.verl_tree import holds_verl

_ACTIVATED = ("VIRTUAL_ENV", "CONDA_PREFIX")


def is_trusted(root: Path) -> bool:
    """Whether the user trusts this tree: this folder, of this owner. One that came in its place is another."""

    place = _place(root)
    with contextlib.suppress(OSError, ValueError, RecursionError):
        if place.lstat().st_uid == os.geteuid() and not lies_in(place, root):
            return bool(parse_json(files.read_text(place, files.SETTINGS_BYTES)) == _identity(root))
    return False


def trust(root: Path) -> None:
    """Remember that the user trusts the tree at `root`. Raises TreeError."""
    import json

    place = _place(root)
    if lies_in(place, root):
        raise TreeError(
            phrase("{path}: cannot be trusted, as the user's state folder lies in it", path=root),
            advice=phrase("Name an interpreter with --python, or set XDG_STATE_HOME to a folder outside of the tree."),
        )
    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        files.write_whole_file(place, json.dumps(_identity(root)).encode(), mode=0o600)
    except OSError as error:
        raise TreeError(phrase("{path}: cannot be written", path=place), cause=error.strerror or str(error)) from error


def distrust(root: Path) -> bool:
    """Forget it; whether there was something to forget. Raises TreeError."""
    try:
        _place(root).unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise TreeError(
            phrase("{path}: cannot be removed", path=_place(root)), cause=error.strerror or str(error)
        ) from error
    return True


def search_only_outside(root: Path | None = None) -> None:
    """Take folders that depend on where one stands out of PATH, and those in a tree that is not trusted.

    The tree is the one at `root`, or around the folder where one stands. With `PATH=.:$PATH` or `PATH=$PWD/bin:$PATH`
    a `git` that lies in it would be started as git. The folder of an activated environment stays, even in the tree.
    """
    kept = [entry for entry in os.environ.get("PATH", os.defpath).split(os.pathsep) if entry.startswith("/")]
    root = root or _around()
    if root is not None:
        inside = {entry for entry in kept if lies_in(entry, root) and not _is_activated(entry)}
        if inside and not is_trusted(root):
            kept = [entry for entry in kept if entry not in inside]
    os.environ["PATH"] = os.pathsep.join(kept)


def _is_activated(folder: str) -> bool:
    prefixes = [os.environ.get(name, "") for name in _ACTIVATED]
    return any(prefix.startswith("/") and Path(folder) == Path(prefix) / "bin" for prefix in prefixes)


def _around() -> Path | None:
    """The tree that one stands in, if any; found without what reads trees, as every command asks."""
    with contextlib.suppress(OSError):
        here = Path.cwd()
        for folder in (here, *here.parents):
            if holds_verl(folder):
                return folder
    return None


def _place(root: Path) -> Path:
    import hashlib

    import platformdirs

    key = hashlib.sha256(os.fsencode(os.path.realpath(root))).hexdigest()[:32]
    return platformdirs.user_state_path("uky-patch") / "trusted" / f"{key}.json"


def _identity(root: Path) -> dict[str, str | int]:
    found = root.stat()
    return {"root": ascii(os.path.realpath(root)), "inode": found.st_ino, "owner": found.st_uid}
