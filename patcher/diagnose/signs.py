"""The signs of symptoms in the lines of a log. A pattern is compiled when one of its words is first seen."""

from __future__ import annotations

import re
from functools import cached_property

from patcher.diagnose.blocks import Block
from patcher.diagnose.labels import unlabelled
from patcher.diagnose.searching import Search
from patcher.records.log_lines import said
from patcher.records.needles import needles, width
from patcher.records.symptoms import Match, Symptom

_BEGINNING = re.compile(r"(?<![\[\\])\^")


class Sign:
    """One match of one symptom."""

    def __init__(self, symptom: Symptom, match: Match) -> None:
        self.symptom = symptom
        self.match = match
        self._line = Search(match.line)
        self._near = tuple(Search(pattern) for pattern in match.near)

    @property
    def words(self) -> frozenset[str]:
        """Of which each line that it is found in holds one, in lower case."""
        return needles(self.match.line)

    @cached_property
    def weight(self) -> int:
        """How particular it is."""
        return width(self.match.line) + 20 * len(self.match.near)

    def found(self, text: str, block: Block, start: int, steps: int) -> bool:
        """Whether the line that begins at `start` in `block`, and says `text`, is one, after so many training steps."""
        if steps < self.match.after_steps:
            return False
        if not _says(self._line, text):
            return False
        if not self._near:
            return True
        within = self.match.within
        around = [said(line).text for line in (*block.before(start, within), *block.behind(start, within))]
        return all(any(_says(pattern, line) for line in around) for pattern in self._near)

    @property
    def spent(self) -> list[str]:
        """Its patterns that have taken too long."""
        return [search.pattern for search in (self._line, *self._near) if search.is_spent]


def _says(search: Search, text: str) -> bool:
    """Whether a line matches; where a pattern wants its beginning, also without a logger's labels before it."""
    if _BEGINNING.search(search.pattern) is None:
        return search.finds(text)
    if search.finds(unlabelled(text).text):
        return True
    return not search.pattern.startswith("^(?!") and search.finds(text)
