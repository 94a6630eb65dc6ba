"""uky-patch from Python: load records, plan, apply, check. Each call returns a frozen value and prints nothing.

    from patcher import api

    planned = api.plan("~/verl_fork", assume={"vllm": "0.20.2"})
    for file in planned.files:
        print(file.diff)

The calls do what the commands of the same names do, with their safety: `apply` takes the tree's lock, writes all or
nothing through the journal, keeps pre-images, and enters the ledger. See docs/api.md.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from patcher.analysis.findings import Finding as _Finding
from patcher.analysis.findings import FindingKind, Severity
from patcher.check.checking import check as _check
from patcher.check.result import CheckRequest as _CheckRequest
from patcher.check.targets import parse_all
from patcher.errors import UkyError, UsageError
from patcher.i18n import phrase
from patcher.patching.applying import Order as _ApplyOrder
from patcher.patching.applying import apply as _apply
from patcher.patching.applying import preview as _preview
from patcher.patching.result import ApplyResult
from patcher.plan.outcome import FAILED, Kind
from patcher.records.load import load
from patcher.records.model import Record
from patcher.session.session import Session
from patcher.terminal.printing import silent

__all__ = [
    "Changes",
    "CheckResult",
    "FileChange",
    "Finding",
    "Place",
    "Record",
    "RecordStatus",
    "UkyError",
    "apply",
    "check",
    "load_records",
    "plan",
]


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a file: the path below the tree's root, and the line's number from 1."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class RecordStatus:
    """Where one record stands on one tree."""

    id: str
    kind: Kind
    """`pending`: it is needed and can be applied; see docs/api.md for the others."""
    detail: str
    """One English sentence: why."""
    files: tuple[str, ...]
    places: tuple[Place, ...]
    title: str

    @property
    def failed(self) -> bool:
        """Whether the record cannot be applied as it stands."""
        return self.kind in FAILED


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file that changes: its path below the tree's root, and its text before and after; "" where it is not there."""

    path: str
    before: str
    after: str

    @property
    def diff(self) -> str:
        """A unified diff, as `patch -p1` takes it."""
        from patcher.terminal.document import unified

        return unified(self.path, self.before, self.after)


@dataclass(frozen=True, slots=True)
class Changes:
    """What `plan` found, or what `apply` did."""

    root: Path
    versions: Mapping[str, str]
    """The packages that count, by name: what is installed, with what was assumed."""
    records: tuple[RecordStatus, ...]
    files: tuple[FileChange, ...]
    """The files that change. Empty after an apply that failed or had nothing to do."""
    written: tuple[str, ...]
    """The paths that were written: none for a plan, and none where a record failed."""
    notices: tuple[str, ...]
    """What the command would have printed on standard error: an interrupted run that was ended, for example."""

    @property
    def failed(self) -> tuple[RecordStatus, ...]:
        """The records that cannot be applied. While there is one, nothing is written."""
        return tuple(record for record in self.records if record.failed)


@dataclass(frozen=True, slots=True)
class Finding:
    """A place where the tree uses something that a release no longer offers in that form."""

    file: str
    line: int
    symbol: str
    """Dotted: `pkg.mod.name`, or `pkg.mod.function(parameter)`."""
    kind: FindingKind
    severity: Severity
    detail: str
    suggestion: str | None
    since: str | None
    """The first release that shows it, where that was asked for and is known."""
    repaired_by: str | None
    """The id of the record that repairs it."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check came to."""

    verl: str
    against: Mapping[str, str]
    """The versions that the tree was held against, by package."""
    uses: int
    """How many uses of these packages were looked at."""
    findings: tuple[Finding, ...]
    after: tuple[Finding, ...]
    """What is left once the records are applied."""
    unreadable: tuple[Place, ...]
    """Files that are no Python, with the line, or 0 where none is known."""
    clean: bool
    """Whether every file was read and nothing is left but what is guarded or accepted: exit code 0 of the command."""
    notices: tuple[str, ...]


def load_records(patches: Iterable[str | Path] = ()) -> tuple[Record, ...]:
    """The records that come with uky-patch, and those of further folders, which replace those of the same file name.

    Arguments:
        patches: folders that hold records as TOML files.

    Returns:
        The records in the order in which they are applied.

    Raises:
        patcher.errors.RecordError: a folder is not there, or records are wrong; it tells all mistakes at once.
    """
    with _silent():
        return load(_paths(patches))


