"""Entries of compilers' caches in the tree, and locks of the Hugging Face libraries, that a job may have left.

A broken entry of such a cache, or a lock that nobody holds, makes the next run fail or wait. Nothing is removed by a
folder's name alone: an entry counts only under a name that its compiler gives, and never in the tree's sources.
"""

from __future__ import annotations

import os
import re
import stat
from typing import Iterator, Mapping, Tuple

from patcher.jobs.agent.traces import names_in
from patcher.messages import Message, phrase
from patcher.worktree import locks

_TRITON = r"[A-Z2-7]{52}|[0-9a-f]{64}"
_CACHES = (
    ("TRITON_CACHE_DIR", r"\.triton/cache|triton_cache|\.triton_cache", _TRITON),
    (
        "TORCHINDUCTOR_CACHE_DIR",
        r"torchinductor_\w+|\.?inductor_cache",
        r"[a-z0-9]{2}|fxgraph|aotautograd|triton|locks|dynamo",
    ),
    ("VLLM_CACHE_ROOT", r"\.?cache/vllm|\.?vllm_cache", r"torch_compile_cache|torch_aot_compile"),
)
"""The variable that moves a cache, the usual names of its folder, and the names of its entries, as patterns.

The names are those of Triton (a hash in base 32 or 16), of TorchInductor and of vLLM. Other entries are not touched:
`TRITON_CACHE_DIR=outputs` must not cost the checkpoints in `outputs`.
"""
_HUGGING_FACE = ("HF_HOME", "HF_HUB_CACHE", "HF_DATASETS_CACHE", "HUGGINGFACE_HUB_CACHE")
_HUGGING_FACE_FOLDER = re.compile(r"(?:^|/)(?:\.?cache/)?huggingface(?:/|$)|(?:^|/)\.?hf_(?:home|cache)(?:/|$)")
_NEVER = {".git", "verl", "node_modules", "site-packages"}
"""Folders that are not searched, as they hold thousands of files that nobody's cache is among."""
_SOURCES = _NEVER | {"recipe", "examples", "scripts", "tests", "docs"}
"""Folders of which nothing is taken away, wherever a variable points."""
_DEPTH = 4
"""Levels of the tree in which caches are searched: `outputs/RUN/.triton/cache` lies on the fourth."""

Entry = Tuple[str, str, Message]
"""The kind, "cache" or "lock"; the path; and why it is listed."""


def entries(root: str, job: str, settings: Mapping[str, str]) -> Iterator[Entry]:
    """Entries of caches and stale locks in the tree at `root`, some of them twice. `job` is the job's own folder, and
    `settings` are variables that may say where caches are.
    """
    for variable, _, entry in _CACHES:
        if settings.get(variable):
            reason = phrase("a cache, where {name} says", name=variable)
            yield from _compiled(os.path.join(root, os.path.expanduser(settings[variable])), entry, reason, root, job)
    for path in _folders(root):
        below = os.path.relpath(path, root)
        for _, usual, entry in _CACHES:
            if re.search(rf"(?:^|/)(?:{usual})$", below):
                yield from _compiled(path, entry, phrase("a compiler's cache within the tree"), root, job)
    places = {os.path.join(root, settings[name]) for name in _HUGGING_FACE if settings.get(name)}
    places |= {path for path in _folders(root) if _HUGGING_FACE_FOLDER.search(os.path.relpath(path, root))}
    for cache in sorted(places):
        if _may_be_cache(cache, root, job):
            yield from _stale_locks(cache)


def is_inside(path: str, root: str, job: str) -> bool:
    """Whether it lies in the tree or in the job's own folder once symlinks are resolved."""
    real = os.path.realpath(path)
    return any(real.startswith(os.path.realpath(top) + os.sep) for top in (root, job))


def _compiled(cache: str, entry: str, reason: Message, root: str, job: str) -> Iterator[Entry]:
    """The folders in `cache` whose whole name fits the pattern `entry`."""
    if not _may_be_cache(cache, root, job):
        return
    for name in sorted(names_in(cache)):
        path = os.path.join(cache, name)
        is_folder = os.path.isdir(path) and not os.path.islink(path)
        if re.fullmatch(entry, name) and is_folder and is_inside(path, root, job):
            yield "cache", path, reason


def _stale_locks(cache: str) -> Iterator[Entry]:
    for above, _, names in os.walk(cache):
        for path in sorted(os.path.join(above, name) for name in names if name.endswith(".lock")):
            if _is_empty_file(path) and locks.is_free(path):
                yield "lock", path, phrase("a lock of the Hugging Face libraries that nobody holds")


def _is_empty_file(path: str) -> bool:
    """Their locks are empty files. `uv.lock` and `poetry.lock` are not, wherever a variable points."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and not status.st_size


def _folders(root: str) -> Iterator[str]:
    """The folders of the tree that may be caches, down to `_DEPTH` levels. Its packages are not searched."""
    for above, names, _ in os.walk(root):
        depth = 0 if above == root else os.path.relpath(above, root).count(os.sep) + 1
        names[:] = sorted(name for name in names if name not in _NEVER) if depth < _DEPTH else []
        yield from (os.path.join(above, name) for name in names if not os.path.islink(os.path.join(above, name)))


def _may_be_cache(path: str, root: str, job: str) -> bool:
    """Whether it lies in the tree and is neither the tree nor a part of its sources, whatever a variable says.

    Of this tool's own folder only what lies in the job's folder counts.
    """
    below = os.path.relpath(os.path.realpath(path), os.path.realpath(root)).split(os.sep)
    if below[0] in (os.curdir, os.pardir) or _SOURCES & set(below):
        return False
    return below[0] != ".uky-patch" or os.path.realpath(path).startswith(os.path.realpath(job) + os.sep)
