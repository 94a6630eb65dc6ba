"""Which files are as git's HEAD or the installed wheel has them, and which git has gone on with.

Such a file was put there by a switch of branches or by pip, and not edited by hand. Git is asked for hashes only, so no
content filter runs.
"""

from __future__ import annotations

import os
from base64 import urlsafe_b64encode
from collections.abc import Collection, Mapping
from hashlib import new
from pathlib import Path
from typing import TYPE_CHECKING

from patcher.errors import TreeError
from patcher.worktree import files
from patcher.worktree.hashing import digest_of

if TYPE_CHECKING:
    from patcher.tree.source import Source


def delivered(root: Path, found: Mapping[str, Source | None]) -> frozenset[str]:
    """The paths of `found` whose content is that of HEAD or of the wheel.

    `found` has the files by path below the root, None for one that is not there. That counts as delivered if HEAD, or
    the wheel, has no such file either.
    """
    if not found:
        return frozenset()
    contents = {path: source.content if source is not None else None for path, source in found.items()}
    return as_committed(root, contents) | _by_wheel(root, found)


def as_committed(root: Path, found: Mapping[str, bytes | None]) -> frozenset[str]:
    """The paths of `found` whose content is that of HEAD; None of one that is not there."""
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
    return frozenset(path for path, content in found.items() if _is_blob(content, known.get(path)))


def gone_on(root: Path, known: Mapping[str, tuple[bytes, Collection[str]]]) -> frozenset[str]:
    """The paths at which a commit before HEAD has the content given, and HEAD one that has none of the digests given.

    So a commit has put something there since: a merge has, say, and a hand has edited that. Where no commit ever had
    the content, as after an apply to uncommitted edits, HEAD may as well be the older one.
    """
    from patcher.git.checkout import checkout

    place = checkout(root) if known else None
    if place is None:
        return frozenset()
    from patcher.git.history import contents

    # `:100644 100644 <hash before> <hash after> M`; a merge is compared with the branch that it was made on.
    form = ("-m", "--first-parent", "--format=", "--raw", "--no-abbrev", "--no-renames", "--no-ext-diff")
    found = set()
    try:
        for path, content in contents(place, "HEAD", known).items():
            before, digests = known[path]
            if digest_of(content) in digests:
                continue
            listing = os.fsdecode(place.git.run("log", *form, "HEAD", "--", place.prefix + path))
            blobs = {blob for line in listing.splitlines() for blob in line.split()[2:4]}
            if any(_blob(before, digits) in blobs for digits in {len(blob) for blob in blobs}):
                found.add(path)
    except TreeError:
        return frozenset()
    return frozenset(found)


def _is_blob(content: bytes | None, blob: str | None) -> bool:
    """Whether the file is the blob with this hash; both may be missing."""
    if content is None or blob is None:
        return content is None and blob is None
    return _blob(content, len(blob)) == blob


def _blob(content: bytes, digits: int) -> str:
    """Git's hash of a content; SHA-1 has 40 digits, SHA-256 has 64."""
    algorithm = new("sha256" if digits == 64 else "sha1", usedforsecurity=False)
    algorithm.update(b"blob %d\0" % len(content) + content)
    return algorithm.hexdigest()


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
