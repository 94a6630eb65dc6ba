"""Lines that carry a record's mark where the ledger says nothing of them, as in a clone: are they what it makes?

# disable_log=args.disable_log,  # Uky[log]        what stood there before
enable_log=not args.enable_log,  # Uky[log]        of that the record makes `enable_log=args.enable_log,`
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from patcher.plan.inputs import belongs
from patcher.plan.outcome import Spot
from patcher.plan.planning import own_lines
from patcher.plan.replay import Workspace, predecessors
from patcher.rewrite.marker import line_markers, marker_pattern, split_whole
from patcher.tree.source import Undecodable, decode

if TYPE_CHECKING:
    from patcher.records.model import Record
    from patcher.session.session import Session


def changed_lines(session: Session, ids: Collection[str]) -> dict[str, Spot]:
    """By record, the first of its marked lines that is not what the record makes of the text before.

    That text is the file with the old lines that stand there as comments, and without the marked ones. Where it cannot
    be told so, nothing is said of a record.
    """
    records = [record for record in session.records if record.id in ids]
    word = session.config.marker
    texts = {}
    for file in dict.fromkeys(file for record in records for file in record.files):
        source = session.tree.read(file)
        text = decode(source) if source is not None else None
        if text is not None and not isinstance(text, Undecodable):
            texts[file] = text[0]
    before = {file: _without_edits(text, word) for file, text in texts.items()}
    made = _made(records, before, word, session.environment.version("verl") or "")
    return {
        record.id: spot
        for record in records
        if record.id in made and (spot := _first_changed(record, texts, made[record.id], word)) is not None
    }


def _without_edits(text: str, word: str) -> str:
    """The text as it was before the records whose ids its marks name."""
    kept = []
    for line in split_whole(text):
        if not any(line_markers(line, word)):
            kept.append(line)
        elif (body := line.lstrip(" \t\f")).startswith("# ") and not marker_pattern(word).match(body):
            indent = line[: len(line) - len(body)]
            end = line[len(line.rstrip("\r\n")) :]
            kept.append(f"{indent}{marker_pattern(word).split(body[2:])[0].rstrip()}{end}")
    return "".join(kept)


def _made(records: Sequence[Record], before: Mapping[str, str], word: str, verl: str) -> dict[str, dict[str, str]]:
    """By record, the texts with the edits of all records; without the records that can make none of theirs."""
    workspace, before_them = Workspace(before, word, "comment"), predecessors(records)
    done = [record.id for record in records if workspace.replay(record, belongs(verl), before_them[record.id]).made]
    return dict.fromkeys(done, workspace.texts)


def _first_changed(record: Record, texts: Mapping[str, str], made: Mapping[str, str], word: str) -> Spot | None:
    for file in record.files:
        there, wanted = own_lines(record.id, texts.get(file, ""), word), own_lines(record.id, made.get(file, ""), word)
        if not there or _same(texts[file], made.get(file, ""), file):
            continue
        for one, other in zip_longest(there, wanted):
            if one is None or other is None or one[1].strip() != other[1].strip():
                return Spot(file, (one or there[-1])[0])
    return None


def _same(text: str, made: str, file: str) -> bool:
    """Whether two texts say the same, whatever their layout."""
    if text == made:
        return True
    try:
        return file.endswith(".py") and ast.dump(ast.parse(text)) == ast.dump(ast.parse(made))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
