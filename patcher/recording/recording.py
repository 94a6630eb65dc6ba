"""From what differs to records: the way of `record` and `backport` as a whole. Nothing is written here.

The texts of the base and the fork are compared file by file (`by_file`), changes of one purpose grouped (`grouping`),
named (`describing`), and proven together in an order (`ordering`). What no record can say is `left`, with why.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from patcher.i18n import phrase
from patcher.plan.own_imports import module_files, own_imports
from patcher.recording import describing
from patcher.recording.base import Base
from patcher.recording.by_file import Differing, OnProgress, Shown, Workers, worked_out, workers
from patcher.recording.grouping import Piece, groups, pieces
from patcher.recording.known import known_records, relatives, with_all
from patcher.recording.needs import in_an_order, of_base
from patcher.recording.ordering import proven
from patcher.recording.proof import FileEdits, made_file, with_hunks
from patcher.recording.proposal import Files, Group, Left, Proposal, Recorded, line_of
from patcher.recording.reading import NOT_PACKED, OWN, read_texts
from patcher.records.model import Record, Text, When
from patcher.records.parse import parse
from patcher.records.writing import written
from patcher.rewrite.edits import CreateFile
from patcher.rewrite.marker import split
from patcher.rewrite.texts import remarks, same
from patcher.worktree.files import SETTINGS_BYTES

if TYPE_CHECKING:
    from patcher.analysis.findings import Finding
    from patcher.session.session import Session


def propose(
    session: Session,
    base: Base,
    *,
    only: Collection[str] = (),
    against: Collection[str] = (),
    new: bool = False,
    tell: OnProgress = lambda _under_way: None,
    processes: int | None = None,
) -> Proposal:
    """Records for all that differs from the base, or for some files and folders: proven alone, and all together.

    `against`: releases, as `check` takes them; what an edit repairs for them becomes part of its record. The changes of
    a fix of verl's are one record, but for those with which `check` finds more. `new`: the files that the fork has
    added become records too; without it they are left. `processes`: as `workers` takes it.
    """
    word = session.config.marker
    makers = {edit.file: one.id for one in session.records for edit in one.edits if isinstance(edit, CreateFile)}
    texts, left = read_texts(base, only, word, lambda path: new or path in makers)
    before = {path: found.before for path, found in texts.items() if found.before is not None}
    after = {path: found.after for path, found in texts.items()}
    known = known_records(session, before, after, base.verl) if after else []
    recorded = with_all(known, before, base.verl)
    files = Files(
        before,
        {path: recorded.get(path, "") for path in after},
        after,
        {path: found.shown for path, found in texts.items()},
    )
    made: dict[str, FileEdits] = {}
    for path in sorted(after.keys() - recorded.keys()):
        if path in makers:
            left.append(Left(path, 0, phrase("the record {id} makes another file of this name", id=makers[path])))
        else:
            made[path] = FileEdits(path, (made_file(path, after[path]),))
    differing = [
        Differing(path, files.before[path], after[path])
        for path in recorded
        if not same(files.before[path], after[path])
    ]
    with workers(len(differing), processes) as working:
        return _proposed(session, base, files, tuple(known), left, made, differing, against, working, tell)


def _proposed(
    session: Session,
    base: Base,
    files: Files,
    known: tuple[Record, ...],
    left: list[Left],
    made: dict[str, FileEdits],
    differing: Sequence[Differing],
    against: Collection[str],
    working: Workers,
    tell: OnProgress,
) -> Proposal:
    word = session.config.marker

    def compared(done: int, total: int) -> None:
        tell(phrase("comparing: {done} of {total} {total:file|files}", done=done, total=total))

    done = {one.edits.file: one for one in working.results(differing, compared)}
    texts = {path: one.relaid.text for path, one in done.items() if one.relaid.text != files.after[path]}
    files = replace(
        files,
        after={**files.after, **texts},
        places={path: done[path].relaid.places for path in texts},
        laid_out=tuple(path for path, text in texts.items() if not same(text, files.after[path])),
    )
    for path, one in done.items():
        made[path] = one.edits
        left += [Left(path, files.shown_line(path, hunk.new[0], word), why) for hunk, why in one.edits.refused]
    found_pieces = pieces({path: edits.made for path, edits in made.items()}, files.before, files.after)
    changes = len(found_pieces) + sum(len(edits.refused) for edits in made.values())
    repaired: tuple[Finding, ...] = ()
    if against and found_pieces:
        from patcher.recording.causes import judged

        found = judged(session, files, base.verl, against)
        repaired = found.repaired
        if base.fix is not None:
            found_pieces, refused = _without_breaks(found_pieces, found.added, files, word)
            left += refused
    if base.fix is None:
        grouped = in_an_order(groups(found_pieces), files, of_base(files, session.tree.root, session.tree_has))
    else:
        grouped = [found_pieces] if found_pieces else []
    if repaired and base.fix is None:
        from patcher.recording.causes import split_by_release

        grouped = [part for group in grouped for part in split_by_release(group, repaired)]
    proposal = Proposal(base, files, (), tuple(left), changes, known, repaired)
    return _with_records(session, proposal, [Group(tuple(group)) for group in grouped], working, tell)


def _without_breaks(
    found: Sequence[Piece], added: Sequence[Finding], files: Files, word: str
) -> tuple[list[Piece], list[Left]]:
    """The changes without those with which `check` finds a break more, and without those that need these."""
    from patcher.recording.causes import brings
    from patcher.recording.porting import missing

    breaks = [one for one in added if one.severity == "break"]
    why = {index: one for index, piece in enumerate(found) for one in breaks if brings(one, piece)}
    left = [
        Left(
            found[index].file,
            line_of(found[index], files, word),
            phrase("check finds with it: {what}", what=one.detail),
        )
        for index, one in why.items()
    ]
    kept = [piece for index, piece in enumerate(found) if index not in why]
    for file in {found[index].file for index in why}:
        hunks = [piece.made.hunk for piece in kept if piece.file == file]
        lacking = missing(files.before[file], with_hunks(files.before[file], files.after[file], hunks), lambda *_: True)
        if lacking:
            needs = phrase("it needs {names}, which come with a change that is left", names=", ".join(sorted(lacking)))
            left += [Left(file, line_of(piece, files, word), needs) for piece in kept if piece.file == file]
            kept = [piece for piece in kept if piece.file != file]
    return kept, left


def with_records(session: Session, proposal: Proposal, wanted: Sequence[Group]) -> Proposal:
    """The proposal with a record for each group."""
    with workers(len({piece.file for group in wanted for piece in group.pieces})) as working:
        return _with_records(session, proposal, wanted, working, lambda _under_way: None)


def _with_records(
    session: Session, proposal: Proposal, wanted: Iterable[Group], working: Workers, tell: OnProgress
) -> Proposal:
    base, files, word = proposal.base, proposal.files, session.config.marker
    taken = {record.id for record in session.records}
    records: list[Recorded] = []
    refused: list[Left] = []
    for group in wanted:
        name = group.name or describing.identifier(group.pieces, base.subject, taken)
        taken.add(name)
        written_remarks = _remarks(group.pieces, files, word)
        record = _record(name, group.pieces, base, written_remarks)
        if proposal.repaired:
            from patcher.recording.causes import with_causes

            record = with_causes(record, group.pieces, proposal.repaired, has_reason=bool(written_remarks))
        if len(written(record).encode()) > SETTINGS_BYTES:
            why = phrase("its record would be larger than one that can be read, {size} KiB", size=SETTINGS_BYTES >> 10)
            refused += [Left(piece.file, 0, why) for piece in group.pieces]
            continue
        records.append(Recorded(record, "", group.pieces, tuple(relatives(record.edits, session.records))))
    rewriting, shown = worked_out([one.record for one in records], proposal, word, working, tell)
    records, unproven = proven(records, proposal, word, rewriting, of_base(files, session.tree.root, session.tree_has))
    finished = tuple(_with_examples(one, shown) for one in records)
    left = _with_users(proposal.left, records, files)
    return replace(proposal, records=finished, left=(*left, *refused, *unproven))


def _with_users(left: Iterable[Left], records: Iterable[Recorded], files: Files) -> tuple[Left, ...]:
    """What is left; of a file of the fork's own with the records that import from it and need it wherever they go."""
    users: dict[str, dict[str, None]] = {}
    for one in records:
        for piece in one.pieces:
            begin, end = piece.made.hunk.new
            lines = range(begin + 1, end + 1)
            for name in own_imports(files.after[piece.file], lines) if piece.file.endswith(".py") else ():
                for file in (*module_files(name), *module_files(f"{name}.")):
                    users.setdefault(file, {})[one.record.id] = None

    def with_its_users(one: Left) -> Left:
        if (one.why is not OWN and one.why is not NOT_PACKED) or one.file not in users:
            return one
        text = (
            "a file of the fork's own, from which these records import: {records}; "
            "a record of it is made by: uky-patch record --new"
        )
        return replace(one, why=phrase(text, records=", ".join(users[one.file])))

    return tuple(map(with_its_users, left))


