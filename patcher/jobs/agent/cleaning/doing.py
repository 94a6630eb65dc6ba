"""Take away what was listed: each thing looked at again right before, and left where it is no longer the same."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable

from patcher.jobs.agent import processes, stopping
from patcher.jobs.agent.cleaning import caches, orphans, rays, removing
from patcher.jobs.agent.cleaning.looking import listed
from patcher.jobs.agent.cleaning.model import Item
from patcher.jobs.agent.cleaning.scene import Scene, scene
from patcher.messages import Message, phrase, why
from patcher.remote.agent import place

if TYPE_CHECKING:
    from patcher.remote.agent.serving import Request

_FREE: dict[str, Callable[[Scene, Item], bool]] = {
    "shm": orphans.is_free,
    "socket": orphans.is_free,
    "session": rays.is_free,
    "cache": caches.is_free,
    "lock": caches.is_free,
}


def do(request: Request) -> dict[str, Any]:
    """Take away the things of the job `id` whose `keys` were listed: processes first, then what they held.

    Other arguments as of `look`; `grace`: seconds that processes have to end by themselves. Answers `done`: the keys of
    what is gone, processes with `how` they ended; `left`: the keys of what is not, each with `why`.
    """
    args = request.args
    root, keys = place.root(request), set(args["keys"])
    found = scene(root, args.get("id"))
    items = [one for one in listed(found, args)[0] if one["key"] in keys]
    done: list[dict[str, Any]] = []
    left = [{"key": key, "why": phrase("it is gone already, or no longer the job's")} for key in keys]
    left = [one for one in left if one["key"] not in {item["key"] for item in items}]
    running = [one for one in items if one["kind"] == "process"]
    if running:
        how, unstopped = _end(request, found, running, float(args.get("grace", stopping.GRACE)))
        for one in running:
            if one["pid"] in unstopped:
                left.append({"key": one["key"], "why": phrase("it could not be stopped")})
            else:
                done.append({"key": one["key"], "how": how.get(one["pid"], "TERM")})
    for one in (one for one in items if one["kind"] in _FREE):
        reason = _take(root, found.job["id"], one)
        if reason is None:
            done.append({"key": one["key"], "how": None})
        else:
            left.append({"key": one["key"], "why": reason})
    return {"done": done, "left": left}


def _end(request: Request, found: Scene, listed_ones: list[Item], grace: float) -> tuple[dict[int, str], set[int]]:
    """End the processes that were listed and what they start meanwhile; a number that another has by now is left."""
    wanted = {one["pid"]: one["start"] for one in listed_ones}

    def gather(targets: stopping.Targets) -> None:
        everything = processes.table()
        for pid in set(processes.claims(found.job, everything)) & set(wanted):
            if everything[pid].start == wanted[pid] and processes.owner_of(pid) == os.getuid():
                targets[pid] = everything[pid]

    ended, unstopped = stopping.end(request, found.job["folder"], found.job, gather, grace)
    return {one["pid"]: one["how"] for one in ended}, {one["pid"] for one in unstopped}


def _take(root: str, job: str, one: Item) -> Message | None:
    """Remove a file or a folder that nobody holds. Why not, where it stays."""
    path = one["what"]
    if not os.path.lexists(path):
        return None
    if not _FREE[one["kind"]](scene(root, job), one):
        return phrase("somebody holds it, or another has taken its place")
    try:
        removing.remove(os.path.realpath(os.path.dirname(path)) + "/" + os.path.basename(path), one["identity"])
        if one["kind"] == "session":
            _unlink_latest(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        return why(error)
    return None


def _unlink_latest(path: str) -> None:
    """Ray's link to the newest session, where it leads to one that is gone."""
    link = os.path.join(os.path.dirname(path), "session_latest")
    try:
        if os.path.islink(link) and os.path.join(os.path.dirname(path), os.readlink(link)) == path:
            os.unlink(link)
    except OSError:
        pass
