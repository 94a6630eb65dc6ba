"""The files that differ from the base, as text: what can become a record, and why the rest cannot."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from patcher.i18n import Phrase, phrase
from patcher.recording.base import Base
from patcher.recording.proposal import Left
from patcher.rewrite.marker import without_markers
from patcher.rewrite.outcome import Unparseable
from patcher.rewrite.source import parse
from patcher.tree.source import Source, Undecodable, decode
from patcher.worktree import python

OWN = phrase("a file of the fork's own; a record of it is made by: uky-patch record --new")
"""Why a file that the fork has added is left where new files are not asked for."""
NOT_PACKED = phrase(
    "not in that release: a file of the fork's own, or one that verl does not pack; "
    "a record of it is made by: uky-patch record --new"
)
"""The same, where the base is a release: that of verl 0.6.1 lacks verl/tools/utils/mcp_clients/utils.py."""
_LARGEST = 1_000_000
"""Bytes of a new file that becomes a record. Set by hand: source files of verl have up to 100 kB, and a record, which
may hold more than one file, is read up to 1 MiB."""


@dataclass(frozen=True, slots=True)
class Texts:
    """A file without markers before and after, and as it is. `before`: None of one that the fork has added."""

    before: str | None
    after: str
    shown: str


def read_texts(
    base: Base, only: Collection[str], word: str, new: Callable[[str], bool]
) -> tuple[dict[str, Texts], list[Left]]:
    """The files that differ, and those that cannot be compared. `new`: whether one that the fork has added counts."""
    texts: dict[str, Texts] = {}

    def asked(path: str) -> bool:
        return not only or any(path == one or path.startswith(f"{one.rstrip('/')}/") for one in only)

    left = [Left(path, 0, why) for path, why in base.unreadable.items() if asked(path)]
    for path in filter(asked, base.after):
        found = _texts(path, base, word, new)
        if isinstance(found, Left):
            left.append(found)
        elif found.before != found.after:
            texts[path] = found
    told = {one.file for one in left}
    left += [
        Left(path, 0, phrase("no record says who may execute it: after an apply, run chmod {change} on it", change=one))
        for path, one in base.rights.items()
        if asked(path) and path not in told
    ]
    return texts, left


def _texts(path: str, base: Base, word: str, new: Callable[[str], bool]) -> Left | Texts:
    old, content = base.before[path], base.after[path]
    if content is None:
        return Left(path, 0, phrase("the fork has taken this file away"))
    if old is None:
        why = _why_not_made(path, content) if new(path) else NOT_PACKED if base.of_release else OWN
        if why is not None:
            return Left(path, 0, why)
    read = [decode(Source(path, one, "", 0)) for one in (old or b"", content)]
    for one in read:
        if isinstance(one, Undecodable):
            return Left(path, one.line, phrase("it cannot be read: {why}", why=one.message))
    texts = [one[0].replace("\r\n", "\n") for one in read if not isinstance(one, Undecodable)]
    before = without_markers(texts[0], word) if old is not None else None
    if path.endswith(".py") and before is not None:
        wrong = _mistake(texts[1])
        # What neither side has as Python, such as a template, is compared as lines.
        if wrong is not None and _mistake(before) is None:
            return Left(path, wrong.line, phrase("it is no Python: {why}", why=wrong.message))
    return Texts(before, without_markers(texts[1], word), texts[1])


def _mistake(text: str) -> Unparseable | None:
    """Why a text is no Python, of this interpreter's version or a newer one; None where it is."""
    try:
        python.parse(text)
    except python.UnreadableError:
        found = parse(text)
        return found if isinstance(found, Unparseable) else None
    return None


def _why_not_made(path: str, content: bytes) -> Phrase | None:
    """Why no record can make this file; None where one can."""
    if len(content) > _LARGEST:
        size, most = (f"{count / 1_000_000:.1f}" for count in (len(content), _LARGEST))
        return phrase(
            "a file of the fork's own of {size} MB: a record holds no file above {most} MB", size=size, most=most
        )
    if b"\0" in content:
        return phrase("a file of the fork's own that is no text: copy it along with the records")
    read = decode(Source(path, content, "", 0))
    if isinstance(read, Undecodable) or read[1].encoding != "utf-8":
        return phrase("a file of the fork's own that is not in UTF-8: copy it along with the records")
    if read[1].bom or "\r" in read[0]:
        text = (
            "a file of the fork's own with a byte order mark or with other line ends than LF, which a record would "
            "change: convert it, or copy it along with the records"
        )
        return phrase(text)
    return None
