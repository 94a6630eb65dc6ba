"""What a check found, kept for the next one that asks the same of the same files.

Most checks are run again on what has not changed: by hooks, by CI on a warm machine, by somebody who wants the other
format. All that a result depends on is hashed: the tree's sources, scripts and settings by content; sources of packages
that may change in place by size and time; releases by version, as the cache of releases never changes one; the records,
the settings, the environment, and this tool's own files. A result of another format or owner counts as not there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patcher import __version__
from patcher.check.enclosing import enclosing, places
from patcher.check.targets import Released, as_installed, locate
from patcher.check.tree_digest import tree_digest
from patcher.data import shipped
from patcher.git.head import head
from patcher.packages.releases.cache import stamps
from patcher.packages.releases.kept import Kept

if TYPE_CHECKING:
    from patcher.check.result import CheckRequest
    from patcher.session.session import Session

_KEPT = 32
"""Results. One takes about 1 MB, most of it the texts that the records make."""
_CHANGING = ("editable", "folder", "checkout")
"""Origins of packages whose files change while the version stays."""


class ResultCache:
    """The place of one result. Nothing is kept of a session whose environment or symbols were handed to it."""

    def __init__(self, session: Session, request: CheckRequest) -> None:
        given = (session.given_lookup, session.given_environment, session.given_delivered)
        usable = request.drafts is None and all(one is None for one in given)
        self._session, self._request = session, request
        self._tree = _digest(session.tree.root) if usable else None

    def read(self) -> Mapping[str, Any] | None:
        """What was kept; None where there is nothing, or nothing that this user has written."""
        return self._place(self._tree).read() if self._tree is not None else None

    def keep(self, values: Mapping[str, Any]) -> None:
        """Keep a result, unless the tree was changed while it was made."""
        if self._tree is not None and _digest(self._session.tree.root) == self._tree:
            self._place(self._tree).keep(dict(values))

    def _place(self, tree: str) -> Kept:
        # What a check fetches is at hand for the next one, so this is asked after it again.
        return Kept("checks", [tree, *self._around()], _KEPT)

    def _around(self) -> Iterator[object]:
        """What the result depends on beside the tree."""
        from patcher.records.load import digest

        session, request = self._session, self._request
        yield __version__, sys.version_info, stamps(Path(__file__).parents[1]), stamps(shipped("docs"), "matrix.md")
        yield request, session.config, sorted(session.assume.items()), digest(session.record_files)
        yield session.environment, session.tree.root, head(session.tree.root), session.tree.ledger()
        asked = set()
        for one in (*(request.against or as_installed(session)), *request.baseline):
            asked.add(one.known_as)
            located = locate(one, session)
            yield located, stamps(located.package) if located.package and not isinstance(one.source, Released) else []
        for name, item in session.environment.packages.items():
            # What is installed of a package in question is the baseline, edits made there by hand included.
            if item.location is not None and name != "verl" and (item.origin in _CHANGING or name in asked):
                yield name, stamps(item.location)


def _digest(root: Path) -> str | None:
    """A hash of what a check reads of a tree and of the project around it."""
    around = enclosing(root)
    return tree_digest(root, places(around) if around is not None else ())
