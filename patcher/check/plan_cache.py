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
from patcher.plan.inputs import PlanInputs
from patcher.plan.outcome import Plan
from patcher.records.load import digest
from patcher.session.session import Session
from patcher.worktree.hashing import digest_of

CHECKED = ("vllm", "sglang", "transformers", "megatron-core")
"""Packages whose sources are read to see whether a tree still has what a record repairs."""
_KEPT = 32
"""Plans. One takes about 1 MB, most of it the texts that the records make; two are made for each host."""


class PlanCache:
    """The places of a session's plans: a migration makes one for the host and one for here, of the same tree."""

    def __init__(self, session: Session, inputs: PlanInputs) -> None:
        """All plans are of the files and the applied records of `inputs`."""
        self.session = session
        self.request = session.request()
        self._tree = tree_digest(session.tree.root) if session.given_lookup is None else None
        # The order in which a set is shown is another one in each process.
        wanted = [sorted(getattr(self.request, one.name)) for one in fields(self.request)]
        code = stamps(Path(__file__).parents[1]), stamps(shipped("docs"), "matrix.md")
        shared = (__version__, sys.version_info, *code, digest(session.record_files), session.config, wanted)
        files = sorted(inputs.files.items()), inputs.applied
        self._shared = digest_of(repr((shared, files)).encode(errors="replace"))

    def read(self, inputs: PlanInputs, *, elsewhere: bool) -> Plan | None:
        """The plan that was kept; None where there is none, or nothing that this user has written."""
        plan = (self._place(inputs, elsewhere).read() or {}).get("plan") if self._tree is not None else None
        return plan if isinstance(plan, Plan) else None

    def keep(self, plan: Plan, inputs: PlanInputs, *, elsewhere: bool) -> None:
        """Keep a plan, unless the tree was changed while it was made, or a package may change while its version stays.

        What was asked for symbols while it was made must stay true as well, which the caller knows.
        """
        if self._tree is None or not all(map(is_release, _checked(inputs))):
            return
        if any(folder.is_dir() and not whole(folder) for folder in _sources(inputs)):
            return  # Damaged, so that it did not count; the next one may find it mended.
        if tree_digest(self.session.tree.root) == self._tree:
            self._place(inputs, elsewhere).keep({"plan": plan})

    def _place(self, inputs: PlanInputs, elsewhere: bool) -> Kept:
        at_hand: list[object] = [folder.is_dir() for folder in _sources(inputs)]
        if not elsewhere:
            at_hand += [stamp_of(item) for item in inputs.environment.packages.values()]
        asked = (inputs.environment, elsewhere, at_hand)
        return Kept("plans", [self._shared, self._tree, *asked], _KEPT)


def _checked(inputs: PlanInputs) -> list[Installed]:
    packages = inputs.environment.packages
    return [packages[name] for name in CHECKED if name in packages]


def _sources(inputs: PlanInputs) -> list[Path]:
    """Where the cache would have the sources that `Causes` reads, which fetches none."""
    return [sources_folder(item.name, item.version.partition("+")[0]) for item in _checked(inputs)]
