"""Drafts of records for what no record repairs, with the releases on this machine as witnesses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from patcher.analysis.model import Report
from patcher.analysis.symbols import Symbols
from patcher.check.drafts import Draft, Ground, Releases, Written, draft_records, write_drafts
from patcher.check.history import Past, cached_folder, earlier_releases
from patcher.check.targets import Located
from patcher.packages.agent.folders import package_in

if TYPE_CHECKING:
    from patcher.session.session import Session


@dataclass(frozen=True, slots=True)
class Drafted:
    drafts: tuple[Draft, ...]
    files: Written


def draft(
    report: Report,
    located: Iterable[Located],
    past: Past,
    session: Session,
    folder: Path,
    standing: Mapping[str, str],
) -> Drafted:
    """Write a draft for each finding that a sound repair is known for. Raises UsageError for a bad folder.

    `standing` are the texts of the files that records have changed, by path.
    """
    names = {one.asked.module: one.asked.known_as for one in located}

    def symbols(package: str, version: str) -> Symbols | None:
        place = cached_folder(names.get(package, package), version)
        found = package_in(place, package) if place is not None else None
        return Symbols(found) if found is not None else None

    known = {
        module: [version for version in earlier_releases(name, "", fetch=False) if cached_folder(name, version)]
        for module, name in names.items()
    }
    ground = Ground(
        past.forest, past.target, report.verl, Releases(known, symbols), past.baseline, session.config.marker
    )
    taken = [record.id for record in session.records]
    drafts = draft_records(report.findings, ground, taken, standing)
    return Drafted(drafts, write_drafts(drafts, folder))
