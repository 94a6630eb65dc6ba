"""What is laid by for good: edits that a forced revert replaces, a damaged ledger, the pre-images of another release.

It goes to a folder in the tree's root that git ignores, and that only its owner removes.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from patcher.i18n import phrase
from patcher.tree import disk
from patcher.tree.ledger import Ledger, dump
from patcher.tree.paths import FOLDER, parts
from patcher.tree.source import digest
from patcher.tree.trouble import tree_error

if TYPE_CHECKING:
    from patcher.tree.storage import Storage

KEPT = ".uky-patch-kept"
"""The folder in the tree's root."""


def keep(root: Path, path: str, content: bytes) -> str:
    """Write `content` to a file of its own that names `path`; the same content twice is one file.

    Returns that file's path below the root.

    Raises:
        TreeError: it cannot be written.
    """
    name = f"{'__'.join(parts(path))}.{digest(content)[:12]}"
    try:
        _write(_folder(root) / name, content)
    except OSError as error:
        title = phrase("{path}: its changes cannot be kept, so nothing was changed", path=path)
        raise tree_error(error, title) from error
    return f"{KEPT}/{name}"


def keep_release(storage: Storage, ledger: Ledger, release: str) -> str:
    """Copy `ledger`, its pre-images and their notes to a folder that is laid out like a tree's own, named after
    `release`; the same ones twice are one folder. Returns that folder's path below the root.

    Raises:
        TreeError: they cannot be written.
    """
    written = dump(ledger)
    name = f"verl-{re.sub(r'[^0-9A-Za-z.+-]', '_', release) or 'unknown'}.{digest(written)[:12]}"
    try:
        folder = _folder(storage.root) / name
        inner = folder / FOLDER
        for place in (folder, inner, inner / "originals"):
            disk.make_folder(place)
        for original in {file.original for file in ledger.files.values()}:
            for found in (original, f"{original}.json"):
                if disk.status(storage.originals / found) is not None:
                    _write(inner / "originals" / found, disk.read(storage.originals / found)[0])
        _write(inner / "ledger.json", written)
        for place in (inner, folder):
            disk.sync(place)
    except OSError as error:
        title = phrase("{path}: the pre-images cannot be kept, so nothing was changed", path=storage.folder)
        raise tree_error(error, title) from error
    return f"{KEPT}/{name}"


def move_aside(root: Path, place: Path) -> None:
    """Give whatever is at `place`, a file or not, a name of its own in the folder. Raises OSError."""
    folder, number = _folder(root), 1
    while disk.status(target := folder / f"{place.name}.{number}") is not None:
        number += 1
    disk.replace(place, target)
    disk.sync(folder)


def _folder(root: Path) -> Path:
    folder = root / KEPT
    disk.make_folder(folder)
    if disk.status(folder / ".gitignore") is None:
        disk.create(folder / ".gitignore", b"*\n")
    return folder


def _write(place: Path, content: bytes) -> None:
    draft = place.with_name(f"{place.name}.part")
    disk.remove(draft)
    disk.create(draft, content)
    disk.sync(draft)
    disk.replace(draft, place)
    disk.sync(place.parent)
