"""A fork's records onto another verl: what becomes of each, and a branch with one commit for each that is needed there.

```
base of the fork ──┐
the record's edits ├─▶ replay on the other verl ─▶ applies | not needed | resolved | drifted
the other verl   ──┘                                                                   └▶ merge ─▶ new edits, proven
```

The working copy is not touched.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Literal

from patcher.check.tried import newest_tried
from patcher.errors import TreeError, UsageError
from patcher.git.branches import branch, require_new
from patcher.git.checkout import Checkout, checkout
from patcher.git.history import commit_of
from patcher.git.series import Commit
from patcher.i18n import Phrase, Phrases, phrase
from patcher.packages import Installed
from patcher.plan.inputs import PlanInputs, Request, belongs
from patcher.plan.outcome import FAILED, FileState, RecordOutcome
from patcher.plan.planning import plan_apply
from patcher.plan.replay import Workspace, predecessors
from patcher.recording.base import without_records
from patcher.recording.known import texts_with
from patcher.recording.proof import edits_of_file
from patcher.recording.verls import Verl, find_verl, texts_of, upstream_verl
from patcher.records.load import in_order
from patcher.records.model import Record
from patcher.records.writing import written
from patcher.rewrite.edits import CreateFile, Edit
from patcher.rewrite.marker import split_whole, without_markers
from patcher.rewrite.merging import three_way
from patcher.session.config import NAME
from patcher.worktree import verl_tree

if TYPE_CHECKING:
    from patcher.session.session import Session

_VERSION = re.compile(r"(?:verl==|v)?(\d+(?:\.\w+)+)")
"""A version as it is asked for. The tag v0.7.0 states 0.7.0.dev in its version file."""
Fate = Literal["applies", "moved", "not-needed", "resolved", "drifted"]


@dataclass(frozen=True, slots=True)
class Rebased:
    """What becomes of one record on the other verl. `text`: its TOML there, where its edits are others."""

    record: Record
    fate: Fate
    detail: Phrase | Phrases
    files: Mapping[str, str]
    """The files that it changes, as they are right after it."""
    text: str = ""


def rebase_records(
    session: Session, records: Sequence[Record], before: Mapping[str, str], after: Mapping[str, str], verl: str
) -> list[Rebased]:
    """`before` and `after`: the texts of the records' files in the verl that the fork is of, and in the other one."""
    outcomes = _outcomes(session, records, after, verl)
    texts = dict(after)
    done: list[Rebased] = []
    decide = belongs(verl)
    ordered = in_order(records)
    earlier = predecessors(ordered)
    for record in ordered:
        outcome = outcomes[record.id]
        if outcome.kind in ("not-needed", "resolved", "adopted"):
            fate: Fate = "not-needed" if outcome.kind == "not-needed" else "resolved"
            done.append(Rebased(record, fate, outcome.detail, {}))
            continue
        current = record
        moved = outcome.kind in FAILED
        if moved:
            found = _moved(record, before, texts, verl)
            if found is None:
                done.append(Rebased(record, "drifted", outcome.detail, {}))
                continue
            current = found
        workspace = Workspace(texts, session.config.marker, session.config.style)
        replayed = workspace.replay(current, decide, earlier[record.id])
        if not replayed.made:
            done.append(Rebased(record, "drifted", outcome.detail, {}))
            continue
        files = {file: workspace.texts[file] for file in replayed.files}
        texts |= files
        why = phrase("its edits have other anchors there") if moved else outcome.detail
        done.append(Rebased(current, "moved" if moved else "applies", why, files, written(current) if moved else ""))
    return done


def _outcomes(
    session: Session, records: Sequence[Record], texts: Mapping[str, str], verl: str
) -> dict[str, RecordOutcome]:
    """What a plan for the other verl says of each record."""
    packages = dict(session.environment.packages)
    packages["verl"] = Installed("verl", verl, origin="assumed")
    environment = replace(session.environment, packages=packages)
    names = {file for record in records for file in record.files}
    states = {file: FileState(file, texts.get(file), texts.get(file)) for file in names}
    inputs = PlanInputs(
        environment, session.lookup, states, {}, session.config.marker, session.config.style, newest=newest_tried()
    )
    plan = plan_apply(in_order(records), Request(ids=frozenset(record.id for record in records)), inputs)
    return {outcome.id: outcome for outcome in plan.outcomes}


def _moved(record: Record, before: Mapping[str, str], texts: Mapping[str, str], verl: str) -> Record | None:
    """The record with edits that make its change on the other verl, where a three-way merge carries that over.

    What was inferred anew is proven: see `patcher.recording.proof`."""
    made = texts_with(record, before, verl)
    new = {edit.file: edit for edit in record.edits if isinstance(edit, CreateFile) and edit.file in made}
    if not made or any((file in texts) == (file in new) for file in made):
        return None
    edits: list[Edit] = [*new.values()]
    for file, text in made.items():
        if file in new:
            continue
        current = without_markers(texts[file], "\0")
        lines = three_way(split_whole(before[file]), split_whole(current), split_whole(text))
        merged = "".join(lines) if lines is not None else current
        if merged == current:
            return None
        found = edits_of_file(file, current, merged)
        if found.refused:
            return None
        edits += [edit for one in found.made for edit in one.edits]
    return replace(record, edits=tuple(edits), examples=(), resolved=())


