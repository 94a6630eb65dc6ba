"""Shared memory and sockets that only the job's processes hold, or nobody any more."""

from __future__ import annotations

import os
import re
import socket
import stat
from typing import Callable

from patcher.agent.cleaning import holders
from patcher.agent.cleaning.model import Identity, Item, Items, identity_of, item
from patcher.agent.cleaning.scene import Scene
from patcher.agent.said import Said, phrase

SHARED = "/dev/shm"
SOCKETS = "/tmp"
_SEGMENT = re.compile(
    r"nccl-\w+|psm_\w+|torch_(?P<torch>\d+)_\d+_\d+|cuda\.shm\.[0-9a-f]+\.(?P<cuda>[0-9a-f]+)\.\d+|plasma\w*"
    r"|__KMP_REGISTERED_LIB_(?P<kmp>\d+)_\d+|sem\.mp-\w+"
)
"""What NCCL, Python's shared memory, torch, CUDA, Ray and OpenMP call what they make; three of them say by whom."""
_ZMQ = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
    r"|verl_vllm_zmq_\w+\.ipc|rl-colocate-zmq-[\w.-]+\.sock"
)
"""What vLLM and verl call their sockets."""
_FIRST_PIDS, _FIRST_IPC = 0xEFFFFFFC, 0xEFFFFFFF
"""The kernel's numbers of the namespaces that a machine starts with."""


def orphans(scene: Scene) -> tuple[Items, Items]:
    """What is the job's, and what seems so but is held by somebody else."""
    paths = {path: found for path in _segments() if (found := identity_of(path)) is not None}
    held = holders.of_files(set(paths.values()), scene.everything)
    mine: Items = []
    others: Items = []
    for path, identity in sorted(paths.items()):
        _sort(scene, _one("shm", path, identity), held.get(identity, []), mine, others, _all_seen)
    bound = holders.bound()
    sockets = holders.of_sockets(scene.everything)
    for path in sorted(_sockets()):
        there = identity_of(path)
        pids = sockets.get(bound[path], []) if path in bound else []
        if there is not None and (pids or path not in bound):
            _sort(scene, _one("socket", path, there), pids, mine, others, _deaf)
    return mine, others


def is_free(scene: Scene, one: Item) -> bool:
    """Whether nobody holds it now, and it is the one that was listed."""
    path = one["what"]
    identity = identity_of(path)
    if identity is None or list(identity) != list(one["identity"]):
        return False
    if one["kind"] == "socket":
        return path not in holders.bound()
    return not holders.of_files({identity}, scene.everything)


def _sort(
    scene: Scene, one: Item, pids: list[int], mine: Items, others: Items, unclaimed: Callable[[str], bool]
) -> None:
    strangers = [pid for pid in pids if pid not in scene.mine]
    if pids and not strangers:
        mine.append(dict(one, why=phrase("only process {pid} of the job has it open", pid=pids[0])))
    elif strangers and len(strangers) < len(pids):
        others.append(dict(one, why=phrase("process {pid} has it open, and is not this job's", pid=strangers[0])))
    elif not pids and scene.in_time(one["what"]) and _pid_gone(scene, one["what"]) and unclaimed(one["what"]):
        if scene.alone:
            mine.append(dict(one, why=phrase("made while the job lived, and nobody has it open")))
        else:
            others.append(dict(one, why=phrase("another job of this tree lived then too: it may be that one's")))


def _one(kind: str, path: str, identity: Identity) -> Item:
    nothing: Said = phrase("")
    return item(kind, path, identity, nothing, identity=list(identity), size=os.lstat(path).st_size, owner="")


def _segments() -> list[str]:
    return [path for path in _own(SHARED) if _SEGMENT.fullmatch(os.path.basename(path))]


def _sockets() -> list[str]:
    return [path for path in _own(SOCKETS) if _ZMQ.fullmatch(os.path.basename(path)) and _is_socket(path)]


def _own(folder: str) -> list[str]:
    try:
        found = [entry.path for entry in os.scandir(folder) if entry.stat(follow_symlinks=False).st_uid == os.getuid()]
    except OSError:
        return []
    return found


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    except OSError:
        return False


def _pid_gone(scene: Scene, path: str) -> bool:
    """Whether the process that the name tells, if it tells one, is gone."""
    found = _SEGMENT.fullmatch(os.path.basename(path))
    if found is None:
        return True
    named = [(found["torch"], 10), (found["kmp"], 10), (found["cuda"], 16)]
    return not any(int(text, base) in scene.everything for text, base in named if text)


def _all_seen(path: str) -> bool:
    """Whether all who might hold shared memory can be seen: not in a container that shares it with its machine."""
    del path
    return _space("pid") == _FIRST_PIDS or _space("ipc") != _FIRST_IPC


def _space(kind: str) -> int:
    try:
        return os.stat(f"/proc/self/ns/{kind}").st_ino
    except OSError:
        return 0


def _deaf(path: str) -> bool:
    """Whether nobody answers at a socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.settimeout(0.5)
        try:
            asking.connect(path)
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False
