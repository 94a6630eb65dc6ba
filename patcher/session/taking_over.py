"""Files that were changed since they were patched, and still hold what the records made: what they are without it.

    as the records made it        as it is now                  what is left without the records
    start(                        start(                        start(
        # quiet=1,  # Uky[log]        # quiet=1,  # Uky[log]        quiet=1,
        log=0,  # Uky[log]            log=0,  # Uky[log]            port=9,
        port=8,                       port=9,
    )                             )                             )

A hand has edited what lies beside, a formatter has laid the file out anew, or git has put a commit there in which both
are. What is left is worked out as text, and holds only if the records make of it what is there, as `same` compares
texts: so no line that a record made counts as unchanged where a hand has changed what it says.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from patcher.errors import TreeError
from patcher.plan.inputs import belongs
from patcher.plan.replay import EditFilter, Workspace, predecessors
from patcher.records.load import as_applied, in_order
from patcher.rewrite.layout import relaid
from patcher.rewrite.marker import line_markers, marker_pattern, markers, split_whole, without_markers
from patcher.rewrite.merging import beside
from patcher.rewrite.outcome import AnchorMissing
from patcher.rewrite.texts import same
from patcher.tree.source import Codec, Source, Undecodable, decode, encode
from patcher.worktree.hashing import digest_of

if TYPE_CHECKING:
    from patcher.records.model import Record
    from patcher.session.session import Session
    from patcher.tree import Ledger


@dataclass(frozen=True, slots=True)
class TakenOver:
    """A file that still holds what records made."""

    base: bytes | None
    """What it is without that; None of a file that records have made."""
    made: str
    """The digest of the text that the records make of `base`."""
    edited: bool
    """Whether a hand has edited it; False where it is laid out anew and says the same."""


@dataclass(frozen=True, slots=True)
class _Way:
    """Records that may have made what is in a file, and which of their edits are for the tree's verl."""

    records: tuple[Record, ...]
    """In the order in which they are made."""
    earlier: Mapping[str, frozenset[str]]
    belongs: Mapping[str, EditFilter]


def taken_over(
    session: Session,
    ledger: Ledger,
    contents: Mapping[str, bytes],
    *,
    replaced: Collection[str] = (),
    committed: Sequence[Record] = (),
) -> dict[str, TakenOver]:
    """Those of the ledger's files that hold what its records made, or what these records make as they are now.

    `contents`: by path, what is there. The files in `replaced` are of another commit or release, so that what is there
    may also be the work of other records, as the markers say, or of the records as they are `committed` there.
    """
    found = {}
    for path, content in contents.items():
        one = _taken_over(session, ledger, path, content, committed, replaced=path in replaced)
        if one is not None:
            found[path] = one
    return found


def without_reverted(session: Session, committed: Sequence[Record], path: str, base: bytes, there: bytes) -> bytes:
    """What a commit has of a file, without what records made in it and a revert has taken out of the file that is
    `there`; as it is where markers and old lines do not tell. `committed`: records as that commit has them."""
    read, now = decode(Source(path, base, "", 0)), decode(Source(path, there, "", 0))
    if isinstance(read, Undecodable) or isinstance(now, Undecodable):
        return base
    word = session.config.marker
    named, kept = ({marker.record for marker in markers(text, word)} for text in (read[0], now[0]))
    records = in_order({record.id: record for record in (*session.records, *committed)}.values())
    made_by = tuple(record for record in records if record.id in named - kept)
    verl = belongs(session.environment.version("verl") or "")
    way = _Way(made_by, predecessors(records), {record.id: verl for record in made_by})
    left = _old_lines(read[0], {record.id for record in made_by}, word)
    made = _made(session, way, path, left) if made_by else None
    return encode(left, read[1], path) if made is not None and _says_the_same(made, read[0], path, word) else base


def _taken_over(
    session: Session, ledger: Ledger, path: str, content: bytes, committed: Sequence[Record], *, replaced: bool
) -> TakenOver | None:
    read = decode(Source(path, content, "", 0))
    if isinstance(read, Undecodable):
        return None
    text, codec = read
    word = session.config.marker
    original, before = _before(session, ledger, path)
    for way in _ways(session, ledger, path, text, committed, replaced=replaced):
        as_made = _made(session, way, path, before) if before is not None or original is None else None
        names = {record.id for record in way.records}
        for base in _bases(path, text, as_made, before, names, word):
            if base is not None and any(marker.record in names for marker in markers(base, word)):
                continue
            made = _made(session, way, path, base)
            if made is None or not _says_the_same(made, text, path, word):
                continue
            left = original if base == before else _encoded(base, codec, path)
            edited = as_made is None or not _says_the_same(as_made, text, path, word)
            return TakenOver(left, digest_of(made.encode()), edited)
    return None