def plan(
    tree: str | Path,
    *,
    python: str | Path | None = None,
    assume: Mapping[str, str] | None = None,
    patches: Iterable[str | Path] = (),
    ids: Iterable[str] = (),
    tags: Iterable[str] = (),
    skip: Iterable[str] = (),
    merge: bool = False,
) -> Changes:
    """What `apply` would do. Writes nothing, unless an interrupted run is to be ended first.

    Arguments:
        tree: a fork's checkout, or any folder that holds verl/.
        python: the interpreter whose packages count; by default the one that the tree or the shell names.
        assume: versions to take for installed, by package; "none" for one that is absent.
        patches: folders of further records.
        ids: only these records.
        tags: also records that are off by default and have one of these tags.
        skip: leave these records out.
        merge: take over what people changed in patched files since.

    Returns:
        A value for every record, and the files that would change.

    Raises:
        patcher.errors.UsageError: there is no such tree or record, or it is not known which environment trains.
        patcher.errors.RecordError: a record or uky-patch.toml is wrong.
        patcher.errors.TreeError: the tree cannot be read, or somebody else holds its lock for a minute.
        patcher.errors.EnvironmentProbeError: the interpreter cannot be asked.
    """
    with _silent() as notices:
        session = _session(tree, python, assume, patches)
        request = session.request(_texts("ids", ids), _texts("tags", tags), _texts("skip", skip))
        return _changes(session, _preview(session, _ApplyOrder(request, merge=merge)), notices)


def apply(
    tree: str | Path,
    *,
    python: str | Path | None = None,
    assume: Mapping[str, str] | None = None,
    patches: Iterable[str | Path] = (),
    ids: Iterable[str] = (),
    tags: Iterable[str] = (),
    skip: Iterable[str] = (),
    merge: bool = False,
    allow_dirty: bool = False,
) -> Changes:
    """Write what is needed: all of it, or nothing where a record fails. `uky-patch revert` takes it back.

    Arguments:
        tree, python, assume, patches, ids, tags, skip, merge: as for `plan`.
        allow_dirty: touch files with uncommitted changes too.

    Returns:
        The same as `plan`, with `written`. A record that cannot be applied is no exception: see `failed`.

    Raises:
        What `plan` raises, and patcher.errors.TreeError where the tree cannot be written, or a file that would be
        changed has uncommitted changes; then nothing was written, or it says what.
    """
    with _silent() as notices:
        session = _session(tree, python, assume, patches)
        request = session.request(_texts("ids", ids), _texts("tags", tags), _texts("skip", skip))
        done = _apply(session, _ApplyOrder(request, allow_dirty=allow_dirty, merge=merge))
        return _changes(session, done, notices)


def check(
    tree: str | Path,
    *,
    against: Iterable[str] = (),
    baseline: Iterable[str] = (),
    python: str | Path | None = None,
    assume: Mapping[str, str] | None = None,
    patches: Iterable[str | Path] = (),
    scripts: Iterable[str] = (),
    since: bool = False,
) -> CheckResult:
    """Find every place where the tree uses something that a release no longer offers. Writes nothing into the tree.

    Arguments:
        tree, python, assume, patches: as for `plan`.
        against: `vllm==0.24.0`, `vllm=FOLDER`, `vllm` for what is installed; by default what is installed. A release
            is fetched once and kept.
        baseline: releases that the tree runs on today, written alike: what they show too is left out.
        scripts: globs of run scripts and settings below the tree's root.
        since: find the first release that shows each finding; this fetches further releases.

    Returns:
        The findings, and what is left of them once the records are applied.

    Raises:
        What `plan` raises, and patcher.errors.ReleaseError where the sources of a release cannot be had.
    """
    with _silent() as notices:
        session = _session(tree, python, assume, patches)
        asked, before = parse_all(_texts("against", against)), parse_all(_texts("baseline", baseline))
        order = _CheckRequest(asked, baseline=before, since=since, scripts=_texts("scripts", scripts))
        done = _check(session, order)
        return CheckResult(
            verl=done.report.verl,
            against=MappingProxyType(dict(done.report.against)),
            uses=done.report.uses,
            findings=tuple(map(_finding, done.report.findings)),
            after=tuple(map(_finding, done.after.findings)),
            unreadable=tuple(Place(one.file, one.line) for one in done.unreadable),
            clean=done.clean,
            notices=(*map(str, done.notes), *notices),
        )