@dataclass(frozen=True, slots=True)
class Rebase:
    """What a rebase came to, or would."""

    base: Verl
    target: Verl
    branch: str
    records: tuple[Rebased, ...]
    own: tuple[str, ...]
    """Files of the fork's own, which go along."""
    commits: tuple[str, ...] = ()


def rebase(session: Session, named: str, base_named: str, branch_name: str, *, dry_run: bool) -> Rebase:
    """The fork's own records onto another verl, as a branch.

    Raises:
        UsageError: there is no checkout, no such verl, no record of the fork's own, or such a branch already.
        ReleaseError: a release cannot be had.
        TreeError: git refuses, or the records are in no commit.
    """
    place = checkout(session.tree.root)
    if place is None:
        raise UsageError(
            phrase("{root} is no git checkout, so that it can have no branch", root=session.tree.root),
            advice=phrase("See what a release would do to the records with --assume verl==VERSION: uky-patch status."),
        )
    records = _own_records(session)
    target = find_verl(place, named)
    base = find_verl(place, base_named) if base_named else upstream_verl(session, place)
    asked = _VERSION.fullmatch(named)
    name = branch_name or f"uky-patch/verl-{asked[1] if asked else target.version or named}"
    require_new(place, name)
    if not dry_run:
        _require_committed(session, place, records)
    files = sorted({file for record in records for file in record.files})
    made = {edit.file for record in records for edit in record.edits if isinstance(edit, CreateFile)}
    own = {path: content for path, content in _own_files(place, base).items() if path not in made}
    # A record may edit a file of the fork's own, which then goes along without that edit.
    own |= {path: without_records(session, path, own[path]) or own[path] for path in files if path in own}
    mine = texts_of({path: own[path] for path in files if path in own})
    done = rebase_records(session, records, base.texts(files) | mine, target.texts(files) | mine, target.version)
    found = Rebase(base, target, name, tuple(done), tuple(own))
    if dry_run:
        return found
    start, commits = _commits(session, place, found, own)
    return replace(found, commits=branch(place, name, start, commits))


def _own_records(session: Session) -> list[Record]:
    folders = session.config.patches
    own = [one for one in session.records if one.path is not None and any(f in one.path.parents for f in folders)]
    if not own:
        raise UsageError(
            phrase("this fork has no records of its own"),
            advice=phrase("Make records of its edits first: uky-patch record --from upstream."),
        )
    return own


def _require_committed(session: Session, place: Checkout, records: Sequence[Record]) -> None:
    """Raise TreeError if the records or uky-patch.toml are not in the last commit as they are on the disk.

    The branch gets the fork's own files from that commit, and its edits from the records on the disk.
    """
    root = session.tree.root
    there = [path for path in (*(one.path for one in records), root / NAME) if path is not None and path.is_file()]
    paths = [path.relative_to(root).as_posix() for path in there]
    head = Verl(phrase("HEAD"), "", place, commit_of(place, "HEAD"))
    differing = {*place.changed_files(paths), *(set(paths) - set(head.everything()))}
    if differing:
        names = sorted({path if path == NAME else str(PurePosixPath(path).parent) for path in differing})
        raise TreeError(
            phrase("uncommitted changes in {files}", files=", ".join(names)),
            cause=phrase("the branch would have the records' edits, and not the records; nothing was written"),
            advice=phrase("Commit them first: {command}", command=f"git add {shlex.join(names)} && git commit"),
        )


def _own_files(place: Checkout, base: Verl) -> dict[str, bytes]:
    """Files of the last commit that the base does not have: the fork's own, its records and settings among them.

    Where the base is a release, what lies beside its package is the fork's own as well."""
    head = Verl(phrase("HEAD"), "", place, commit_of(place, "HEAD"))
    known = set(base.everything())
    mine = [path for path in head.everything() if path not in known]
    if base.checkout is None:
        mine = [path for path in mine if path.startswith(f"{verl_tree.PACKAGE}/")]
    return dict(head.contents(mine))


def _commits(session: Session, place: Checkout, found: Rebase, own: Mapping[str, bytes]) -> tuple[str, list[Commit]]:
    """Where the branch begins, and its commits: the other verl, the fork's own files, and one for each record."""
    target = found.target
    folder = session.config.patches[0].relative_to(session.tree.root).as_posix()
    commits: list[Commit] = []
    start = target.commit
    if target.checkout is None:
        # A release is no commit: the branch begins with one that puts its package in the place of the fork's.
        start = commit_of(place, "HEAD")
        head = Verl(phrase("HEAD"), "", place, start)
        files: dict[str, bytes | None] = dict.fromkeys((p for p in head.package() if p not in own), None)
        files |= target.contents(target.package())
        commits.append(Commit(f"verl {target.version}", files))
    elif own:
        commits.append(Commit("Files of the fork's own", own))
    for one in found.records:
        if one.files:
            changed: dict[str, bytes | None] = {path: text.encode() for path, text in one.files.items()}
            if one.text:
                changed[f"{folder}/{one.record.id}.toml"] = one.text.encode()
            commits.append(
                Commit(f"{one.record.title}\n\n{one.record.reason}\n\nuky-patch: {one.record.id}\n", changed)
            )
    return start, commits
