"""The entry of `uky-patch diagnose`: from the path of a log to a `Diagnosis`.

The data flow:

1. `log_files` finds the log files below a path and groups them by run. Only the newest run is read.
2. `log_stream` opens each log, decodes it, and cuts it into blocks of whole lines.
3. `scanner` finds the lines that hold a word of any pattern; `log_accumulator` collects from them an `Evidence`,
   with `tracebacks`, `line_meaning`, `progress` and `metrics`.
4. `evidence.merge_evidence` merges the evidence of several logs of one run.
5. `root_cause` ranks what may be the root cause, and `verdict` judges the run. Which fixes apply depends on versions:
   those that the log names, else those that are installed here.
6. `compare_logs` adds the differences from the log of a good run, where the user names one.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeAlias

from patcher.diagnose.compare_logs import compare
from patcher.diagnose.diagnosis import Diagnosis
from patcher.diagnose.evidence import LogOfRun, merge_evidence
from patcher.diagnose.fetch_limit import SECONDS, in_time, limited_to, still_to_fetch
from patcher.diagnose.fixes import FixContext
from patcher.diagnose.log_argument import no_log_error, no_run_error, sources_error
from patcher.diagnose.log_files import RotatedLog, group_by_run, is_of_sources, logs_named
from patcher.diagnose.log_stream import STANDARD_INPUT, NoTextError, open_log
from patcher.diagnose.scanner import Scanner
from patcher.diagnose.verdict import diagnosis_of
from patcher.errors import UkyError, UsageError
from patcher.i18n import Phrase, phrase
from patcher.logs.agent.writers import writers
from patcher.logs.duration import duration
from patcher.logs.labels import strip_labels
from patcher.packages.environment import ABSENT, assumed, probe
from patcher.patching.status import records_status
from patcher.profiles.phase_durations import usual_seconds
from patcher.session.session import Session

if TYPE_CHECKING:
    from patcher.diagnose.evidence import Evidence
    from patcher.logs.milestones import Phase
    from patcher.plan.outcome import RecordOutcome


def is_being_written(path: Path) -> bool | None:
    """Whether any process holds the file open for writing; None where /proc cannot tell.

    The processes of other users are visible to root only.
    """
    try:
        file = path.stat()
        pids = [int(one.name) for one in Path("/proc").iterdir() if one.name.isdigit()]
    except OSError:
        return None
    return any(True for _ in writers(file, pids))


_COMMAND = "uky-patch diagnose"
_UNKNOWN_PHASE = 600.0
"""Seconds without output after which a run in no known phase counts as stalled. Set by hand: loading a large model from
a network disk can be silent for as long."""


_LONG_AGO = 3600.0
"""Seconds without a write after which a log that no process here writes is told not to be that of a live run. Set by
hand: one that was just copied from elsewhere may well be."""

OnProgress: TypeAlias = "Callable[[Phrase | str], object]"
"""Is told what is under way where that may take a while, and "" when it is done."""


def diagnose(
    session: Session, log: str, against: str | None = None, progress: OnProgress = lambda _: None
) -> Diagnosis:
    """Diagnose the log of a run, for the command line: as `diagnose_any`, but a log without any trace of a run is an
    error.

    Raises UsageError also for that, for a path that does not exist, and for a folder of source code. The error names
    the logs of runs that lie near it.
    """
    path = Path(log)
    if log != STANDARD_INPUT and not path.exists():
        raise no_log_error(session, log, _COMMAND)
    if path.is_dir() and is_of_sources(path):
        raise sources_error(session, path, _COMMAND)
    found = diagnose_any(session, log, against, progress)
    if found.blank and not (path.is_file() and is_being_written(path)):
        raise no_run_error(session, log, found, _COMMAND)
    return found


def diagnose_any(
    session: Session, log: str, against: str | None = None, progress: OnProgress = lambda _: None
) -> Diagnosis:
    """Diagnose a file, the newest run in a folder, or standard input (`-`).

    Args:
        against: the log of a good run, to compare with.

    Raises UsageError for a log that cannot be read, RecordError for a malformed symptom record.
    """
    scanner = Scanner(session.symptoms)
    require_good_log(session, scanner, log, against)
    parts, logs, earlier = _read_newest_run(scanner, log, progress)
    found = judge_logs(session, parts, log)
    found = replace(found, live=found.verdict in ("running", "stalled") and _may_be_live(found, logs))
    found = replace(found, notes=(*_notes_on_end(found, parts, logs), *scanner.notes))
    if Path(log).is_dir():
        found = replace(found, logs=_names(logs), earlier=_names(earlier))
    return add_comparison(look_up(session, found), logs, against)


_REGISTERS = "AutoConfig.register"
"""Words of the fix for a model that comes with code of its own."""


def look_up(session: Session, found: Diagnosis) -> Diagnosis:
    """Add what the sources of releases, or the configuration of the tree, say of a name that is missing.

    Only for a root cause that no specific record covers. Sources of releases that are not in the cache are downloaded
    for a minute at most.
    """
    with limited_to(SECONDS) as limit:
        found = _looked_up(session, found)
    return replace(found, notes=(*found.notes, *still_to_fetch(limit)))


def _looked_up(session: Session, found: Diagnosis) -> Diagnosis:
    root = found.root
    if root is None or root.explanation is None or root.explanation.parts is None or not root.needs_more:
        return found
    parts, explanation = root.explanation.parts, root.explanation
    # Imported only here: reading sources needs many modules, and most failures do not.
    if parts.matter == "config-key" and session.has_tree_at_hand:
        from patcher.diagnose.directions import direction_of_key
        from patcher.diagnose.nearest_keys import bare, nearest_keys

        key, tree = bare(parts.names[0]), session.tree
        near, verl = nearest_keys(tree.root, tree.package, key), session.environment.packages.get("verl")
        # A message may name only the last part of a key, `lr`, which many sections of a configuration have.
        found_key = in_time(direction_of_key, key, verl.version) if verl is not None and "." in key else None
        direction, came = found_key or (None, ())
        near = tuple(dict.fromkeys((*came, *near)))
        # Hydra advises to add any key that it does not know, `+trainer.x=1`. A misspelled key must not be added.
        remedy = "" if near or (direction is not None and direction.removed_in) else explanation.remedy
        explanation = replace(explanation, nearest=near, direction=direction, remedy=remedy)
    elif parts.matter == "model-type":
        from patcher.diagnose.directions import direction_of_model

        direction = in_time(direction_of_model, session, parts.names[0], found.versions)
        explanation = replace(explanation, direction=direction)
        if direction is not None and not direction.requirement:  # A later release does not know it either.
            root = replace(root, fixes=tuple(sorted(root.fixes, key=lambda one: _REGISTERS not in one.text)))
    elif parts.package or parts.matter in ("missing-attribute", "unexpected-argument"):
        from patcher.diagnose.directions import direction_at

        direction = in_time(direction_at, session, parts, found.versions, explanation.at)
        # If no release has the name, Python's `Did you mean` leads nowhere.
        guessed = parts.near and direction is not None and not direction.requirement
        explanation = replace(explanation, direction=direction, remedy="" if guessed else explanation.remedy)
    if explanation.line and (explanation.direction is None or not explanation.direction.requirement):
        from patcher.diagnose.failed_line import failed_line

        explanation = replace(explanation, failed_line=in_time(failed_line, explanation, found.versions))
    if parts.matter == "words":
        from patcher.diagnose.raise_condition import raise_condition

        explanation = replace(explanation, raised_where=in_time(raise_condition, explanation, found.versions))
    explained = replace(root, explanation=explanation)
    return replace(found, findings=tuple(explained if one is found.root else one for one in found.findings))


def require_good_log(session: Session, scanner: Scanner, log: str, against: str | None) -> None:
    """Raise UsageError for a log to compare with that is none of a run, and where one cannot be compared with it."""
    if against is None:
        return
    if log == STANDARD_INPUT or against == STANDARD_INPUT:
        raise UsageError(
            phrase("--against reads both logs twice, and standard input can be read only once"),
            advice=phrase("Write it to a file first."),
        )
    if not Path(against).exists():
        raise no_log_error(session, against, _COMMAND)
    evidence = merge_evidence([read_log(scanner, one) for one in group_by_run(logs_named(against))[0]])
    if evidence.blank:
        raise no_run_error(session, against, diagnosis_of(evidence, FixContext()), _COMMAND)


def add_comparison(found: Diagnosis, logs: Sequence[RotatedLog], against: str | None) -> Diagnosis:
    """Add how the logs differ from the log of a good run, where `against` names one. Raises UsageError if it cannot be
    read."""
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
    last_words: bool = True,
) -> Diagnosis:
    """Judge the evidence of one run's logs, and choose the fixes that apply to the versions and the tree at hand.

    Args:
        log: the path as the user gave it.
        installed: versions on the machine where the run was; by default those installed here.
        ended: whether the run is known to be over; None where only the log can tell.
        silent: whether the log is known to have stopped growing; None where that is not known.
        last_words: as in `diagnosis_of`.
    """
    evidence = merge_evidence(parts)
    silent = _is_silent(log, evidence) if silent is None else silent
    context = FixContext(_versions(session, evidence, installed), log=log if _is_plain_file(log) else "")
    found = diagnosis_of(evidence, context, ended=ended, silent=silent, last_words=last_words)
    if any(offer.patch for finding in found.findings for offer in finding.fixes):
        root = str(session.root_option) if session.root_option is not None else ""
        context = replace(context, outcomes=_record_outcomes(session, context.versions), root=root)
        found = diagnosis_of(evidence, context, ended=ended, silent=silent, last_words=last_words)
    return found


def _read_newest_run(
    scanner: Scanner, log: str, progress: OnProgress
) -> tuple[list[LogOfRun], list[RotatedLog], list[RotatedLog]]:
    """The evidence of the newest run's logs, those logs, and the logs of earlier runs.

    Groups of files without any trace of a run are skipped. If no group has one, the result is the newest group.
    """
    groups = group_by_run(logs_named(log))
    first: list[LogOfRun] | None = None
    for at, group in enumerate(groups):
        parts = []
        for number, one in enumerate(group, 1):
            if len(group) > 1:
                progress(phrase("reading logs: {done} of {total}", done=number, total=len(group)))
            if (part := _read_or_skip(scanner, one, timed=len(group) > 1, alone=log)) is not None:
                parts.append(part)
        progress("")
        if any(not part.evidence.blank for part in parts):
            return parts, group, [one for other in groups[at + 1 :] for one in other]
        first = first or parts
    return first or [LogOfRun(scanner.scan([]), 0.0)], groups[0], []


def _read_or_skip(scanner: Scanner, one: RotatedLog, *, timed: bool, alone: str) -> LogOfRun | None:
    """As `read_log`; None for a binary file, unless the user named that very file."""
    try:
        return read_log(scanner, one, timed=timed)
    except NoTextError:
        if alone == one.parts[-1]:
            raise
        return None


def _notes_on_end(found: Diagnosis, parts: Sequence[LogOfRun], logs: Sequence[RotatedLog]) -> tuple[Phrase, ...]:
    """Why a run may not be as its log shows it: the end of an archive is missing, or nothing has come for long."""
    cut = [name for part in parts for name in part.evidence.cut_off]
    if cut:
        template = "the archive {path} is cut off, its end is missing: how the run ended is not known from it"
        return tuple(phrase(template, path=name) for name in cut)
    if found.verdict != "running":
        return ()
    return (*_open_errors(parts), *_silent_for_long(found, logs))


def _open_errors(parts: Sequence[LogOfRun]) -> Iterator[Phrase]:
    """The last error that a program tells in its own words, and behind which no progress shows that it went on."""
    for part in parts:
        told = [place for place in part.evidence.complained if place.offset >= part.evidence.progress]
        if told:
            text = strip_labels(told[-1].text).text[:_TOLD]
            template = "line {line} tells an error, and no line below it shows whether the run went on: {text}"
            yield phrase(template, line=told[-1].number, text=text)


_TOLD = 200
"""Characters of an error that are shown."""


def _newest(logs: Sequence[RotatedLog]) -> tuple[Path, float] | None:
    """The file that was written last, and how many seconds ago; None for standard input alone."""
    files = [Path(one.parts[-1]) for one in logs if one.parts[-1] != STANDARD_INPUT]
    if not files:
        return None
    newest = max(files, key=lambda path: path.stat().st_mtime)
    return newest, time.time() - newest.stat().st_mtime


def _may_be_live(found: Diagnosis, logs: Sequence[RotatedLog]) -> bool:
    """Whether a process here writes the log, or one elsewhere may: a training whose last line is young.

    A log without any phase of a training, which nobody here writes, is as likely a piece of one that somebody copied.
    """
    newest = _newest(logs)
    if newest is None:
        return False
    path, age = newest
    return (found.phase is not None and age <= silence_limit(found.phase)) or bool(is_being_written(path))


def _silent_for_long(found: Diagnosis, logs: Sequence[RotatedLog]) -> tuple[Phrase, ...]:
    """A log that nobody writes any more."""
    found_last = _newest(logs)
    if found_last is None:
        return ()
    newest, age = found_last
    if age <= max(_LONG_AGO, silence_limit(found.phase)) or found.live:
        return ()
    template = (
        "nothing has been written to {path} for {age}, and no process that is seen here writes it: "
        "the run has ended without a word, or this is a copy"
    )
    return (phrase(template, path=newest, age=duration(age)),)


def _names(logs: Sequence[RotatedLog]) -> tuple[str, ...]:
    return tuple(name for one in logs for name in one.parts)


def _is_plain_file(log: str) -> bool:
    """Whether tools such as `grep` can read the log directly: a file that is not packed."""
    return Path(log).is_file() and Path(log).suffix not in (".gz", ".bz2", ".xz", ".zst", ".zip")


def log_lines(logs: Sequence[RotatedLog]) -> Iterator[tuple[str, BinaryIO]]:
    """The parts of logs, oldest first, each opened only while it is read."""
    for one in logs:
        for name in one.parts:
            with open_log(name) as stream:
                yield name, stream


def read_log(scanner: Scanner, one: RotatedLog, *, timed: bool = False) -> LogOfRun:
    """The evidence of one log. `timed`: add times to its lines, to put them in order with the lines of other logs."""
    evidence = scanner.scan(log_lines([one]), timed=timed)
    name = one.parts[-1]
    written = Path(name).stat().st_mtime if name != STANDARD_INPUT else time.time()
    return LogOfRun(evidence, written, one.of_ray_daemon)


def _is_silent(log: str, evidence: Evidence) -> bool | None:
    """Whether a log that a process on this machine still writes has been silent for longer than its phase may be.

    None where nobody writes it, or where the run has already ended.
    """
    path = Path(log)
    if log == STANDARD_INPUT or not path.is_file() or evidence.finished is not None or not is_being_written(path):
        return None
    return time.time() - path.stat().st_mtime > silence_limit(evidence.phase)


def silence_limit(phase: Phase | None) -> float:
    """Seconds without output after which a run counts as stalled, by the phase that it is in."""
    return usual_seconds("standard", phase)[1] if phase is not None else _UNKNOWN_PHASE


def _versions(session: Session, evidence: Evidence, installed: Mapping[str, str] | None) -> Mapping[str, str]:
    """The versions of the run: assumed ones first, then those that the log names, then those installed here.

    If the log names a version that differs from the installed one, the run was elsewhere, and no installed version
    counts.
    """
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
    """The status of the patch records on the tree at hand, by record id, for these versions; empty without a tree."""
    if not session.has_tree_at_hand:
        return {}
    known = {name: version for name, version in versions.items() if name != "verl"}
    asked = replace(session, assume={**known, **session.assume}, given_lookup=lambda _: None)
    with contextlib.suppress(UkyError):
        return {outcome.id: outcome for outcome in records_status(asked).outcomes}
    return {}
