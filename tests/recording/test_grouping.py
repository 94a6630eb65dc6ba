"""Which changes of a fork become one record."""

from __future__ import annotations

import pytest

from patcher.analysis.findings import Finding
from patcher.i18n import phrase
from patcher.recording.causes import split_by_release
from patcher.recording.grouping import Piece, groups, pieces
from patcher.recording.hunks import Hunk
from patcher.recording.proof import Made, edits_of_file
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


def grouped(before: str, after: str, *others: tuple[str, str, str]) -> list[list[str]]:
    """The changed lines of one file that become one record each, beside other files that differ."""
    made, old, new = {}, {FILE: before}, {FILE: after}
    for file, *texts in others:
        old[file], new[file] = texts
    for file in new:
        made[file] = edits_of_file(file, old[file], new[file]).made
    found = groups(pieces(made, old, new))
    lines = after.splitlines()
    return [
        [line.strip() for piece in group for line in lines[slice(*piece.made.hunk.new)]]
        for group in found
        if group[0].file == FILE
    ]


FILE = "verl/main.py"
MAIN = """import os


class Runner:
    def close(self):
        return os.getpid()

    def start(self):
        begin()


def main():
    run()


def stop():
    end()
"""


@pytest.mark.parametrize("module", ["re", "sys", "np", "time"])
def test_an_import_and_its_use_are_one_record_whatever_other_files_say(module: str) -> None:
    new = MAIN.replace("import os\n", f"import os\nimport {module}\n")
    new = new.replace("    run()\n", f"    {module}.show()\n    run()\n")
    settings = ("verl/a.yaml", "epochs: 30  # each time\n", "epochs: 3  # each time\n")
    assert grouped(MAIN, new, settings) == [[f"import {module}", f"{module}.show()"]]


def test_changes_that_do_not_use_what_is_imported_stay_apart() -> None:
    new = MAIN.replace("import os\n", "import os\nimport sys\n").replace("    run()\n", "    sys.exit(run())\n")
    new = new.replace("    end()\n", "    end(1)\n")
    assert grouped(MAIN, new) == [["import sys", "sys.exit(run())"], ["end(1)"]]


def test_a_method_and_the_call_of_it_are_one_record() -> None:
    other = ("verl/b.py", "def flush():\n    return 1\n", "def flush():\n    return 2\n")
    method = "    def flush(self):\n        pass\n\n    def start(self):\n        begin()\n"
    new = MAIN.replace("    def start(self):\n        begin()\n", method)
    new = new.replace("        return os.getpid()\n", "        self.flush()\n        return os.getpid()\n")
    assert len(grouped(MAIN, new, other)) == 1


def test_an_import_that_goes_and_its_last_use_are_one_record() -> None:
    new = MAIN.replace("import os\n", "").replace("        return os.getpid()\n", "        return 1\n")
    assert len(grouped(MAIN, new)) == 1


def test_more_changes_than_may_share_a_new_name_stay_with_the_import_that_they_use() -> None:
    functions = "".join(f"\n\ndef part{n}():\n    run({n})\n" for n in range(12))
    old = f"import os\n{functions}"
    new = old.replace("import os\n", "import os\nimport sys\n").replace("    run(", "    sys.stdout.flush()\n    run(")
    assert len(grouped(old, new)) == 1


def test_releases_that_need_them_take_no_import_from_its_use() -> None:
    """`one` broke in 0.11, `two` in 0.12: two records, but for what a new import ties to a use."""
    old = "import os\n\n\ndef main():\n    one()\n    done = True\n    two()\n"
    new = old.replace("import os", "import os\nimport sys").replace("one()", "one(1)").replace("two()", "two(sys)")
    found = pieces({FILE: edits_of_file(FILE, old, new).made}, {FILE: old}, {FILE: new})
    findings = [
        Finding(FILE, line, f"vllm.{name}", "argument removed", "break", phrase(""), since=since)
        for line, name, since in ((5, "one", "0.11.0"), (7, "two", "0.12.0"))
    ]
    parts = split_by_release(found, findings)
    lines = new.splitlines()
    texts = [[lines[piece.made.hunk.new[0]].strip() for piece in part] for part in parts]
    assert sorted(map(sorted, texts)) == [["import sys", "two(sys)"], ["one(1)"]]
