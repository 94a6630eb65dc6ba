"""Diagnose a log: what it is read from, the symptoms, and the versions that decide which fix counts."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from patcher.diagnose.fixing import Fitting
from patcher.diagnose.folders import Series, is_of_sources, series
from patcher.diagnose.judging import judge
from patcher.diagnose.merging import Part, merged
from patcher.diagnose.model import Diagnosis
from patcher.diagnose.nearby import advice_near, logs_near
from patcher.diagnose.opening import STANDARD_INPUT, NoTextError, opened
from patcher.diagnose.runs import runs
from patcher.diagnose.scanning import Scanner
from patcher.diagnose.writing import is_being_written
from patcher.errors import UkyError, UsageError
from patcher.i18n import Phrase, phrase
from patcher.jobs.agent.folder import JOBS
from patcher.jobs.log_or_host import no_log
from patcher.profiles.phase_durations import usual_seconds

if TYPE_CHECKING:
    from patcher.diagnose.evidence import Evidence
    from patcher.plan.outcome import RecordOutcome
    from patcher.session.session import Session

_COMMAND = "uky-patch diagnose"
_UNKNOWN_PHASE = 600.0
"""Seconds without a word after which a log of no known phase stands still."""


def diagnose(session: Session, log: str, against: str | None = None) -> Diagnosis:
    """As `diagnosis_of`, for one who asks about a run: what tells nothing of any is an error.

    Raises UsageError for that too, and for a folder of sources, with the logs that are near it.
    """
    path = Path(log)
    if log != STANDARD_INPUT and not path.exists():
        raise no_log(session, log, _COMMAND)
    if path.is_dir() and is_of_sources(path):
        raise _of_sources(session, path)
    found = diagnosis_of(session, log, against)
    if found.blank and not (path.is_file() and is_being_written(path)):
        raise of_no_run(session, log, found, _COMMAND)
    return found


def diagnosis_of(session: Session, log: str, against: str | None = None) -> Diagnosis:
    """What a file, a folder's newest run or standard input (`-`) says, and what a good run's log had besides.

    Raises UsageError for a log that cannot be read, RecordError for symptoms that are none.
    """
    scanner = Scanner(session.symptoms)
    parts, logs, earlier = _newest(scanner, log)
    found = replace(judged(session, parts, log), notes=scanner.notes)
    if Path(log).is_dir():
        found = replace(found, logs=_names(logs), earlier=_names(earlier))
    return compared(found, logs, against)


def compared(found: Diagnosis, logs: Sequence[Series], against: str | None) -> Diagnosis:
    """The same with how the logs differ from a good run's, if one is named. Raises UsageError where it is none."""
    if against is None:
        return found
    from patcher.diagnose.comparing import compare

    difference = compare(log_lines(logs), log_lines(runs(series(against))[0]))
    return replace(found, missing=difference.missing, added=difference.added)


def judged(
    session: Session,
    parts: Sequence[Part],
    log: str = STANDARD_INPUT,
    *,
    installed: Mapping[str, str] | None = None,
    ended: bool | None = None,
    silent: bool | None = None,
) -> Diagnosis:
    """What logs of one run come to, with the fixes that count for the versions and the tree at hand.

    `installed`: where the run was; what is installed here by default. `ended`, `silent`: as `judge` has them.
    """
    evidence = merged(parts)
    silent = _silent(log, evidence) if silent is None else silent
    fitting = Fitting(_versions(session, evidence, installed), log=log if _plain(log) else "")
    found = judge(evidence, fitting, ended=ended, silent=silent)
    if any(offer.patch for finding in found.findings for offer in finding.fixes):
        root = str(session.root_option) if session.root_option is not None else ""
        fitting = replace(fitting, outcomes=_outcomes(session, fitting.versions), root=root)
        found = judge(evidence, fitting, ended=ended, silent=silent)
    return found


def _newest(scanner: Scanner, log: str) -> tuple[list[Part], list[Series], list[Series]]:
    """What the logs of the newest run say, those logs, and the earlier ones. Files of no run are passed over."""
    groups = runs(series(log))
    first: list[Part] | None = None
    for at, group in enumerate(groups):
        parts = [part for one in group if (part := _read(scanner, one, timed=len(group) > 1, alone=log)) is not None]
        if any(not part.evidence.blank for part in parts):
            return parts, group, [one for other in groups[at + 1 :] for one in other]
        first = first or parts
    return first or [Part(scanner.scan([]), 0.0)], groups[0], []


def _read(scanner: Scanner, one: Series, *, timed: bool, alone: str) -> Part | None:
    """As `read`; None for a file of a folder that is no text."""
    try:
        return read(scanner, one, timed=timed)
    except NoTextError:
        if alone == one.parts[-1]:
            raise
        return None


def _names(logs: Sequence[Series]) -> tuple[str, ...]:
    return tuple(name for one in logs for name in one.parts)


def _of_sources(session: Session, folder: Path) -> UsageError:
    logs = logs_near(session.symptoms, folder, deep=True)
    otherwise: Phrase = phrase("Name the log that the run writes: its standard output and standard error.")
    if (folder / JOBS).is_dir():
        otherwise = phrase("A job of this tree was started here. For its log: {command}", command=f"{_COMMAND} here")
    return UsageError(
        phrase("{folder} is a folder of sources, and no log", folder=folder),
        cause="" if logs else "no file below it tells of a training run",
        advice=advice_near(logs, _COMMAND, otherwise),
    )


def of_no_run(session: Session, log: str, found: Diagnosis, command: str) -> UsageError:
    """The error for a log that tells nothing of a run; `command` is what it was given to."""
    near = [] if log == STANDARD_INPUT else logs_near(session.symptoms, Path(log))
    otherwise = phrase("Name the log that the run writes: its standard output and standard error.")
    advice = advice_near(near, command, otherwise)
    if not found.lines and not Path(log).is_dir():
        return UsageError(phrase("{path} is empty", path=log), advice=advice)
    return UsageError(
        phrase("nothing of a training run is in {path}", path=log),
        cause=phrase("no line of {lines} tells a phase, a step, an error or an end", lines=f"{found.lines:,}"),
        advice=advice,
    )


def _plain(log: str) -> bool:
    """Whether commands such as `grep` can read it as it is: a file, and not a packed one."""
    return Path(log).is_file() and Path(log).suffix not in (".gz", ".bz2", ".xz", ".zst", ".zip")


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
    return time.time() - path.stat().st_mtime > limit_of(evidence)


def limit_of(evidence: Evidence) -> float:
    """Seconds without a word after which a run stands still."""
    return usual_seconds("standard", evidence.phase)[1] if evidence.phase is not None else _UNKNOWN_PHASE


def _versions(session: Session, evidence: Evidence, installed: Mapping[str, str] | None) -> Mapping[str, str]:
    """Those assumed, else those that the log tells, else those installed where the log tells of no others."""
    from patcher.packages.probe import ABSENT, assumed

    installed = _installed(session) if installed is None else installed
    if any(name in installed and installed[name] != version for name, version in evidence.versions.items()):
        installed = {}
    known = {**installed, **evidence.versions, **assumed(session.assume)}
    return {name: version for name, version in known.items() if version != ABSENT}


def _installed(session: Session) -> Mapping[str, str]:
    from patcher.packages import probe

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
    from patcher.patching.status import standing

    known = {name: version for name, version in versions.items() if name != "verl"}
    asked = replace(session, assume={**known, **session.assume}, given_lookup=lambda _: None)
    with contextlib.suppress(UkyError):
        return {outcome.id: outcome for outcome in standing(asked).outcomes}
    return {}
