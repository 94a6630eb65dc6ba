"""Which changes of a fork become one record."""

from __future__ import annotations

from patcher.recording.grouping import Piece, groups
from patcher.recording.hunks import Hunk
from patcher.recording.proof import Made
from patcher.rewrite.edits import CreateFile


def added(file: str, lines: int, *names: str) -> Piece:
    return of_text(file, f"{'pass':50}\n" * lines, *names)


def of_text(file: str, text: str, *names: str) -> Piece:
    made = Made(Hunk((0, 0), (0, text.count("\n"))), None, (CreateFile(file=file, content=text),))
    return Piece(file, made, frozenset(names), len(text))


def files(found: list[Piece]) -> list[list[str]]:
    return [[piece.file for piece in group] for group in groups(found)]


def test_what_shares_a_new_name_is_one_record() -> None:
    found = [added("verl/a.py", 100, "site_hook"), added("verl/b.py", 100), added("verl/c.py", 100, "site_hook")]
    assert files(found) == [["verl/a.py", "verl/c.py"], ["verl/b.py"]]


def test_names_that_link_all_changes_of_a_large_fork_make_no_record_of_all_of_them() -> None:
    found = [added(f"verl/part{n}.py", 900, f"link{n}", f"link{n + 1}") for n in range(10)]
    made = files(found)
    assert sorted(file for group in made for file in group) == sorted(piece.file for piece in found)
    assert max(map(len, made)) == 2


def test_data_in_one_long_line_makes_no_record_that_is_too_large() -> None:
    found = [of_text(f"data/part{n}.json", "x" * 90_000 + "\n", "dataset") for n in range(3)]
    assert max(map(len, files(found))) == 1
