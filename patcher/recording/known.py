"""Edits by hand that a known record says already: it would make just the same, so nothing new is to be recorded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from patcher.patching.status import records_status
from patcher.plan.inputs import belongs
from patcher.recording.hunks import line_hunks
from patcher.recording.proof import applied
from patcher.rewrite.edits import Edit, Insert, Replace
from patcher.rewrite.marker import split

if TYPE_CHECKING:
    from patcher.records.model import Record
    from patcher.session.session import Session

_TELLING = re.compile(r"""["'](/[\w.-]+(?:/[\w.-]+){2,})["']""")
"""A path in a string: few texts are as much a matter of one purpose."""


def known_records(session: Session, before: Mapping[str, str], after: Mapping[str, str], verl: str) -> list[Record]:
    """The records that the fork has by hand, in the order in which they are made.

    `before` lacks the files that the fork has added.

    Of a record that is not needed for the versions at hand, the fork's edit is its own. Where no versions are known,
    every record counts."""
    candidates = [record for record in session.records if any(file in after for file in record.files)]
    if candidates and session.unknown_environment is None:
        by_hand = {outcome.id for outcome in records_status(session).outcomes if outcome.kind == "adopted"}
        candidates = [record for record in candidates if record.id in by_hand]
    texts = dict(before)
    found: list[Record] = []
    for record in candidates:
        made = texts_with(record, texts, verl)
        if made and all(file in after and _lies_between(texts.get(file), made[file], after[file]) for file in made):
            texts |= made
            found.append(record)
    return found


def relatives(edits: Iterable[Edit], records: Iterable[Record]) -> list[Record]:
    """Records that are off, and put a text of the same words there: another form of the same idea.

    os.environ["LD_LIBRARY_PATH"] = "/usr/local/cuda/lib64/stubs"       triton-libcuda-stubs, which says why it harms
    """
    mine = {text for edit in edits for text in _telling(edit)}
    return [
        one for one in records if not one.enabled and mine & {text for edit in one.edits for text in _telling(edit)}
    ]


def _telling(edit: Edit) -> list[str]:
    match edit:
        case Insert(code=code) | Replace(replacement=code):
            return _TELLING.findall(code)
        case _:
            return []


def texts_with(record: Record, texts: Mapping[str, str], verl: str) -> dict[str, str]:
    """The files that a record changes, with its edits; none where one of them finds no place."""
    found: dict[str, str] = {}
    decide = belongs(verl)
    for edit in record.edits:
        certain = decide(edit)
        if certain is False:
            continue
        made = applied(found.get(edit.file, texts.get(edit.file)), (edit,))
        if made is not None:
            found[edit.file] = made
        elif certain:
            return {}
    return found


def with_all(records: Iterable[Record], texts: Mapping[str, str], verl: str) -> dict[str, str]:
    """The texts with the edits of all these records."""
    found = dict(texts)
    for record in records:
        found |= texts_with(record, found, verl)
    return found


def _lies_between(before: str | None, made: str, after: str) -> bool:
    """Whether all that an edit changes is in the fork to the letter: then it leaves just so much less to be done.

    With 10 lines that differ between `before` and `after`, an edit of 4 lines must leave 6.
    """
    if before is None:
        return _differing(made, after) == 0
    return _differing(before, made) > 0 and _differing(made, after) == _differing(before, after) - _differing(
        before, made
    )


def _differing(one: str, two: str) -> int:
    hunks = line_hunks([line for line in split(one) if line.strip()], [line for line in split(two) if line.strip()])
    return sum(hunk.old[1] - hunk.old[0] + hunk.new[1] - hunk.new[0] for hunk in hunks)
