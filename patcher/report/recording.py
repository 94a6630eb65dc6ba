"""The reports of `record`, `new`, `backport` and `rebase`: records that are proposed or written, their diffs, and what
no record can hold.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patcher.i18n import Language, Phrase, language, phrase, show
from patcher.recording.proposal import SKIPPED, line_of
from patcher.report.commands import command_line
from patcher.report.records import text_of
from patcher.rewrite.edits import CreateFile, ReplaceLines
from patcher.rewrite.in_words import in_words
from patcher.session.config import NAME
from patcher.terminal.document import Diff, Exact, Json, Lines, Part, Table, unified
from patcher.terminal.table import Cell, Row

if TYPE_CHECKING:
    from patcher.recording.backporting import Backport
    from patcher.recording.proposal import Proposal, Recorded
    from patcher.recording.rebasing import Rebase
    from patcher.recording.saving import Saved
    from patcher.recording.skeleton import Skeleton
    from patcher.session.session import Session


_MOST_LEFT = 12
"""Changes without a record that are listed. Set by hand: half a screen of 24 lines."""


def record_report(found: Proposal, session: Session, saved: Saved | None, *, diff: bool) -> Iterator[Part]:
    """`saved`: None where nothing was written."""
    if session.output == "json":
        yield Json(record_json(found, session, saved))
        return
    language()
    count = phrase(
        "compared with {base}: {changes} {changes:change|changes} in {files} {files:file|files}",
        base=found.base.name,
        changes=found.changes,
        files=len(found.files.before),
    )
    yield Lines(count)
    if found.base.advice is not None:
        yield Lines(found.base.advice)
    if found.known:
        names = ", ".join(record.id for record in found.known)
        text = phrase(
            "{count} {count:record says|records say} already what was done: {names}",
            count=len(found.known),
            names=names,
        )
        yield Lines(text)
    if found.files.laid_out:
        text = phrase(
            "{count} {count:file has|files have} another layout than the base, which is in no record",
            count=len(found.files.laid_out),
        )
        yield Lines(text)
    yield Lines("")
    yield from records_found(found, session, saved, diff=diff)


def records_found(found: Proposal, session: Session, saved: Saved | None, *, diff: bool) -> Iterator[Part]:
    """The records, what is in none, and what comes next."""
    tongue = language()
    if found.records:
        yield Table([_row(one, found, session.config.marker, tongue) for one in found.records])
        yield Lines("")
    for one in found.records:
        for other in one.related:
            reason = text_of(other, tongue).reason
            text = phrase(
                "{id} does the like of {other}, which is off: {reason}", id=one.record.id, other=other.id, reason=reason
            )
            yield Lines(text, "")
    if diff:
        for one in found.records:
            yield Lines(f"{one.record.id}: {text_of(one.record, tongue).title}")
            yield from _diff(one, found)
    if found.left:
        yield Lines(*_left(found, tongue))
    yield Lines(*_end(found, session, saved, tongue))


def proposed(one: Recorded, found: Proposal, tongue: Language) -> Iterator[Part]:
    """One record, as somebody is asked about it."""
    yield Lines("", f"{one.record.id}: {text_of(one.record, tongue).title}", f"  {text_of(one.record, tongue).reason}")
    for edit in one.record.edits:
        yield Lines(f"  {edit.file}: {in_words(edit).render(tongue)}")
    yield from _diff(one, found)


def _diff(one: Recorded, found: Proposal) -> Iterator[Part]:
    from patcher.recording.proof import with_hunks

    for file in one.record.files:
        before = found.files.before[file]
        hunks = [piece.made.hunk for piece in one.pieces if piece.file == file]
        after = with_hunks(before, found.files.after[file], hunks)
        yield Diff(unified(file, before if file in found.files.base else None, after))


def _row(one: Recorded, found: Proposal, word: str, tongue: Language) -> Row:
    first = one.pieces[0]
    more = len(one.pieces) - 1
    place = f"{Path(first.file).name}:{line_of(first, found.files, word)}" + (f" (+{more})" if more else "")
    kind = phrase("syntax") if one.specific else phrase("lines")
    if all(isinstance(edit, CreateFile) for edit in one.record.edits):
        kind = phrase("new file")
    return (Cell(one.record.id), Cell(show(kind, tongue)), Cell(text_of(one.record, tongue).title), Cell(place))


def _left(found: Proposal, tongue: Language) -> Iterator[str]:
    text = phrase("{count} {count:place is|places are} in no record:", count=len(found.left))
    yield show(text, tongue)
    for one in found.left[:_MOST_LEFT]:
        place = f"{one.file}:{one.line}" if one.line else one.file
        yield f"  {place}: {show(one.why, tongue)}"
    if len(found.left) > _MOST_LEFT:
        yield f"  … (+{len(found.left) - _MOST_LEFT})"
    yield ""


def _end(found: Proposal, session: Session, saved: Saved | None, tongue: Language) -> Iterator[str]:
    if not found.records:
        nothing = phrase("nothing differs") if not found.left else phrase("no record can be made of it")
        if any(one.why is SKIPPED for one in found.left):
            nothing = phrase("nothing was written")
        yield show(phrase("nothing new to record") if found.known else nothing, tongue)
        return
    if saved is None:
        text = phrase("{count} {count:record|records} proven; nothing was written", count=len(found.records))
        yield show(text, tongue)
        return
    folder = saved.paths[0].parent.relative_to(session.tree.root).as_posix()
    text = phrase(
        "{count} {count:record|records} proven and written to {folder}/", count=len(saved.paths), folder=folder
    )
    yield show(text, tongue)
    if saved.named_now:
        yield show(phrase("{name} names that folder now", name=NAME), tongue)
    yield show(phrase("Next: {command}", command=command_line(session, "adopt", "--all")), tongue)


def record_json(found: Proposal, session: Session, saved: Saved | None) -> dict[str, Any]:
    """The one object of `--format json`."""
    paths = {path.stem: str(path) for path in saved.paths} if saved is not None else {}
    return {
        "root": str(session.tree.root),
        "base": str(found.base.name),
        "verl": found.base.verl,
        "changes": found.changes,
        "files": len(found.files.before),
        "laid_out": sorted(found.files.laid_out),
        "records": [_record_json(one, found, session.config.marker, paths) for one in found.records],
        "known": [record.id for record in found.known],
        "left": [{"file": one.file, "line": one.line, "why": str(one.why)} for one in found.left],
        "written": list(paths.values()),
    }


def _record_json(one: Recorded, found: Proposal, word: str, paths: dict[str, str]) -> dict[str, Any]:
    whys: list[Phrase] = [piece.made.why for piece in one.pieces if piece.made.why is not None]
    return {
        "id": one.record.id,
        "title": one.record.title,
        "files": list(one.record.files),
        "specific": one.specific,
        "edits": len(one.record.edits),
        "lines": sum(isinstance(edit, ReplaceLines) for edit in one.record.edits),
        "created": [edit.file for edit in one.record.edits if isinstance(edit, CreateFile)],
        "why": str(whys[0]) if whys else "",
        "places": [{"file": piece.file, "line": line_of(piece, found.files, word)} for piece in one.pieces],
        "after": list(one.record.after),
        "related": [other.id for other in one.related],
        "path": paths.get(one.record.id),
    }


def new_report(name: str, found: Skeleton, session: Session, saved: Saved | None) -> Iterator[Part]:
    """`saved`: None where nothing was written; then the record itself is shown."""
    path = saved.paths[0] if saved is not None else None
    if session.output == "json":
        place = {"file": found.file, "line": found.line, "statement": found.statement}
        yield Json({"id": name, "place": place, "text": found.text, "path": str(path) if path is not None else None})
        return
    if path is None:
        yield Exact(found.text)
        return
    language()
    shown = path.relative_to(session.tree.root).as_posix()
    yield Lines(phrase("{path} is begun: finish what is marked … in it", path=shown))
    yield Lines(phrase("Next: {command}", command=command_line(session, "explain", name)))


def backport_report(found: Backport, session: Session, saved: Saved | None, *, diff: bool) -> Iterator[Part]:
    """`saved`: None where nothing was written."""
    if session.output == "json":
        yield Json({**record_json(found.proposal, session, saved), **_backport_json(found)})
        return
    tongue = language()
    base = found.proposal.base
    counts = phrase(
        "{carried} of {count} {count:change|changes} carried over, {there} here already, {left} left",
        count=len(found.ported),
        **{fate: found.count(fate) for fate in ("carried", "there", "left")},
    )
    yield Lines(f"{base.name}: {base.subject}", f"  {show(counts, tongue)}", *_about(found, tongue), "")
    if found.count("carried") or found.proposal.left:
        yield from records_found(found.proposal, session, saved, diff=diff)
    else:
        yield Lines(phrase("this tree has it already, or the commit changes nothing that training reads"))


def _about(found: Backport, tongue: Language) -> Iterator[str]:
    fix = found.proposal.base.fix
    if fix is not None and fix.since:
        mine = phrase("verl has it since {version}, and this tree is of that or a later one", version=fix.since)
        text = phrase("verl has it since {version}", version=fix.since) if fix.is_newer else mine
        yield f"  {show(text, tongue)}"
    if found.skipped:
        text = phrase("{count} {count:file|files} of tests or documents left out", count=len(found.skipped))
        yield f"  {show(text, tongue)}"
    if found.unjudged is not None:
        yield f"  {show(phrase('check was not asked: {why}', why=found.unjudged), tongue)}"
    for one in found.proposal.repaired:
        text = phrase("check no longer finds: {what} ({place})", what=one.detail, place=f"{one.file}:{one.line}")
        yield f"  {show(text, tongue)}"


def _backport_json(found: Backport) -> dict[str, object]:
    fix = found.proposal.base.fix
    return {
        "commit": fix.commit if fix is not None else "",
        "subject": found.proposal.base.subject,
        "upstream": fix.address if fix is not None else "",
        "since": fix.since if fix is not None else "",
        "ported": [
            {"upstream": path, "line": one.line, "fate": one.fate, "file": one.file, "why": str(one.why or "")}
            for path, one in found.ported
        ],
        "repaired": [
            {"symbol": one.symbol, "file": one.file, "line": one.line, "since": one.since}
            for one in found.proposal.repaired
        ],
        "unjudged": str(found.unjudged or ""),
        "skipped": list(found.skipped),
    }


def rebase_report(found: Rebase, session: Session) -> Iterator[Part]:
    """Each record with its fate, and the branch."""
    if session.output == "json":
        records = [
            {"id": one.record.id, "fate": one.fate, "detail": str(one.detail), "files": sorted(one.files)}
            for one in found.records
        ]
        names = {"from": str(found.base.name), "to": str(found.target.name), "branch": found.branch}
        yield Json({**names, "records": records, "own": list(found.own), "commits": list(found.commits)})
        return
    tongue = language()
    heading = phrase("from {base} to {target}", base=found.base.name, target=found.target.name)
    yield Lines(heading, "")
    yield Table(
        [
            (
                Cell(show(one.fate.replace("-", " "), tongue)),
                Cell(one.record.id),
                Cell(text_of(one.record, tongue).title),
                Cell("" if one.files else show(one.detail, tongue)),
            )
            for one in found.records
        ]
    )
    made = sum(bool(one.files) for one in found.records)
    fields = {"count": made, "all": len(found.records), "branch": found.branch, "own": len(found.own)}
    if not found.commits:
        text = "{count} of {all} records would be on the branch {branch}, with {own} {own:file|files} of the fork's own"
        yield Lines("", phrase(text, **fields))
        return
    text = "{count} of {all} records are on the branch {branch}, with {own} {own:file|files} of the fork's own"
    yield Lines("", phrase(text, **fields))
    elsewhere = ["-C", str(session.root_option)] if session.root_option is not None else []
    command = f"git {shlex.join([*elsewhere, 'switch', found.branch])}"
    yield Lines(phrase("Next: {command}", command=command))
