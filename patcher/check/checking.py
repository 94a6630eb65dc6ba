"""Check: every use that a tree makes of some packages, held against releases of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from patcher.check.known_breaks import keep_breaks
from patcher.check.result import Check, CheckRequest
from patcher.check.result_cache import ResultCache
from patcher.errors import UsageError
from patcher.i18n import phrase
from patcher.packages.agent.folders import is_pep440
from patcher.terminal.progress import progress

if TYPE_CHECKING:
    from patcher.session.session import Session

_KEPT = ("report", "after", "repaired", "in_baseline", "accepted", "unreadable", "notes", "empty")
"""What of a Check the result cache keeps."""


def check(session: Session, request: CheckRequest) -> Check:
    """Judge all uses of a tree, or tell what came of it when nothing has changed since.

    Raises:
        ReleaseError: a release cannot be fetched.
        UsageError: what to check against cannot be read, or is not installed.
    """
    session = session_on(session, request.verl)
    cache = ResultCache(session, request)
    kept = cache.read()
    if kept is not None:
        done = Check(session=session, **kept)
        keep_breaks(done, request)
        return done
    from patcher.check.computing import compute

    done, lasting = compute(session, request)
    if lasting:
        cache.keep({name: getattr(done, name) for name in _KEPT})
    keep_breaks(done, request)
    return done


def session_on(session: Session, verl: str) -> Session:
    """The session itself, or one on the tree of a released verl. Raises ReleaseError, or UsageError for a range."""
    if not verl:
        return session
    if not is_pep440(verl):
        raise UsageError(
            phrase("--verl {verl!r} names no single release", verl=verl),
            advice=phrase("Name one, as in --verl 0.7.1; with --matrix it may be a range: --verl '>=0.6'."),
        )
    from patcher.packages.releases import wheel

    try:
        folder = wheel("verl", verl, progress=progress)
    finally:
        progress("")
    # The tree is that release of verl, whatever was assumed before.
    assume = {name: version for name, version in session.assume.items() if name != "verl"}
    return replace(session, root_option=folder, assume=assume)
