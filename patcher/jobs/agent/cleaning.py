"""The verbs that list and take away what a job left: nothing that was not listed, nothing that is somebody else's.

`list_leftovers` reads only. `take_away` gets the keys of listed things, looks at each thing again right before it
removes it, and leaves it where it has changed: another process under the same number, another file at the same path,
somebody who uses a session of Ray by now.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, Any, Sequence

from patcher.jobs.agent import processes, stopping
from patcher.jobs.agent.leftovers import Item, Items, Snapshot, find_leftovers, is_free, take_snapshot
from patcher.messages import Message, phrase, why
from patcher.remote.agent import place

if TYPE_CHECKING:
    from patcher.remote.agent.serving import Request

_REMOVABLE = ("shm", "socket", "session", "cache", "lock")
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def list_leftovers(request: Request) -> dict[str, Any]:
    """What the job `id` has left: `items`; and what is not touched: `alone`. Each has its reason in `why`.

    With `caches` also what lies in caches in the tree, of which the variables `env` may say where they are; with
    `running` also what a job holds that is at work. Answers `job` as `jobs.agent.folder.look` does.

    Raises Refusal where there is no such job, or where it runs on another machine.
    """
    found = take_snapshot(place.root(request), request.args.get("id"))
    items, alone = find_leftovers(found, request.args)
    return {"job": found.job, "items": items, "alone": alone}


def take_away(request: Request) -> dict[str, Any]:
    """Take away the things of the job `id` that were listed under these `keys`: processes first, then what they held.

    Other arguments as of `list_leftovers`; `grace`: seconds that processes have to end by themselves. Answers `done`,
    the keys of what is gone, of a process with `how` it ended; and `left`, the keys of what is not, each with `why`.
    """
    args = request.args
    root, keys = place.root(request), set(args["keys"])
    found = take_snapshot(root, args.get("id"))
    items = {one["key"]: one for one in find_leftovers(found, args)[0] if one["key"] in keys}
    done: list[dict[str, Any]] = []
    left = [
        {"key": key, "why": phrase("it is gone already, or no longer the job's")} for key in keys if key not in items
    ]
    listed = [one for one in items.values() if one["kind"] == "process"]
    if listed:
        how, unstopped = _end_processes(request, found, listed, float(args.get("grace", stopping.GRACE)))
        for one in listed:
            if one["pid"] in unstopped:
                left.append({"key": one["key"], "why": phrase("it could not be stopped")})
            else:
                done.append({"key": one["key"], "how": how.get(one["pid"], "TERM")})
    for one in items.values():
        if one["kind"] in _REMOVABLE:
            reason = _remove_item(root, found.job["id"], one)
            if reason is None:
                done.append({"key": one["key"], "how": None})
            else:
                left.append({"key": one["key"], "why": reason})
    return {"done": done, "left": left}


def _end_processes(request: Request, found: Snapshot, listed: Items, grace: float) -> tuple[dict[int, str], set[int]]:
    """End the processes that were listed, and what they start meanwhile.

    A process counts only while its start is the one that was listed: its number may be another process's by now.
    Returns how each has ended, by number, and the numbers of those that could not be ended.
    """
    starts = {one["pid"]: one["start"] for one in listed}

    def gather(targets: stopping.Targets) -> None:
        table = processes.table()
        for pid in set(processes.claims(found.job, table)) & set(starts):
            if table[pid].start == starts[pid] and processes.owner_of(pid) == os.getuid():
                targets[pid] = table[pid]

    ended, unstopped = stopping.end(request, found.job["folder"], found.job, gather, grace)
    return {one["pid"]: one["how"] for one in ended}, {one["pid"] for one in unstopped}


def _remove_item(root: str, job: str, one: Item) -> Message | None:
    """Remove a file or a folder, unless somebody holds it by now. The reason why it stays; None where it is gone."""
    path = one["what"]
    if not os.path.lexists(path):
        return None
    if not is_free(take_snapshot(root, job), one):
        return phrase("somebody holds it, or another has taken its place")
    try:
        remove(os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path)), one["identity"])
        if one["kind"] == "session":
            _unlink_latest(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        return why(error)
    return None


def _unlink_latest(session: str) -> None:
    """Remove Ray's link `session_latest` if it leads to the session that is gone."""
    link = os.path.join(os.path.dirname(session), "session_latest")
    try:
        if os.path.islink(link) and os.path.join(os.path.dirname(session), os.readlink(link)) == session:
            os.unlink(link)
    except OSError:
        pass


def remove(path: str, identity: Sequence[int]) -> None:
    """Remove a file of this user, or a folder with all that is in it, if it has this device and inode.

    No symlink is followed. Each folder on the way is opened in the one above and held open while its entries are
    removed, so that somebody who puts another folder in its place meanwhile cannot lead this elsewhere.

    Raises:
        FileNotFoundError: nothing is there.
        OSError: something else is there, it belongs to another user, or it cannot be removed.
    """
    above = os.open("/", _DIRECTORY)
    try:
        for part in filter(None, os.path.dirname(path).split("/")):
            inner = os.open(part, _DIRECTORY, dir_fd=above)
            os.close(above)
            above = inner
        name = os.path.basename(path)
        found = os.stat(name, dir_fd=above, follow_symlinks=False)
        if [found.st_dev, found.st_ino] != list(identity):
            raise OSError(errno.ESTALE, "another has taken its place", path)
        if found.st_uid != os.geteuid():
            raise PermissionError(errno.EPERM, "belongs to somebody else", path)
        _remove_entry(name, above, found)
    finally:
        os.close(above)


def _remove_entry(name: str, above: int, wanted: os.stat_result) -> None:
    """Remove what is `wanted` by its name in the open folder `above`. A mounted file system below it is left alone."""
    if not stat.S_ISDIR(wanted.st_mode):
        os.unlink(name, dir_fd=above)
        return
    fd = os.open(name, _DIRECTORY, dir_fd=above)
    try:
        found = os.fstat(fd)
        if not os.path.samestat(found, wanted):
            raise OSError(errno.ESTALE, "another has taken its place", name)
        for inner in os.listdir(fd):
            status = os.stat(inner, dir_fd=fd, follow_symlinks=False)
            if status.st_dev != found.st_dev:
                raise OSError(errno.EXDEV, "another file system is mounted there", inner)
            _remove_entry(inner, fd, status)
    finally:
        os.close(fd)
    os.rmdir(name, dir_fd=above)
