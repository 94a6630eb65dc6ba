"""Caches of compilers and locks of the Hugging Face libraries that lie in the tree, or in the job's own folder."""

from __future__ import annotations

import os
import re
import stat
from typing import Iterator, Mapping

from patcher.jobs.agent import folder
from patcher.jobs.agent.cleaning.model import Item, Items, identity_of, item, size_of
from patcher.jobs.agent.cleaning.scene import Scene
from patcher.messages import Message, phrase
from patcher.worktree import locks

_TRITON = re.compile(r"[A-Z2-7]{52}|[0-9a-f]{64}")
_INDUCTOR = re.compile(r"[a-z0-9]{2}|fxgraph|aotautograd|triton|locks|dynamo")
_VLLM = re.compile(r"torch_compile_cache|torch_aot_compile")
_VARIABLES: Mapping[str, re.Pattern[str]] = {
    "TRITON_CACHE_DIR": _TRITON,
    "TORCHINDUCTOR_CACHE_DIR": _INDUCTOR,
    "VLLM_CACHE_ROOT": _VLLM,
}
"""Where each is told to lie, and what its own entries are called: anything else there is not touched."""
_USUAL = (
    (re.compile(r"\.triton/cache|triton_cache|\.triton_cache"), _TRITON),
    (re.compile(r"torchinductor_\w+|\.?inductor_cache"), _INDUCTOR),
    (re.compile(r"\.?cache/vllm|\.?vllm_cache"), _VLLM),
)
_LOCKS = ("HF_HOME", "HF_HUB_CACHE", "HF_DATASETS_CACHE", "HUGGINGFACE_HUB_CACHE")
_HUGGING = re.compile(r"(?:^|/)(?:\.?cache/)?huggingface(?:/|$)|(?:^|/)\.?hf_(?:home|cache)(?:/|$)")
_DEEP = 4
_NEVER = {".git", "verl", "node_modules", "site-packages"}
_SOURCES = _NEVER | {"recipe", "examples", "scripts", "tests", "docs"}


def caches(scene: Scene, variables: Mapping[str, str]) -> tuple[Items, Items]:
    """Entries of caches in the tree; where a job of the tree runs, all of them are somebody's."""
    found = [*_compiled(scene, variables), *_locks(scene, variables)]
    unique = list({one["key"]: one for one in found}.values())
    busy = _running(scene)
    if busy is None:
        return unique, []
    why = phrase("job {id} of this tree runs, and may use it", id=busy)
    return [], [dict(one, why=why) for one in unique]


def is_free(scene: Scene, one: Item) -> bool:
    """Whether it is the one that was listed, in the tree, and no job of the tree runs; and that nobody holds a lock."""
    identity = identity_of(one["what"])
    if identity is None or list(identity) != list(one["identity"]) or not _within(scene, one["what"]):
        return False
    return _running(scene) is None and (one["kind"] != "lock" or _released(one["what"]))


def _running(scene: Scene) -> str | None:
    for name in folder.ids(scene.root):
        if folder.look(os.path.join(folder.jobs_folder(scene.root), name))["state"] in ("running", "starting"):
            return name
    return None


def _compiled(scene: Scene, variables: Mapping[str, str]) -> Iterator[Item]:
    for name, pattern in _VARIABLES.items():
        if variables.get(name):
            yield from _entries(scene, variables[name], pattern, phrase("a cache, where {name} says", name=name))
    for path in _folders(scene.root):
        below = os.path.relpath(path, scene.root)
        for usual, pattern in _USUAL:
            if re.search(rf"(?:^|/)(?:{usual.pattern})$", below):
                yield from _entries(scene, path, pattern, phrase("a compiler's cache within the tree"))


def _entries(scene: Scene, above: str, pattern: re.Pattern[str], why: Message) -> Iterator[Item]:
    above = os.path.join(scene.root, os.path.expanduser(above))
    if not _may_be_cache(scene, above):
        return
    try:
        names = sorted(os.listdir(above))
    except OSError:
        return
    for name in names:
        path = os.path.join(above, name)
        if pattern.fullmatch(name) and os.path.isdir(path) and not os.path.islink(path) and _within(scene, path):
            yield _item("cache", path, why)


def _locks(scene: Scene, variables: Mapping[str, str]) -> Iterator[Item]:
    places = {os.path.join(scene.root, variables[name]) for name in _LOCKS if variables.get(name)}
    places |= {path for path in _folders(scene.root) if _HUGGING.search(os.path.relpath(path, scene.root))}
    for place in sorted(places):
        if not _may_be_cache(scene, place):
            continue
        for above, _, names in os.walk(place):
            for name in sorted(names):
                path = os.path.join(above, name)
                if name.endswith(".lock") and _is_empty(path) and _released(path):
                    yield _item("lock", path, phrase("a lock of the Hugging Face libraries that nobody holds"))


def _is_empty(path: str) -> bool:
    """A lock of theirs is an empty file; `uv.lock` and its like are none, wherever a variable points."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and not found.st_size


def _released(path: str) -> bool:
    return locks.is_free(path)


def _folders(root: str) -> Iterator[str]:
    """The folders of the tree that may be caches; its sources are not looked through."""
    for above, names, _ in os.walk(root):
        deep = 0 if above == root else os.path.relpath(above, root).count(os.sep) + 1
        names[:] = sorted(name for name in names if name not in _NEVER) if deep < _DEEP else []
        yield from (os.path.join(above, name) for name in names if not os.path.islink(os.path.join(above, name)))


def _within(scene: Scene, path: str) -> bool:
    return os.path.realpath(path).startswith(os.path.realpath(scene.root) + os.sep) or _within_job(scene, path)


def _may_be_cache(scene: Scene, place: str) -> bool:
    """Whether it lies in the tree, and is neither the tree nor a part of its sources, whatever a variable says."""
    below = os.path.relpath(os.path.realpath(place), os.path.realpath(scene.root)).split(os.sep)
    inside = below[0] not in (os.curdir, os.pardir) and not _SOURCES & set(below)
    return inside and (below[0] != ".uky-patch" or _within_job(scene, place))


def _within_job(scene: Scene, path: str) -> bool:
    return os.path.realpath(path).startswith(os.path.realpath(scene.job["folder"]) + os.sep)


def _item(kind: str, path: str, why: Message) -> Item:
    identity = identity_of(path) or (0, 0)
    return item(kind, path, identity, why, identity=list(identity), size=size_of(path), owner="")
