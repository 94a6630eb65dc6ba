"""Breaks that the last check of a tree has left, kept so that `status` knows of them without making a check.

The matrix says that records leave nothing broken in a release; a fork of that release may have edits of its own, and
only `check` reads them. What it finds is kept with the digest of each file that has one, as that file is and as the
records make it: another content counts as not known.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

from patcher.errors import TreeError
from patcher.packages.agent.folders import distribution_of
from patcher.packages.environment import ABSENT
from patcher.packages.releases.kept import Kept
from patcher.tree.source import sha256_of
from patcher.worktree.hashing import digest_of

if TYPE_CHECKING:
    from patcher.check.result import Check, CheckRequest
    from patcher.session.session import Session

_TREES = 256
"""Trees that something is kept of, a few hundred bytes each. Set by hand."""


def keep_breaks(done: Check, request: CheckRequest) -> None:
    """Keep what is left in the fork's own tree once records are applied; one against a baseline leaves out what stood
    before."""
    if request.verl or request.baseline:
        return
    session = done.session
    breaks = Counter(finding.file for finding in done.after.of("break"))
    texts, left = done.repaired.plan.texts, {}
    for file, count in breaks.items():
        planned = (digest_of(texts[file].encode()),) if file in texts else ()
        with suppress(TreeError):  # A script of the project around the tree is not one of the tree's files.
            left[file] = (count, (sha256_of(session.tree.read(file)), *planned))
    place = _place(session)
    known = place.read() or {}
    against = tuple(sorted(done.report.against.items()))
    if known.get(against) != left:
        place.keep({**known, against: left})


def known_breaks(session: Session) -> int | None:
    """How many breaks the last check has left in files that are still what they were, on what is installed here.

    None where it is not known: no check of this tree was made on that, or the files with breaks were edited since.
    """
    counts = []
    for against, left in (_place(session).read() or {}).items():
        if all((session.environment.version(distribution_of(name)) or ABSENT) == version for name, version in against):
            same = [count for file, (count, digests) in left.items() if _digest(session, file) in digests]
            if same or not left:
                counts.append(sum(same))
    return max(counts, default=None)


def _digest(session: Session, file: str) -> str:
    try:
        return sha256_of(session.tree.read(file))
    except TreeError:
        return ""


def _place(session: Session) -> Kept:
    return Kept("breaks", [session.tree.root], _TREES)
