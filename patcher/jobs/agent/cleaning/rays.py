"""Sessions of Ray that the job has made: their folders stay when all processes are gone."""

from __future__ import annotations

import os
import stat

from patcher.jobs.agent import processes, sealing
from patcher.jobs.agent.cleaning.model import Item, Items, identity_of, item, size_of
from patcher.jobs.agent.cleaning.scene import Scene
from patcher.jobs.agent.traces import SESSION, noted, session_of
from patcher.messages import Message, phrase


def sessions(scene: Scene) -> tuple[Items, Items]:
    """Those that a process with the job's mark has made and nobody else uses; and those that somebody else uses."""
    users = used(scene)
    mine: Items = []
    others: Items = []
    known = {
        note["path"]: phrase("process {pid} of the job worked in it", pid=note["pid"])
        for note in noted(scene.job["folder"], sealing.key(), "session")
        if identity_of(note["path"]) == (note["device"], note["inode"])
    }
    for pid in sorted(scene.mine):
        path = session_of(pid)
        if path is not None:
            known.setdefault(path, phrase("process {pid} of the job works in it", pid=pid))
    for path, why in sorted(known.items()):
        one = _one(path, why)
        if one is None:
            continue
        strangers = [pid for pid in users.get(path, []) if pid not in scene.mine]
        if strangers:
            others.append(dict(one, why=phrase("process {pid} works in it, and is not this job's", pid=strangers[0])))
        else:
            mine.append(one)
    return mine, others


def used(scene: Scene) -> dict[str, list[int]]:
    """The processes of each session, whoever's they are."""
    found: dict[str, list[int]] = {}
    for pid in scene.everything:
        path = session_of(pid)
        if path is not None:
            found.setdefault(path, []).append(pid)
    return found


def is_free(scene: Scene, one: Item) -> bool:
    """Whether nobody works in it now, and it is the one that was listed."""
    again = _one(one["what"], one["why"])
    return again is not None and again["key"] == one["key"] and not used(scene).get(one["what"])


def _one(path: str, why: Message) -> Item | None:
    """The folder, if it is one that Ray has made for this user."""
    identity = identity_of(path)
    if identity is None or not SESSION.fullmatch(os.path.basename(path)) or os.path.realpath(path) != path:
        return None
    status = os.lstat(path)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        return None
    owner = processes.user_of(os.getpid())
    return item("session", path, identity, why, identity=list(identity), size=size_of(path), owner=owner)