def _session(
    tree: str | Path, python: str | Path | None, assume: Mapping[str, str] | None, patches: Iterable[str | Path]
) -> Session:
    interpreter = None if python is None else _path("python", python)
    return Session(_path("tree", tree), interpreter, _versions(assume), _paths(patches))


@contextmanager
def _silent() -> Iterator[list[str]]:
    """Print nothing, and let errors name arguments of these calls where a command would name its options."""
    with silent() as notices:
        try:
            yield notices
        except UkyError as error:
            error.title, error.cause, error.advice = map(_with_arguments, (error.title, error.cause, error.advice))
            error.args = (error.title,)
            raise


_OPTION = re.compile(r"uky-patch [a-z]+(?: --?[\w-]+)*|--([a-z][a-z-]*)(?: [A-Z]+\b)?")
"""A command with its options, which stays as it is, or an option by itself."""
_ARGUMENTS = {
    "root": "tree",
    "allow-dirty": "allow_dirty=True",
    "merge": "merge=True",
    "tag": "tags",
    **{name: f"{name}=" for name in ("python", "assume", "patches", "skip", "against", "baseline", "scripts")},
}


def _with_arguments(sentence: object) -> str:
    """`Commit or stash them, or say --allow-dirty.` -> `Commit or stash them, or say allow_dirty=True.`"""
    return _OPTION.sub(lambda found: _ARGUMENTS.get(found[1] or "", found[0]), str(sentence))


def _versions(assume: Mapping[str, str] | None) -> dict[str, Any]:
    given: object = {} if assume is None else assume
    if not isinstance(given, Mapping) or not all(isinstance(one, str) for pair in given.items() for one in pair):
        raise UsageError(
            phrase("{name}: {value!r} cannot be read", name="assume", value=given),
            advice=phrase('Give strings by package: {{"vllm": "0.20.2", "flash-attn": "none"}}.'),
        )
    return {name.strip().lower().replace("_", "-"): text for name, text in given.items()}


def _texts(name: str, given: Iterable[str]) -> tuple[str, ...]:
    """A list of strings. A string is none, though it could be gone through letter by letter."""
    values = None if isinstance(given, str) or not isinstance(given, Iterable) else tuple(given)
    if values is None or not all(isinstance(one, str) for one in values):
        raise UsageError(
            phrase("{name}: {value!r} cannot be read", name=name, value=given),
            advice=phrase("Give a list of strings, also for one alone."),
        )
    return values


def _path(name: str, given: object) -> Path:
    if not isinstance(given, (str, os.PathLike)) or "\0" in os.fspath(given):
        raise UsageError(
            phrase("{name}: {value!r} cannot be read", name=name, value=given),
            advice=phrase("Give a path: a string or a pathlib.Path."),
        )
    return Path(given).expanduser()


def _paths(folders: Iterable[str | Path]) -> tuple[Path, ...]:
    if isinstance(folders, (str, os.PathLike)) or not isinstance(folders, Iterable):
        raise UsageError(
            phrase("{name}: {value!r} cannot be read", name="patches", value=folders),
            advice=phrase("Give a list of paths, also for one alone."),
        )
    return tuple(_path("patches", folder) for folder in folders)


def _changes(session: Session, done: ApplyResult, notices: list[str]) -> Changes:
    files = tuple(FileChange(path, done.before[path], done.plan.files[path].text or "") for path in done.would_change)
    return Changes(
        root=session.tree.root,
        versions=MappingProxyType(dict(session.versions)),
        records=tuple(
            RecordStatus(
                id=one.id,
                kind=one.kind,
                detail=str(one.detail),
                files=one.files,
                places=tuple(Place(spot.file, spot.line) for spot in one.spots),
                title=one.title,
            )
            for one in done.plan.outcomes
        ),
        files=files,
        written=done.written,
        notices=tuple(notices),
    )


def _finding(found: _Finding) -> Finding:
    return Finding(
        file=found.file,
        line=found.line,
        symbol=found.symbol,
        kind=found.kind,
        severity=found.severity,
        detail=str(found.detail),
        suggestion=None if found.suggestion is None else str(found.suggestion),
        since=found.since,
        repaired_by=found.repaired_by,
    )
