"""A plain `uky-patch migrate HOST` logs in before the command line is read and its modules are loaded.

Both take about as long as a login of ssh. Plain is a command line of which every word is known here; about any other,
and about mistakes, the command itself decides, which then logs in later. It takes a connection from here over only if
it finds the very same host.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from patcher.errors import UkyError
from patcher.messages import Refusal

_COMMAND = "migrate"
_FLAGS = frozenset({"--dry-run", "--yes", "--share", "--force"})
_FORMATS = ("text", "json")


def log_in(words: Sequence[str]) -> None:
    """Begin to log in to the host of a plain command line; do nothing for any other, and where anything is wrong."""
    if _COMMAND not in words:
        return
    with contextlib.suppress(UkyError, Refusal, OSError):
        _log_in(words)


def _log_in(words: Sequence[str]) -> None:
    from patcher.migrate.order import STEPS
    from patcher.remote.link import begin_early
    from patcher.session.config import load
    from patcher.session.hosts import find_host
    from patcher.trust import search_only_outside
    from patcher.worktree import verl_tree

    values = {"--format": _FORMATS, "--only": STEPS, "--from": STEPS, "--until": STEPS}
    names, given = [], ""
    remaining: Iterator[str] = iter(words)
    for word in remaining:
        if word == "--root":
            given = next(remaining, "")
            if not given or given.startswith("-"):
                return
        elif word in values:
            if next(remaining, "") not in values[word]:
                return
        elif not word.startswith("-"):
            names.append(word)
        elif word not in _FLAGS:
            return
    if len(names) != 2 or names[0] != _COMMAND:
        return
    search_only_outside()
    root = verl_tree.root_of(Path(given)) if given else _around()
    if root is None:
        return
    search_only_outside(root)
    host = find_host(load(root), names[1])
    if not host.here:
        begin_early(host)


def _around() -> Path | None:
    """The root of the tree that one stands in."""
    from patcher.worktree.verl_tree import holds_verl

    here = Path(os.path.realpath(os.curdir))
    return next((folder for folder in (here, *here.parents) if holds_verl(folder)), None)
