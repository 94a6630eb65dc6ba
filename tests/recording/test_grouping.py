"""Which changes of a fork become one record."""

from __future__ import annotations

from patcher.recording.grouping import Piece, groups
from patcher.recording.hunks import Hunk
from patcher.recording.proof import Made
from patcher.rewrite.edits import CreateFile


def added(file: str, lines: int, *names: str) -> Piece:
    edit = CreateFile(file=file, content="pass\n" * lines)
    return Piece(file, Made(Hunk((0, 0), (0, lines)), None, (edit,)), frozenset(names))


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
