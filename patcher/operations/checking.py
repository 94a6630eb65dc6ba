"""Check: every use that a tree makes of some packages, held against releases of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from patcher.compat.forest import Forest
from patcher.compat.model import Report
from patcher.compat.pair import check_pair
from patcher.operations.history import Past, dated
from patcher.operations.repairing import Repaired, repair
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
    repaired: Repaired
    """What the records do about it."""

    @property
    def clean(self) -> bool:
        """Nothing is left but what is guarded."""
        return not self.report.of("break", "optional", "inert")


def check(session: Session, order: Order) -> Check:
    """Judge all uses. Raises ReleaseError for a release that cannot be had, UsageError for one that cannot be meant."""
    session = _session_of(session, order.verl)
    located = tuple(locate(one, session) for one in order.against)
    target = target_of(located, session)
    baseline = target_of([locate(one, session) for one in order.baseline], session) if order.baseline else None
    verl = session.environment.version("verl") or ""
    forest = Forest(session.tree.root)
    report = check_pair(forest, target, verl=verl, baseline=baseline)
    if order.since:
        report = dated(report, located, Past(forest, target, baseline, session.tree.root))
    repaired = repair(session, forest, target, report, baseline)
    return Check(repaired.repairs.before, session, repaired)


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
