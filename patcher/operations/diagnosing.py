"""Diagnose a log: what it is read from, the symptoms, and the versions that decide which fix counts."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from patcher.diagnosis.fixing import Fitting
from patcher.diagnosis.folders import Series, series
from patcher.diagnosis.judging import judge
from patcher.diagnosis.merging import Part, merged
from patcher.diagnosis.model import Diagnosis
from patcher.diagnosis.opening import STANDARD_INPUT, opened
from patcher.diagnosis.scanning import Scanner
from patcher.diagnosis.writing import is_being_written
from patcher.errors import UkyError
from patcher.profiles.expectations import expected

if TYPE_CHECKING:
    from patcher.diagnosis.evidence import Evidence
    from patcher.planning.outcome import RecordOutcome
    from patcher.session import Session

_UNKNOWN_PHASE = 600.0
"""Seconds without a word after which a log of no known phase stands still."""


def diagnose(session: Session, log: str, against: str | None = None) -> Diagnosis:
    """What a file, a folder of Ray's worker logs or standard input (`-`) says, and what a good run's log had besides.

    Raises UsageError for a log that cannot be read, RecordError for symptoms that are none.
    """
    scanner = Scanner(session.symptoms)
    logs = series(log)
    found = judged(session, [read(scanner, one, timed=len(logs) > 1) for one in logs], log)
    found = replace(found, notes=scanner.notes)
    if against is None:
        return found
    from patcher.diagnosis.comparing import compare

    difference = compare(log_lines(logs), log_lines(series(against)))
    return replace(found, missing=difference.missing, added=difference.added)


def judged(session: Session, parts: Sequence[Part], log: str = STANDARD_INPUT) -> Diagnosis:
    """What logs of one run come to, with the fixes that count for the versions and the tree at hand."""
    evidence = merged(parts)
    silent = _silent(log, evidence)
    fitting = Fitting(_versions(session, evidence))
    found = judge(evidence, fitting, silent=silent)
    if any(offer.patch for finding in found.findings for offer in finding.fixes):
        root = str(session.root_option) if session.root_option is not None else ""
        fitting = replace(fitting, outcomes=_outcomes(session, fitting.versions), root=root)
        found = judge(evidence, fitting, silent=silent)
    return found


def log_lines(logs: Sequence[Series]) -> Iterator[tuple[str, BinaryIO]]:
    """The parts of logs, each opened while it is its turn."""
    for one in logs:
        for name in one.parts:
            with opened(name) as stream:
                yield name, stream


def read(scanner: Scanner, one: Series, *, timed: bool = False) -> Part:
    """What one log says; `timed` where it is to be put in order with others."""
    evidence = scanner.scan(log_lines([one]), timed=timed)
    name = one.parts[-1]
    written = Path(name).stat().st_mtime if name != STANDARD_INPUT else time.time()
    return Part(evidence, written, one.housekeeping)


def _silent(log: str, evidence: Evidence) -> bool | None:
    """Whether a log that is being written on this machine has said nothing for longer than its phase may."""
    path = Path(log)
    if log == STANDARD_INPUT or not path.is_file() or evidence.finished is not None or not is_being_written(path):
        return None
    limit = expected("standard", evidence.phase)[1] if evidence.phase is not None else _UNKNOWN_PHASE
    return time.time() - path.stat().st_mtime > limit


def _versions(session: Session, evidence: Evidence) -> Mapping[str, str]:
    """Those assumed, else those that the log tells, else those installed where the log tells of no others."""
    from patcher.environment.probe import ABSENT, assumed

    installed = _installed(session)
    if any(name in installed and installed[name] != version for name, version in evidence.versions.items()):
        installed = {}
    known = {**installed, **evidence.versions, **assumed(session.assume)}
    return {name: version for name, version in known.items() if version != ABSENT}


def _installed(session: Session) -> Mapping[str, str]:
    from patcher.environment import probe

    try:
        here = session.has_tree_at_hand
        root, named = (session.tree.root, session.config.python) if here else (None, None)
        return {name: item.version for name, item in probe(session.python, root, named=named).packages.items()}
    except UkyError:
        if session.python is not None:
            raise
        return {}


def _outcomes(session: Session, versions: Mapping[str, str]) -> Mapping[str, RecordOutcome]:
    """Where the records stand on the tree at hand, for these versions alone; nothing where there is no tree."""
    if not session.has_tree_at_hand:
        return {}
    from patcher.operations.standing import standing
    from patcher.session import Session

    known = {name: version for name, version in versions.items() if name != "verl"}
    asked = Session(session.root_option, session.python, {**known, **session.assume}, session.folders, session.output)
    asked.lookup = lambda _: None
    with contextlib.suppress(UkyError):
        return {outcome.id: outcome for outcome in standing(asked).outcomes}
    return {}
