"""The entry of `uky-patch diagnose`: from the path of a log to a `Diagnosis`.

The way of the data:

1. `log_files` finds the logs that a path stands for, and groups those of one run; the newest run is read.
2. `log_stream` opens each log, decodes it, and cuts it into blocks of whole lines.
3. `scanner` finds the lines that hold a word of any pattern; `log_accumulator` collects what they say as `Evidence`,
   with `tracebacks`, `line_meaning`, `progress` and `metrics`.
4. `evidence.merge_evidence` puts the evidence of several logs together.
5. `verdict` ranks what may be the root cause, and judges. The versions that decide which fix counts are those of the
   log, else those that are installed here.
6. `compare_logs` adds what a good run's log has besides, where one is named.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from patcher.diagnose.compare_logs import compare
from patcher.diagnose.diagnosis import Diagnosis
from patcher.diagnose.evidence import LogOfRun, merge_evidence
from patcher.diagnose.fixes import FixContext
from patcher.diagnose.log_files import (
    RotatedLog,
    advise_logs_near,
    group_by_run,
    is_of_sources,
    logs_named,
    logs_near,
    no_log_error,
)
from patcher.diagnose.log_stream import STANDARD_INPUT, NoTextError, open_log
from patcher.diagnose.scanner import Scanner
from patcher.diagnose.verdict import diagnosis_of
from patcher.errors import UkyError, UsageError
from patcher.i18n import Phrase, phrase
from patcher.logs.agent.writers import writers
from patcher.packages.environment import ABSENT, assumed, probe
from patcher.patching.status import records_status
from patcher.profiles.phase_durations import usual_seconds
from patcher.remote.agent.place import JOBS
from patcher.session.session import Session

if TYPE_CHECKING:
    from patcher.diagnose.evidence import Evidence
    from patcher.plan.outcome import RecordOutcome


def is_being_written(path: Path) -> bool | None:
    """Whether any process that may be looked into holds the file open for writing; None where that is unknown."""
    try:
        file = path.stat()
        pids = [int(one.name) for one in Path("/proc").iterdir() if one.name.isdigit()]
    except OSError:
        return None
    return any(True for _ in writers(file, pids))


_COMMAND = "uky-patch diagnose"
_UNKNOWN_PHASE = 600.0
"""Seconds without a word after which a log of no known phase stands still. Set by hand: as long as loading a large
model from a network disk is silent."""


def diagnose(session: Session, log: str, against: str | None = None) -> Diagnosis:
    """As `diagnose_any`, for one who asks about a run: what tells nothing of any is an error.

    Raises UsageError for that too, and for a folder of sources, with the logs that are near it.
    """
    path = Path(log)
    if log != STANDARD_INPUT and not path.exists():
        raise no_log_error(session, log, _COMMAND)
    if path.is_dir() and is_of_sources(path):
        raise _sources_error(session, path)
    found = diagnose_any(session, log, against)
    if found.blank and not (path.is_file() and is_being_written(path)):
        raise no_run_error(session, log, found, _COMMAND)
    return found


def diagnose_any(session: Session, log: str, against: str | None = None) -> Diagnosis:
    """What a file, a folder's newest run or standard input (`-`) says, and what a good run's log had besides.

    Raises UsageError for a log that cannot be read, RecordError for symptoms that are none.
    """
    scanner = Scanner(session.symptoms)
    parts, logs, earlier = _read_newest_run(scanner, log)
    found = replace(judge_logs(session, parts, log), notes=scanner.notes)
    if Path(log).is_dir():
        found = replace(found, logs=_names(logs), earlier=_names(earlier))
    return add_comparison(look_up(session, found), logs, against)


def look_up(session: Session, found: Diagnosis) -> Diagnosis:
    """The diagnosis with what releases, or the tree's configuration, say of a name that is missing.

    Releases are fetched where they are not cached, which may take a minute."""
    root = found.root
    if root is None or root.explanation is None or root.explanation.parts is None or not root.needs_more:
        return found
    parts, explanation = root.explanation.parts, root.explanation
    # What reads sources is loaded for such a failure alone.
    if parts.matter == "config-key" and session.has_tree_at_hand:
        from patcher.diagnose.directions import direction_of_key
        from patcher.diagnose.nearest_keys import bare, nearest_keys

        key, tree = bare(parts.names[0]), session.tree
        near, verl = nearest_keys(tree.root, tree.package, key), session.environment.packages.get("verl")
        # A last part alone, as a message may name it, stands in many places of a configuration.
        direction, came = direction_of_key(key, verl.version) if verl is not None and "." in key else (None, ())
        near = tuple(dict.fromkeys((*came, *near)))
        # Hydra advises to add any key that it does not know.
        remedy = "" if near or (direction is not None and direction.removed_in) else explanation.remedy
        explanation = replace(explanation, nearest=near, direction=direction, remedy=remedy)
    elif parts.package or parts.matter in ("missing-attribute", "unexpected-argument"):
        from patcher.diagnose.directions import direction_at

        direction = direction_at(session, parts, found.versions, explanation.at)
        # Of a name that is there Python's guess is none.
        guessed = parts.near and direction is not None and not direction.requirement
        explanation = replace(explanation, direction=direction, remedy="" if guessed else explanation.remedy)
    explained = replace(root, explanation=explanation)
    return replace(found, findings=tuple(explained if one is root else one for one in found.findings))


def add_comparison(found: Diagnosis, logs: Sequence[RotatedLog], against: str | None) -> Diagnosis:
    """The same with how the logs differ from a good run's, if one is named. Raises UsageError where it is none."""
    if against is None:
        return found
    difference = compare(log_lines(logs), log_lines(group_by_run(logs_named(against))[0]))
    return replace(found, missing=difference.missing, added=difference.added)


