"""What a node's tree holds, and which tree it is: two nodes that share a disk have one."""

from __future__ import annotations

from pathlib import Path

from patcher.remote.agent import resources
from patcher.worktree import disk
from patcher.worktree.hashing import digests

FOLDERS = ("verl", "recipe")
"""The packages of a fork that workers import."""
_LENGTH = 16
_BOOT = Path("/proc/sys/kernel/random/boot_id")


def contents(root: Path) -> dict[str, str]:
    """The digest of each file of the tree's packages, by its path; caches of Python are left out.

    A file that cannot be read has an empty digest.
    """
    paths = [
        f"{folder}/{path}"
        for folder in FOLDERS
        for path in disk.files_below(str(root / folder))
        if "__pycache__/" not in path and not path.endswith(".pyc")
    ]
    found, failed = digests(str(root), paths)
    return {path: found[path].sha256[:_LENGTH] for path in sorted(found)} | dict.fromkeys(failed, "")


def identity(root: Path) -> dict[str, str | int]:
    """What tells one tree from another: the kernel that it is seen by, its device and inode, its file system."""
    status = (root / "verl").stat()
    kind, source = resources.mount(str(root / "verl"))
    return {
        "boot": _BOOT.read_text().strip(),
        "device": status.st_dev,
        "inode": status.st_ino,
        "born": status.st_ctime_ns,
        "kind": kind,
        "source": source,
    }
