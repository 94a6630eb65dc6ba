"""Which files are as git's HEAD or the installed wheel has them.

Such a file was put there by a switch of branches or by pip, and not edited by hand. Git is asked for hashes only, so no
content filter runs.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Mapping
from hashlib import new
from pathlib import Path
from typing import TYPE_CHECKING

from patcher.errors import TreeError
from patcher.worktree import files

if TYPE_CHECKING:
    from patcher.tree.source import Source


def delivered(root: Path, found: Mapping[str, Source | None]) -> frozenset[str]:
    """The paths of `found` whose content is that of HEAD or of the wheel.

    `found` has the files by path below the root, None for one that is not there. That counts as delivered if HEAD, or
    the wheel, has no such file either.
    """
    if not found:
        return frozenset()
    return _by_git(root, found) | _by_wheel(root, found)


def _by_git(root: Path, found: Mapping[str, Source | None]) -> frozenset[str]:
    from patcher.git.checkout import checkout

    place = checkout(root)
    if place is None:
        return frozenset()
    from patcher.git.series import below_top, committed

    try:
        held = committed(place, [below_top(place, path) for path in found])
    except TreeError:
        return frozenset()  # No commit yet, or a repository that git refuses: no evidence.
    known = {path: held[below][1] for path in found if (below := below_top(place, path)) in held}
    return frozenset(path for path, source in found.items() if _is_blob(source, known.get(path)))


def _is_blob(source: Source | None, blob: str | None) -> bool:
    """Whether the file is the blob with this hash; both may be missing. The hash's length tells SHA-1 from SHA-256."""
    if source is None or blob is None:
        return source is None and blob is None
    algorithm = new("sha256" if len(blob) == 64 else "sha1", usedforsecurity=False)
    algorithm.update(b"blob %d\0" % len(source.content) + source.content)
    return algorithm.hexdigest() == blob


def _by_wheel(root: Path, found: Mapping[str, Source | None]) -> frozenset[str]:
    known: dict[str, str] = {}  # Lines of RECORD: `verl/trainer/main_ppo.py,sha256=<base64 without "=">,8123`
    for record in sorted(root.glob("verl-*.dist-info/RECORD"))[:1]:
        try:
            lines = files.read_text(record, files.SOURCE_BYTES, errors="replace").splitlines()
        except OSError:
            continue
        known = {
            path: recorded for path, recorded, _ in (line.rsplit(",", 2) for line in lines if line.count(",") >= 2)
        }
    if not known:
        return frozenset()
    return frozenset(path for path, source in found.items() if known.get(path) == _recorded_hash(source))


def _recorded_hash(source: Source | None) -> str | None:
    if source is None:
        return None
    return f"sha256={urlsafe_b64encode(bytes.fromhex(source.sha256)).rstrip(b'=').decode()}"
