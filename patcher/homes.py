"""The user's own folders, also where HOME is not set, is no whole path, or belongs to nobody the system knows."""

from __future__ import annotations

import os
from pathlib import Path

from patcher.errors import UsageError
from patcher.i18n import phrase
from patcher.worktree.places import home_folder


def home() -> Path:
    """`$HOME` where it is a whole path, else what the system says; `/` for a user that it does not know."""
    return Path(home_folder())


def cache_folder() -> Path:
    """What can be fetched or computed again: `~/.cache/uky-patch`."""
    return _folder("XDG_CACHE_HOME", ".cache")


def state_folder() -> Path:
    """What is worth keeping from one call to the next: `~/.local/state/uky-patch`."""
    return _folder("XDG_STATE_HOME", ".local/state")


def expanded(path: str | Path) -> Path:
    """The path with `~` and `~user` replaced. Raises UsageError for a user that there is not."""
    text = os.path.expanduser(path)  # noqa: PTH111  # Path.expanduser has an exception of its own for each case.
    if text.startswith("~"):
        raise UsageError(phrase("{path}: there is no such home folder", path=path))
    return Path(text)


def _folder(variable: str, below: str) -> Path:
    """The freedesktop rule: the variable counts only where it is a whole path."""
    named = os.environ.get(variable, "")
    return (Path(named) if named.startswith("/") else home() / below) / "uky-patch"
