"""Somebody's own edits, laid by before a forced revert replaces them."""

from __future__ import annotations

from pathlib import Path

from patcher.language import phrase
from patcher.tree import disk
from patcher.tree.paths import parts
from patcher.tree.source import digest
from patcher.tree.trouble import tree_error

KEPT = ".uky-patch-kept"
"""The folder in the tree's root where they go; git ignores it, and only its owner removes it."""


def keep(root: Path, path: str, content: bytes) -> str:
    """Write `content` to a file of its own that names `path`; the same content twice is one file.

    Returns that file's path below the root.

    Raises:
        TreeError: it cannot be written.
    """
    name = f"{'__'.join(parts(path))}.{digest(content)[:12]}"
    folder = root / KEPT
    try:
        disk.make_folder(folder)
        if disk.status(folder / ".gitignore") is None:
            disk.create(folder / ".gitignore", b"*\n")
        draft = folder / f"{name}.part"
        disk.remove(draft)
        disk.create(draft, content)
        disk.sync(draft)
        disk.replace(draft, folder / name)
        disk.sync(folder)
    except OSError as error:
        title = phrase("{path}: its changes cannot be kept, so nothing was changed", path=path)
        raise tree_error(error, title) from error
    return f"{KEPT}/{name}"
