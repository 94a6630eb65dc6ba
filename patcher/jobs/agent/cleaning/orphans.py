"""Shared memory and sockets that only the job's processes hold, or that they held and nobody does any more."""

from __future__ import annotations

import os
import socket

from patcher.jobs.agent import sealing
from patcher.jobs.agent.cleaning.model import Item, Items, item
from patcher.jobs.agent.cleaning.scene import Scene
from patcher.jobs.agent.traces import SEGMENT, SHARED, SOCKET, SOCKETS, noted, own, sockets_by_path
from patcher.messages import Message, phrase


def orphans(scene: Scene) -> tuple[Items, Items]:
    """What is the job's, and what is the job's and somebody else's as well. What nothing ties to the job is neither."""
    known = {
        (note["path"], note["device"], note["inode"]): note["pid"]
        for note in noted(scene.job["folder"], sealing.key(), "shm", "socket")
    }
    bound = sockets_by_path()
    mine: Items = []
    others: Items = []
    for kind, place, pattern in (("shm", SHARED, SEGMENT), ("socket", SOCKETS, SOCKET)):
        for path in sorted(os.path.join(place, name) for name in _names(place) if pattern.fullmatch(name)):
            status = own(path, kind)
            if status is None:
                continue
            pids = _pids(scene, kind, path, (status.st_dev, status.st_ino), bound)
            strangers = [pid for pid in pids if pid not in scene.mine]
            before = known.get((path, status.st_dev, status.st_ino))
            if strangers and (before is not None or len(strangers) < len(pids)):
                others.append(_one(kind, path, status, _strange(strangers[0])))
            elif pids and not strangers:
                why = phrase("only process {pid} of the job has it open", pid=pids[0])
                mine.append(_one(kind, path, status, why))
            elif before is not None and not pids:
                why = phrase("process {pid} of the job had it open, and nobody has now", pid=before)
                mine.append(_one(kind, path, status, why))
    return mine, others


def is_free(scene: Scene, one: Item) -> bool:
    """Whether nobody holds it now, and it is the one that was listed."""
    path, kind = one["what"], one["kind"]
    status = own(path, kind)
    if status is None or [status.st_dev, status.st_ino] != list(one["identity"]):
        return False
    if _pids(scene, kind, path, (status.st_dev, status.st_ino), sockets_by_path()):
        return False
    return kind != "socket" or _deaf(path)


def _pids(scene: Scene, kind: str, path: str, identity: tuple[int, int], bound: dict[str, int]) -> list[int]:
    return scene.held.get(bound.get(path) if kind == "socket" else identity, [])


def _strange(pid: int) -> Message:
    return phrase("process {pid} has it open, and is not this job's", pid=pid)


def _one(kind: str, path: str, status: os.stat_result, why: Message) -> Item:
    identity = (status.st_dev, status.st_ino)
    return item(kind, path, identity, why, identity=list(identity), size=status.st_size)


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _deaf(path: str) -> bool:
    """Whether nobody answers at a socket: whoever holds it may not be visible here."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.settimeout(0.5)
        try:
            asking.connect(path)
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False
