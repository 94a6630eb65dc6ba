"""`python -m bench.known_issues NOTES`: the index of public threads, symptoms/known-issues.tsv, with what NOTES adds.

NOTES are taken from stored results of searches for the threads, one a line, its fields apart by tabs: the exception's
line, the innermost frame of a project where it is shown, the thread as `owner/repository#number`, the release that has
the fix where the thread names one, and a line of our own. No sentence of a thread goes in.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from patcher.data import shipped
from patcher.diagnose.known_issues import COLUMNS, FILE, KnownIssue, normalised, read
from patcher.secrets.redacting import here

_THREAD = re.compile(r"[\w.-]+/[\w.-]+#\d+")
_LONGEST = 100
"""Characters of our line."""


def main() -> int:
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    index = shipped("symptoms") / FILE
    known = read(index.read_text(encoding="utf-8").splitlines()) if index.exists() else []
    added = list(notes(Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()))
    rows = {(one.exception, one.message, one.thread): one for one in (*known, *added)}
    lines = ["# " + "\t".join(COLUMNS), *sorted("\t".join(row(one)) for one in rows.values())]
    index.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(rows)} rows, {len({one.thread for one in rows.values()})} threads")
    return 0


def notes(lines: list[str]) -> Iterator[KnownIssue]:
    """The rows of notes. Raises SystemExit with the line of a mistake."""
    for number, line in enumerate(lines, 1):
        fields = line.split("\t")
        if len(fields) != 5 or not _THREAD.fullmatch(fields[2]) or not 0 < len(fields[4]) <= _LONGEST:
            raise SystemExit(
                f"line {number}: expected line, frame, owner/repository#number, release, up to 100 characters"
            )
        said, frame, thread, fixed_in, about = fields
        yield KnownIssue(*normalised(here().text(said)), frame, thread, fixed_in, about)


def row(one: KnownIssue) -> tuple[str, ...]:
    return one.exception, one.message, one.frame, one.thread, one.fixed_in, one.about


if __name__ == "__main__":
    sys.exit(main())
