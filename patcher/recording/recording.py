"""From what differs to records: found, grouped, named, and proven before anybody sees them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from patcher.i18n import Phrase, phrase
from patcher.plan.inputs import belongs
from patcher.plan.own_imports import AbsentImport, TreeLookup, module_files, own_imports
from patcher.plan.replay import Replayed, Rewriting, Workspace, predecessors
from patcher.recording import describing
from patcher.recording.base import Base
from patcher.recording.by_file import Differing, OnProgress, Shown, Workers, worked_out, workers
from patcher.recording.grouping import Piece, groups, pieces
from patcher.recording.known import known_records, relatives, with_all
from patcher.recording.needs import brings, in_an_order, of_base
from patcher.recording.proof import FileEdits, made_file, with_hunks
from patcher.recording.proposal import Files, Group, Left, Proposal, Recorded, line_of
from patcher.recording.reading import OWN, read_texts
from patcher.recording.texts import remarks, same, without_ids
from patcher.records.load import in_order
from patcher.records.model import Record, Text, When
from patcher.records.parse import parse
from patcher.records.writing import written
from patcher.rewrite.edits import CreateFile
from patcher.rewrite.marker import split
from patcher.rewrite.outcome import Overlap, Rewritten
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
        if not same(files.before[path], after[path], is_python=False)
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
        laid_out=tuple(path for path, text in texts.items() if not same(text, files.after[path], is_python=False)),
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
        grouped = in_an_order(groups(found_pieces), files, of_base(files, session.tree.root))
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


def with_records(
    session: Session, proposal: Proposal, wanted: Sequence[Group], tell: OnProgress = lambda _under_way: None
) -> Proposal:
    """The proposal with a record for each group."""
    with workers(len({piece.file for group in wanted for piece in group.pieces})) as working:
        return _with_records(session, proposal, wanted, working, tell)


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
        told = _remarks(group.pieces, files, word)
        record = _record(name, group.pieces, base, told)
        if proposal.repaired:
            from patcher.recording.causes import with_causes

            record = with_causes(record, group.pieces, proposal.repaired, told=bool(told))
        if len(written(record).encode()) > SETTINGS_BYTES:
            why = phrase("its record would be larger than one that can be read, {size} KiB", size=SETTINGS_BYTES >> 10)
            refused += [Left(piece.file, 0, why) for piece in group.pieces]
            continue
        records.append(Recorded(record, "", group.pieces, tuple(relatives(record.edits, session.records))))
    rewriting, shown = worked_out([one.record for one in records], proposal, word, working, tell)
    records, unproven = _proven(records, proposal, word, rewriting, session.tree.root)
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

    def told(one: Left) -> Left:
        if one.why is not OWN or one.file not in users:
            return one
        text = (
            "a file of the fork's own, from which these records import: {records}; "
            "a record of it is made by: uky-patch record --new"
        )
        return replace(one, why=phrase(text, records=", ".join(users[one.file])))

    return tuple(map(told, left))


def _record(name: str, group: Sequence[Piece], base: Base, told: Sequence[str]) -> Record:
    title = describing.title(group, base.subject)
    fix = base.fix
    reason = describing.reason(base.name, told) if fix is None else describing.reason_of_fix(fix)
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
        told = remarks(text, word)
        if not told:
            continue
        lines = split(files.after[piece.file])[slice(*piece.made.hunk.new)]
        near = [
            index + 1 for index, line in enumerate(split(text)) if any(one.strip() and one in line for one in lines)
        ]
        found += [words for line, words in told if any(abs(line - one) <= 2 for one in near)]
    return found


def _proven(
    records: list[Recorded], proposal: Proposal, word: str, rewriting: Rewriting, root: Path
) -> tuple[list[Recorded], list[Left]]:
    """The records that apply on the base one after the other, as `apply` orders them, and together give the fork."""
    files, left = proposal.files, list[Left]()
    tree_has = of_base(files, root)
    while True:
        records, more, texts = _ordered(records, proposal, word, rewriting, tree_has)
        wrong = {
            file
            for file, text in texts.items()
            if not same(text, _expected(file, files, records), is_python=file.endswith(".py"))
        }
        why = phrase("all records together do not give the fork's file")
        left += [*more, *(Left(file, 0, why) for file in sorted(wrong))]
        gone = {one.record.id for one in records if wrong & set(one.record.files)}
        if not gone:
            return records, left
        records = _without(records, gone)  # What is left of them is proven anew: a record may have been needed.


def _ordered(
    records: list[Recorded], proposal: Proposal, word: str, rewriting: Rewriting, tree_has: TreeLookup
) -> tuple[list[Recorded], list[Left], Mapping[str, str]]:
    """The records in an order in which each applies, what no order lets apply, and the texts that they give.

    One that edits lines of another, or needs what another has made, comes after it."""
    files, left = proposal.files, list[Left]()
    texts: Mapping[str, str] = {}
    for _ in range(4 * len(records) + 1):
        failures, texts = _failures(records, proposal, word, rewriting, tree_has)
        if not failures:
            break
        names = {failed.record.id for failed, _ in failures}
        for index, (failed, done) in enumerate(failures):
            needed = _needed_before(done, records, files)
            if index and (not needed or not names.isdisjoint(needed)):
                continue  # It may have failed for one before it that failed.
            mine = set(failed.record.files)
            needed = needed or [one.id for one in proposal.known if mine & set(one.files)]
            follows = {one.id: one.after for one in (*(one.record for one in records), *proposal.known)}
            more = [name for name in needed if name not in failed.record.after and not _leads(name, failed, follows)]
            if more:
                ordered = replace(failed.record, after=(*failed.record.after, *more))
                records = [*(one for one in records if one is not failed), replace(failed, record=ordered)]
            elif not index:
                why = _why_left(done)
                left += [Left(piece.file, line_of(piece, files, word), why) for piece in failed.pieces]
                records = _without(records, {failed.record.id})
                break
    return records, left, texts


def _without(records: Iterable[Recorded], gone: Collection[str]) -> list[Recorded]:
    """The records without some, which none of the others comes after any more."""
    kept = (one for one in records if one.record.id not in gone)
    return [
        replace(one, record=replace(one.record, after=tuple(name for name in one.record.after if name not in gone)))
        for one in kept
    ]


def _failures(
    records: Sequence[Recorded], proposal: Proposal, word: str, rewriting: Rewriting, tree_has: TreeLookup
) -> tuple[list[tuple[Recorded, Replayed]], Mapping[str, str]]:
    """Make the records, with those that the fork has already, in the order in which `apply` makes them.

    Returns those that do not make all of their edits, with what came of each, and the texts without markers."""
    by_id = {one.record.id: one for one in records}
    workspace = Workspace.of(proposal.files.base, {}, word, "clean", tree_has=tree_has, rewriting=rewriting)
    ordered = in_order([*(one.record for one in records), *proposal.known])
    earlier = predecessors(ordered)
    decide = belongs(proposal.base.verl)
    failures: list[tuple[Recorded, Replayed]] = []
    for record in ordered:
        done = workspace.replay(replace(record, style=None), decide, earlier[record.id])
        if record.id in by_id and not (done.made and all(isinstance(one.outcome, Rewritten) for one in done.results)):
            failures.append((by_id[record.id], done))
    return failures, {file: without_ids(text, word) for file, text in workspace.texts.items()}


def _expected(file: str, files: Files, kept: Sequence[Recorded]) -> str:
    """The file with the changes that are recorded."""
    hunks = [piece.made.hunk for one in kept for piece in one.pieces if piece.file == file]
    return with_hunks(files.before[file], files.after[file], hunks)


def _leads(name: str, other: Recorded, follows: Mapping[str, Sequence[str]]) -> bool:
    """Whether a record comes after another already, or is it: two that need each other have no order."""
    return name == other.record.id or any(_leads(one, other, follows) for one in follows.get(name, ()))


def _needed_before(done: Replayed, records: Iterable[Recorded], files: Files) -> list[str]:
    """The records after which one is to come: whose lines it edits, or whose function it imports."""
    for result in done.results:
        if isinstance(result.outcome, Overlap):
            return [result.outcome.record]
        if isinstance(result.outcome, AbsentImport):
            return [
                one.record.id
                for one in records
                if any(brings(piece, result.outcome.name, files) for piece in one.pieces)
            ]
    return []


def _why_left(done: Replayed) -> Phrase:
    for result in done.results:
        if isinstance(result.outcome, AbsentImport):
            return phrase("it needs {names}, which come with a change that is left", names=result.outcome.name)
    return phrase("its edits do not find their places beside those of other records")


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
