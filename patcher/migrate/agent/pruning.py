"""Kept copies and folders of ended jobs in the tree on this machine: listed, and removed."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Any, Iterator

from patcher.jobs.agent import folder
from patcher.messages import why
from patcher.remote.agent.place import root as root_of
from patcher.worktree import disk, layout

if TYPE_CHECKING:
    from patcher.remote.agent.serving import Request

_OVER = ("ended", "stopped", "lost")


def list_stored(request: Request) -> dict[str, Any]:
    """Answers `items`, newest first: kind (`kept` or `job`), name, size in bytes, time in seconds since 1970.

    A job that runs is not listed, nor one that another machine with the same disk has started and that has no end yet.
    """
    return {"items": sorted(_stored(root_of(request)), key=lambda one: (one["time"], one["name"]), reverse=True)}


def _stored(root: str) -> Iterator[dict[str, Any]]:
    base = os.path.join(root, layout.KEPT)
    for name in disk.names(base):
        if name != ".gitignore":
            yield _item("kept", base, name)
    for name in folder.ids(root):
        state = folder.look(os.path.join(folder.jobs_folder(root), name))
        if state["state"] in _OVER and (state["end"] is not None or state["elsewhere"] is None):
            yield dict(_item("job", folder.jobs_folder(root), name), state=state["state"])


def _item(kind: str, base: str, name: str) -> dict[str, Any]:
    place = os.path.join(base, name)
    there = os.lstat(place)
    size = there.st_size
    if stat.S_ISDIR(there.st_mode):
        sizes = (disk.status(os.path.join(place, path)) for path in disk.files_below(place))
        size = sum(one.st_size for one in sizes if one is not None)
    return {"kind": kind, "name": name, "size": size, "time": there.st_mtime}


def remove_stored(request: Request) -> dict[str, Any]:
    """Remove the items `names`, each [kind, name]. Those that `list_stored` would not list now are skipped.

    Answers `done`, and `left` with the reason for each that could not be removed.
    """
    root = root_of(request)
    may_go = {(one["kind"], one["name"]) for one in _stored(root)}
    done, left = [], []
    for kind, name in request.args["names"]:
        if (kind, name) not in may_go:
            continue
        base = os.path.join(root, layout.KEPT) if kind == "kept" else folder.jobs_folder(root)
        try:
            disk.remove_all(os.path.join(base, name))
            done.append([kind, name])
        except OSError as error:
            left.append({"kind": kind, "name": name, "why": why(error)})
    if disk.names(os.path.join(root, layout.KEPT)) == [".gitignore"]:
        disk.remove_all(os.path.join(root, layout.KEPT))
    return {"done": done, "left": left}