def judge_logs(
    session: Session,
    parts: Sequence[LogOfRun],
    log: str = STANDARD_INPUT,
    *,
    installed: Mapping[str, str] | None = None,
    ended: bool | None = None,
    silent: bool | None = None,
) -> Diagnosis:
    """What logs of one run come to, with the fixes that count for the versions and the tree at hand.

    `installed`: where the run was; what is installed here by default. `ended`, `silent`: as `diagnosis_of` has them.
    """
    evidence = merge_evidence(parts)
    silent = _is_silent(log, evidence) if silent is None else silent
    context = FixContext(_versions(session, evidence, installed), log=log if _is_plain_file(log) else "")
    found = diagnosis_of(evidence, context, ended=ended, silent=silent)
    if any(offer.patch for finding in found.findings for offer in finding.fixes):
        root = str(session.root_option) if session.root_option is not None else ""
        context = replace(context, outcomes=_record_outcomes(session, context.versions), root=root)
        found = diagnosis_of(evidence, context, ended=ended, silent=silent)
    return found


def _read_newest_run(scanner: Scanner, log: str) -> tuple[list[LogOfRun], list[RotatedLog], list[RotatedLog]]:
    """What the logs of the newest run say, those logs, and the earlier ones. Files of no run are passed over."""
    groups = group_by_run(logs_named(log))
    first: list[LogOfRun] | None = None
    for at, group in enumerate(groups):
        parts = [
            part for one in group if (part := _read_or_skip(scanner, one, timed=len(group) > 1, alone=log)) is not None
        ]
        if any(not part.evidence.blank for part in parts):
            return parts, group, [one for other in groups[at + 1 :] for one in other]
        first = first or parts
    return first or [LogOfRun(scanner.scan([]), 0.0)], groups[0], []


def _read_or_skip(scanner: Scanner, one: RotatedLog, *, timed: bool, alone: str) -> LogOfRun | None:
    """As `read_log`; None for a file of a folder that is no text."""
    try:
        return read_log(scanner, one, timed=timed)
    except NoTextError:
        if alone == one.parts[-1]:
            raise
        return None


def _names(logs: Sequence[RotatedLog]) -> tuple[str, ...]:
    return tuple(name for one in logs for name in one.parts)