def _record(name: str, group: Sequence[Piece], base: Base, written_remarks: Sequence[str]) -> Record:
    title = describing.title(group, base.subject)
    fix = base.fix
    reason = describing.reason(base.name, written_remarks) if fix is None else describing.reason_of_fix(fix)
    return Record(
        id=name,
        title=str(title),
        reason=str(reason),
        lifetime="fork-only" if fix is None else "until-upstream",
        upstream=fix.address or None if fix is not None else None,
        when=When({"verl": f"<{fix.since}"} if fix is not None and fix.since else {}),
        edits=tuple(edit for piece in group for edit in piece.made.edits),
        tags=("fork",) if fix is None else ("backport",),
        zh=Text(title.render("zh"), reason.render("zh")),
    )


def _remarks(group: Sequence[Piece], files: Files, word: str) -> list[str]:
    """What a hand wrote behind its markers near the changes."""
    found: list[str] = []
    for piece in group:
        text = files.shown[piece.file]
        marked = remarks(text, word)
        if not marked:
            continue
        first, last = piece.made.hunk.new
        if first == last:
            begin, end = _gap(piece, files, word)
            found += [words for line, words in marked if begin < line < end]
            continue
        lines = split(files.after[piece.file])[first:last]
        near = [
            index + 1 for index, line in enumerate(split(text)) if any(one.strip() and one in line for one in lines)
        ]
        found += [words for line, words in marked if any(abs(line - one) <= 2 for one in near)]
    return found


def _gap(piece: Piece, files: Files, word: str) -> tuple[int, int]:
    """The lines of the fork's file, from 1, between which something was taken out: all between them are comments that
    carry the marker, such as `# assert done  # Uky: it is not`."""
    place, text = piece.made.hunk.new[0], files.after[piece.file]
    begin = files.shown_line(piece.file, place - 1, word) if place > 0 else 0
    has_more = place < len(split(text))
    end = files.shown_line(piece.file, place, word) if has_more else len(split(files.shown[piece.file])) + 1
    return begin, end


def _with_examples(one: Recorded, shown: Shown) -> Recorded:
    """The record with the smallest pieces of its files that it works on, and its text, read back."""
    files = one.record.files
    found = tuple(
        replace(example, file=file) if len(files) > 1 else example
        for file in files
        for example in shown.get((one.record.id, file), ())  # A new file has none: its example would be the file again.
    )
    for record in (replace(one.record, examples=found), one.record):
        text = written(record)
        read = parse(text, Path(f"{record.id}.toml"))
        if isinstance(read, Record) and read.edits == record.edits:
            return replace(one, record=read, text=text)
    raise AssertionError(f"a record that was made does not parse: {read}")
