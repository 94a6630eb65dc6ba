"""The plan for a host, kept for the next migration of the same tree to the same versions.

A migration is run again and again, mostly with nothing to do, and making the plan takes most of its time. All
that a plan depends on is hashed: the tree by content, the records, the settings, the versions, the ledger, this tool's
own files. Nothing is kept where a package's answers may change while its version stays: of an editable install, of a
nightly, of a release whose sources were not at hand, so that a symbol counted as unknown.
"""

from __future__ import annotations

import sys
from dataclasses import fields
from pathlib import Path

from patcher import __version__
from patcher.check.tree_digest import tree_digest
from patcher.data import shipped
from patcher.packages.agent.installed import Installed
from patcher.packages.environment import is_release, stamp_of
from patcher.packages.releases.cache import sources_folder, stamps, whole
from patcher.packages.releases.kept import Kept
from patcher.plan.inputs import PlanInputs, Request
from patcher.plan.outcome import Plan
from patcher.records.load import digest
from patcher.session.session import Session

CHECKED = ("vllm", "transformers")
"""Packages whose sources are read to see whether a tree still has what a record repairs."""
_KEPT = 32
"""Plans. One takes about 1 MB, most of it the texts that the records make; two are made for each host."""


class PlanCache:
    """The place of one plan."""

    def __init__(self, session: Session, request: Request, inputs: PlanInputs, *, elsewhere: bool) -> None:
        self._session, self._request, self._inputs, self._elsewhere = session, request, inputs, elsewhere
        self._tree = tree_digest(session.tree.root) if session.given_lookup is None else None

    def read(self) -> Plan | None:
        """The plan that was kept; None where there is none, or nothing that this user has written."""
        plan = (self._place(self._tree).read() or {}).get("plan") if self._tree is not None else None
        return plan if isinstance(plan, Plan) else None

    def keep(self, plan: Plan) -> None:
        """Keep a plan, unless the tree was changed while it was made, or a package may change while its version stays.

        What was asked for symbols while it was made must stay true as well, which the caller knows.
        """
        if self._tree is None or not all(map(is_release, self._checked())):
            return
        if any(folder.is_dir() and not whole(folder) for folder in self._sources()):
            return  # Damaged, so that it did not count; the next one may find it mended.
        if tree_digest(self._session.tree.root) == self._tree:
            self._place(self._tree).keep({"plan": plan})

    def _checked(self) -> list[Installed]:
        packages = self._inputs.environment.packages
        return [packages[name] for name in CHECKED if name in packages]

    def _sources(self) -> list[Path]:
        """Where the cache would have the sources that `Causes` reads, which fetches none."""
        return [sources_folder(item.name, item.version.partition("+")[0]) for item in self._checked()]

    def _place(self, tree: str) -> Kept:
        session, inputs = self._session, self._inputs
        code = stamps(Path(__file__).parents[1]), stamps(shipped("docs"), "matrix.md")
        texts = sorted(inputs.files.items())
        # The order in which a set is shown is another one in each process.
        wanted = [sorted(getattr(self._request, one.name)) for one in fields(self._request)]
        at_hand: list[object] = [folder.is_dir() for folder in self._sources()]
        if not self._elsewhere:
            at_hand += [stamp_of(item) for item in inputs.environment.packages.values()]
        asked = (wanted, self._elsewhere, session.config, inputs.environment, inputs.applied, at_hand)
        basis = [__version__, sys.version_info, *code, tree, digest(session.record_files), texts, *asked]
        return Kept("plans", basis, _KEPT)