def _sources_error(session: Session, folder: Path) -> UsageError:
    logs = logs_near(session.symptoms, folder, deep=True)
    otherwise: Phrase = phrase("Name the log that the run writes: its standard output and standard error.")
    if (folder / JOBS).is_dir():
        otherwise = phrase("A job of this tree was started here. For its log: {command}", command=f"{_COMMAND} here")
    return UsageError(
        phrase("{folder} is a folder of sources, and no log", folder=folder),
        cause="" if logs else "no file below it tells of a training run",
        advice=advise_logs_near(logs, _COMMAND, otherwise),
    )


def no_run_error(session: Session, log: str, found: Diagnosis, command: str) -> UsageError:
    """The error for a log that tells nothing of a run; `command` is what it was given to."""
    near = [] if log == STANDARD_INPUT else logs_near(session.symptoms, Path(log))
    otherwise = phrase("Name the log that the run writes: its standard output and standard error.")
    advice = advise_logs_near(near, command, otherwise)
    if not found.lines and not Path(log).is_dir():
        return UsageError(phrase("{path} is empty", path=log), advice=advice)
    return UsageError(
        phrase("nothing of a training run is in {path}", path=log),
        cause=phrase("no line of {lines} tells a phase, a step, an error or an end", lines=f"{found.lines:,}"),
        advice=advice,
    )


def _is_plain_file(log: str) -> bool:
    """Whether commands such as `grep` can read it as it is: a file, and not a packed one."""
    return Path(log).is_file() and Path(log).suffix not in (".gz", ".bz2", ".xz", ".zst", ".zip")


def log_lines(logs: Sequence[RotatedLog]) -> Iterator[tuple[str, BinaryIO]]:
    """The parts of logs, each opened while it is its turn."""
    for one in logs:
        for name in one.parts:
            with open_log(name) as stream:
                yield name, stream


def read_log(scanner: Scanner, one: RotatedLog, *, timed: bool = False) -> LogOfRun:
    """What one log says; `timed` where it is to be put in order with others."""
    evidence = scanner.scan(log_lines([one]), timed=timed)
    name = one.parts[-1]
    written = Path(name).stat().st_mtime if name != STANDARD_INPUT else time.time()
    return LogOfRun(evidence, written, one.housekeeping)


def _is_silent(log: str, evidence: Evidence) -> bool | None:
    """Whether a log that is being written on this machine has said nothing for longer than its phase may."""
    path = Path(log)
    if log == STANDARD_INPUT or not path.is_file() or evidence.finished is not None or not is_being_written(path):
        return None
    return time.time() - path.stat().st_mtime > silence_limit(evidence)


def silence_limit(evidence: Evidence) -> float:
    """Seconds without a word after which a run stands still."""
    return usual_seconds("standard", evidence.phase)[1] if evidence.phase is not None else _UNKNOWN_PHASE


def _versions(session: Session, evidence: Evidence, installed: Mapping[str, str] | None) -> Mapping[str, str]:
    """Those assumed, else those that the log tells, else those installed where the log tells of no others."""
    installed = _installed_versions(session) if installed is None else installed
    if any(name in installed and installed[name] != version for name, version in evidence.versions.items()):
        installed = {}
    known = {**installed, **evidence.versions, **assumed(session.assume)}
    return {name: version for name, version in known.items() if version != ABSENT}


def _installed_versions(session: Session) -> Mapping[str, str]:
    try:
        here = session.has_tree_at_hand
        root, named = (session.tree.root, session.config.python) if here else (None, None)
        return {name: item.version for name, item in probe(session.python, root, named=named).packages.items()}
    except UkyError:
        if session.python is not None:
            raise
        return {}


def _record_outcomes(session: Session, versions: Mapping[str, str]) -> Mapping[str, RecordOutcome]:
    """Where the records stand on the tree at hand, for these versions alone; nothing where there is no tree."""
    if not session.has_tree_at_hand:
        return {}
    known = {name: version for name, version in versions.items() if name != "verl"}
    asked = replace(session, assume={**known, **session.assume}, given_lookup=lambda _: None)
    with contextlib.suppress(UkyError):
        return {outcome.id: outcome for outcome in records_status(asked).outcomes}
    return {}
