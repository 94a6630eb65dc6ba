"""What `check` knows of a recorded edit: which findings of a release it takes away, and since which release they are.

The uses of the files that differ are judged twice, as the base has them and as the fork has them. What is found only in
the base is repaired by the record whose lines it stands in: so the record is needed from that release on.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from packaging.version import Version

from patcher.analysis.findings import Finding
from patcher.check.entries import open_project
from patcher.check.history import History, with_since
from patcher.check.pair import check_pair
from patcher.check.targets import locate, parse_all, target_of
from patcher.i18n import Phrases, phrase
from patcher.recording.grouping import Piece, inseparable
from patcher.records.model import Record, Text, When
from patcher.records.rules import DISTRIBUTIONS

if TYPE_CHECKING:
    from patcher.recording.proposal import Files
    from patcher.session.session import Session


@dataclass(frozen=True, slots=True)
class Judged:
    """Findings of `check` that edits take away, with `since`, and those that they bring."""

    repaired: tuple[Finding, ...] = ()
    added: tuple[Finding, ...] = ()


def judged(session: Session, files: Files, verl: str, against: Collection[str]) -> Judged:
    """What the edits do for these releases: the files as the base has them, and as the fork has them.

    Raises ReleaseError where a release cannot be had, UsageError for one that cannot be read.
    """
    located = tuple(locate(one, session) for one in parse_all(tuple(against)))
    target = target_of(located, session)
    project, _ = open_project(session.tree.root, target.against, target.words)
    changed = [file for file in files.before if file.endswith(".py")]
    base = project.with_texts({file: files.before[file] for file in changed})
    fork = project.with_texts({file: files.after[file] for file in changed})
    before = check_pair(base, target, verl=verl, files=changed)
    # One that has come under a guard, `try: … except ImportError:`, is repaired.
    old = before.of("break", "optional")
    new = check_pair(fork, target, verl=verl, files=changed).of("break", "optional")
    left, known = {one.key for one in new}, {one.key for one in old}
    added = tuple(one for one in new if one.key not in known)
    gone = replace(before, findings=tuple(one for one in old if one.key not in left))
    if not gone.findings:
        return Judged((), added)
    return Judged(with_since(gone, located, History(base, target, None, session.tree.root)).findings, added)


def with_causes(record: Record, pieces: Sequence[Piece], findings: Sequence[Finding], *, has_reason: bool) -> Record:
    """The record with what it repairs, and the releases from which on it is needed.

    That is its reason too, unless the record `has_reason` of its author."""
    mine = [one for one in findings if any(_stands_in(one, piece) for piece in pieces)]
    if not mine:
        return record
    versions = dict(record.when.versions)
    for package in dict.fromkeys(one.package for one in mine):
        name = package.replace("_", "-")
        since = [one.since for one in mine if one.package == package]
        # Where one of the findings has always been there, no release is known from which on the record is needed.
        if name in DISTRIBUTIONS and None not in since:
            # Two breaks in one statement: the fork's form of it is known to be right where both are there.
            versions[name] = f">={max((one for one in since if one), key=Version)}"
    symbols = tuple(dict.fromkeys(one.symbol for one in mine))
    tags = tuple(dict.fromkeys((*record.tags, *(name for name in versions if name != "verl"))))
    if not has_reason:
        text = "{package} {version}: {what}"
        known = [phrase(text, package=one.package, version=one.since or "", what=one.detail) for one in mine]
        why = Phrases(tuple({str(one): one for one in known}.values()))
        record = replace(record, reason=str(why), zh=Text(record.zh.title, why.render("zh")) if record.zh else None)
    return replace(record, repairs=symbols, when=When(versions), tags=tags, lifetime="until-upstream")


def _stands_in(finding: Finding, piece: Piece) -> bool:
    first, last = piece.made.hunk.old
    return finding.file == piece.file and first <= finding.line - 1 < last


def brings(finding: Finding, piece: Piece) -> bool:
    """Whether a finding of the fork's file stands in what a change put there."""
    first, last = piece.made.hunk.new
    return finding.file == piece.file and first <= finding.line - 1 < last


def split_by_release(pieces: Sequence[Piece], findings: Sequence[Finding]) -> list[list[Piece]]:
    """The changes of one group apart where releases differ from which on they are needed.

    `disable_log_requests` broke in 0.12 and `init_app_state` in the same function in 0.11.1: two records. What repairs
    nothing goes with the first. A change stays with those that fail without it."""
    found: dict[frozenset[tuple[str, str | None]], list[Piece]] = {}
    others: list[Piece] = []
    for some in inseparable(pieces):
        since = frozenset((one.package, one.since) for one in findings if any(_stands_in(one, piece) for piece in some))
        (found.setdefault(since, []) if since else others).extend(some)
    parts = list(found.values()) or [[]]
    parts[0] = [piece for piece in pieces if piece in parts[0] or piece in others]
    return parts
