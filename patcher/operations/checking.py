"""Check: every use that a tree makes of some packages, held against releases of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from patcher.compat.forest import Forest
from patcher.compat.model import Finding, Report
from patcher.compat.pair import check_pair
from patcher.operations.targets import Against, locate, target_of

if TYPE_CHECKING:
    from patcher.session import Session


@dataclass(frozen=True, slots=True)
class Order:
    """What check was asked for. `verl` is a release to fetch; "" means the session's tree."""

    against: tuple[Against, ...]
    verl: str = ""
    baseline: tuple[Against, ...] = ()
    since: bool = True


@dataclass(frozen=True, slots=True)
class Check:
    """What a check came to."""

    report: Report
    session: Session
    """Of the tree that was checked."""

    @property
    def clean(self) -> bool:
        """Nothing is left but what is guarded."""
        return not self.report.of("break", "optional", "inert")


def check(session: Session, order: Order) -> Check:
    """Judge all uses. Raises ReleaseError for a release that cannot be had, UsageError for one that cannot be meant."""
    session = _session_of(session, order.verl)
    target = target_of([locate(one, session) for one in order.against], session)
    baseline = target_of([locate(one, session) for one in order.baseline], session) if order.baseline else None
    verl = session.environment.version("verl") or ""
    report = check_pair(Forest(session.tree.root), target, verl=verl, baseline=baseline)
    return Check(report, session)


def _session_of(session: Session, verl: str) -> Session:
    """The session itself, or one on the tree of a released verl."""
    if not verl:
        return session
    from patcher.releases import wheel
    from patcher.reporting.progress import progress

    folder = wheel("verl", verl, progress=progress)
    progress("")
    assume = {name: version for name, version in session.assume.items() if name != "verl"}
    return replace(session, root_option=folder, assume=assume)