def _before(session: Session, ledger: Ledger, path: str) -> tuple[bytes | None, str | None]:
    """The file before any record, and its text; None of one that records have made, and text None where it is none.

    A pre-image that is lost counts as b"", of which no record makes anything: then the markers alone can tell."""
    try:
        original = session.tree.original(ledger.files[path])
    except TreeError:
        return b"", None
    read = decode(Source(path, original, "", 0)) if original is not None else None
    return original, read[0] if isinstance(read, tuple) else None


def _ways(
    session: Session, ledger: Ledger, path: str, text: str, committed: Sequence[Record], *, replaced: bool
) -> Iterator[_Way]:
    """The records as they were applied, then as they are now, then as they are committed."""
    applied = {name: as_applied(name, entry.source) for name, entry in ledger.records.items()}
    here = [applied[name] for name in ledger.files[path].records if name in applied]
    verl = {name: belongs(entry.versions.get("verl", "")) for name, entry in ledger.records.items()}
    yield _Way(tuple(here), predecessors(in_order(applied.values())), verl)
    known = {record.id for record in session.records}
    records = (*session.records, *(record for name, record in applied.items() if name not in known))
    names = {record.id for record in here}
    if replaced:
        names = {marker.record or "" for marker in markers(text, session.config.marker)}
    now = belongs(session.environment.version("verl") or "")
    others = {record.id: record for record in committed}
    for some in (records, *([tuple(others.get(record.id, record) for record in records)] if others else [])):
        there = tuple(record for record in some if record.id in names)
        yield _Way(there, predecessors(some), {record.id: now for record in there})


def _made(session: Session, way: _Way, path: str, base: str | None) -> str | None:
    """What the records make of a text of this one file; None where there is none, or one of them finds no place."""
    workspace = Workspace({} if base is None else {path: base}, session.config.marker, session.config.style)
    for record in way.records:
        here = replace(record, edits=tuple(edit for edit in record.edits if edit.file == path))
        done = workspace.replay(here, way.belongs[record.id], way.earlier[record.id])
        if not done.made:
            # An edit of every place has found them in the record's other files.
            nowhere = {r.edit for r in done.results if isinstance(r.outcome, AnchorMissing) and r.edit.count is None}
            here = replace(here, edits=tuple(edit for edit in here.edits if edit not in nowhere))
            if not workspace.replay(here, way.belongs[record.id], way.earlier[record.id]).made:
                return None
    return workspace.texts.get(path)


def _bases(
    path: str, text: str, made: str | None, before: str | None, names: Collection[str], word: str
) -> Iterator[str | None]:
    """What the file may be without the records: the likeliest first.

    `made` of `before` is what the records make; `text` is what is there.
    """
    if made is not None and before is None:
        yield None
        return
    if made is not None and before is not None:
        made, before = (_in_layout(text, one, path, word) for one in (made, before))
        lines = beside(_marked_alike(text, made, word), split_whole(text), split_whole(before))
        if lines is not None:
            yield "".join(lines)
    yield _old_lines(text, names, word)


def _in_layout(text: str, other: str, path: str, word: str) -> str:
    """`other` with the lines of `text` for the statements that say the same."""
    if not path.endswith(".py") or "\r" in text or "\r" in other:
        return other
    return relaid(text, other, but=word).text


def _marked_alike(text: str, made: str, word: str) -> list[str]:
    """The lines of `made` as `text` has them where only a marker or an old line kept as a comment differs.

    # limit = 3  # Uky[fork-limit]
    limit = 5  # Uky[fork-limit]        limit = 5  # Uky: for the large cluster
    """
    theirs, ours = split_whole(text), split_whole(made)
    one, two = ([without_markers(line, word) or line for line in lines] for lines in (ours, theirs))

    def kept(lines: list[str]) -> bool:
        return all(line_markers(line, word) and not without_markers(line, word) for line in lines)

    alike: list[str] = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, one, two, autojunk=False).get_opcodes():
        as_there = tag == "equal" or (kept(ours[i1:i2]) and kept(theirs[j1:j2]))
        alike += theirs[j1:j2] if as_there else ours[i1:i2]
    return alike


def _old_lines(text: str, names: Collection[str], word: str) -> str:
    """The text with the old lines that the records keep as comments, and without those that they have put there.

    # limit = 3  # Uky[fork-limit]        limit = 3
    limit = 5  # Uky[fork-limit]
    """
    lines = []
    for line in split_whole(text):
        ids = line_markers(line, word)
        if not ids or not set(ids) <= set(names):
            lines.append(line)
            continue
        code = line.lstrip()
        kept = code.startswith("#") and not marker_pattern(word).match(code)
        old = without_markers(code[1:].removeprefix(" "), word) if kept else ""
        if old.strip():
            lines.append(line[: len(line) - len(code)] + old)
    return "".join(lines)


def _says_the_same(one: str, two: str, path: str, word: str) -> bool:
    return same(without_markers(one, word), without_markers(two, word), path)


def _encoded(text: str | None, codec: Codec, path: str) -> bytes | None:
    return None if text is None else encode(text, codec, path)
