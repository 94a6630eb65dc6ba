"""A series of commits, one for each step of a change, made beside the work tree: it already is as the last step says.

Hooks do not run: one that reformats a patched file would part it from the ledger.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from patcher.tree.checkout import Checkout


@dataclass(frozen=True, slots=True)
class Step:
    """One commit: its message, and the bytes that its files have from it on."""

    message: str
    files: Mapping[str, bytes]


def commit_series(checkout: Checkout, steps: Sequence[Step]) -> tuple[str, ...]:
    """Commit `steps` on top of HEAD, and nothing else that is staged. Returns the commits' full hashes.

    Raises:
        TreeError: git refuses; HEAD and the index are then as they were.
    """
    start = checkout.git("rev-parse", "HEAD").strip()
    below = checkout.git("rev-parse", "--show-prefix").strip()
    commits: list[str] = []
    with tempfile.TemporaryDirectory(prefix="uky-patch-") as scratch:
        index = {"GIT_INDEX_FILE": str(Path(scratch) / "index")}
        checkout.git("read-tree", start, env=index)
        for step in steps:
            for path, content in step.files.items():
                _stage(checkout, below + path, content, Path(scratch), index)
            tree = checkout.git("write-tree", env=index).strip()
            parent = commits[-1] if commits else start
            commits.append(checkout.git("commit-tree", tree, "-p", parent, "-m", step.message).strip())
    if commits:
        checkout.git("update-ref", "-m", "uky-patch apply", "HEAD", commits[-1], start)
        checkout.git("reset", "--quiet", "--", *dict.fromkeys(path for step in steps for path in step.files))
    return tuple(commits)


def _stage(checkout: Checkout, path: str, content: bytes, scratch: Path, index: Mapping[str, str]) -> None:
    blob = scratch / "blob"
    blob.write_bytes(content)
    name = checkout.git("hash-object", "-w", f"--path={path}", str(blob)).strip()
    entry = checkout.git("ls-files", "--stage", "--", f":/{path}", env=index, literal=False).partition(" ")[0]
    checkout.git("update-index", "--add", "--cacheinfo", f"{entry or '100644'},{name},{path}", env=index)
