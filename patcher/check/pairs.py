"""The matrix: which pairs are meant, their sources, and every pair's verdict."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from patcher.check.crossing import Crossing, cross
from patcher.check.fetching import fetch_sources
from patcher.check.matrix import Matrix, Missing
from patcher.check.wanted_releases import known_to_records, parse_against, wanted_releases

if TYPE_CHECKING:
    from patcher.packages.releases import Progress
    from patcher.records.model import Record
    from patcher.session.session import Session


@dataclass(frozen=True, slots=True)
class Order:
    """`verl` is a specifier ("": the releases that the records speak of); `against` as on the command line."""

    verl: str = ""
    against: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """The command line that asks for it."""
        verl = ("--verl", self.verl) if self.verl else ()
        against = [part for item in self.against for part in ("--against", item)]
        return shlex.join(("uky-patch", "check", "--matrix", *verl, *against))


def survey_releases(session: Session, order: Order, progress: Progress) -> Matrix:
    """Judge all pairs that the order means.

    Raises UsageError where no release is meant, ReleaseError where a package is not known at all.
    """
    records = session.records_anywhere
    wanted = [record for record in records if record.enabled]
    return cross(crossing_of(order, wanted, progress), progress)


def crossing_of(order: Order, records: Sequence[Record], progress: Progress) -> Crossing:
    """The pairs that the order means, with their sources fetched."""
    from patcher.packages.releases import versions

    (package, specifier), fixed = parse_against(order.against)
    verl = wanted_releases("verl", order.verl or known_to_records(records), versions("verl"))
    releases = wanted_releases(package, specifier, versions(package))
    rows = fetch_sources("verl", verl, progress)
    columns = fetch_sources(package, releases, progress)
    beside: dict[str, tuple[str, Path]] = {}
    for name, version in fixed.items():
        folder = fetch_sources(name, (version,), progress)[version]
        _must_be_there(folder)
        assert isinstance(folder, Path)
        beside[name] = (version, folder)
    return Crossing(package, rows, columns, tuple(records), beside)


def _must_be_there(folder: Path | Missing) -> None:
    from patcher.errors import ReleaseError
    from patcher.i18n import phrase

    if isinstance(folder, Missing):
        raise ReleaseError(
            phrase("the sources of {release} cannot be had", release=folder.release), cause=folder.reason
        )
