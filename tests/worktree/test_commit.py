"""A commit that was planned on another machine: all or nothing, on exactly what was planned on, on Python 3.8 too."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from patcher.messages import Refusal
from patcher.remote import agent_program
from patcher.worktree.account import account
from patcher.worktree.hashing import ABSENT, digest_of
from patcher.worktree.ledger import AppliedRecord, Ledger, PatchedFile, dump
from patcher.worktree.storage import Storage
from patcher.worktree.transaction import Change, commit

OLD, NEW = b"VALUE = 1\n", b"VALUE = 2\n"
PATHS = ("verl/one.py", "verl/two.py")
LEDGER = Ledger(
    {path: PatchedFile(digest_of(OLD), digest_of(NEW), ("toy",)) for path in PATHS},
    {"toy": AppliedRecord('id = "toy"\n')},
)
CHANGES = [Change(path, digest_of(OLD), NEW) for path in PATHS]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "verl").mkdir()
    for path in PATHS:
        (tmp_path / path).write_bytes(OLD)
    return tmp_path


def contents(root: Path) -> list[bytes]:
    return [(root / path).read_bytes() for path in PATHS]


def test_a_commit_writes_all_files_and_the_ledger_and_another_takes_them_back(root: Path) -> None:
    assert commit(str(root), "apply", CHANGES, LEDGER, expect_ledger=None) == PATHS
    assert contents(root) == [NEW, NEW]
    found = account(Storage(root)).ledger
    assert dump(found) == dump(LEDGER)
    back = [Change(path, digest_of(NEW), OLD) for path in PATHS]
    assert commit(str(root), "revert", back, Ledger(), expect_ledger=digest_of(dump(LEDGER))) == PATHS
    assert contents(root) == [OLD, OLD]
    assert not (root / ".uky-patch").exists()


def test_nothing_is_written_where_a_file_or_the_ledger_is_not_what_was_planned_on(root: Path) -> None:
    (root / PATHS[1]).write_bytes(b"edited\n")
    with pytest.raises(Refusal) as caught:
        commit(str(root), "apply", CHANGES, LEDGER, expect_ledger=None)
    assert caught.value.kind == "changed"
    assert contents(root) == [OLD, b"edited\n"]
    assert not (root / ".uky-patch").exists()
    (root / PATHS[1]).write_bytes(OLD)
    commit(str(root), "apply", CHANGES, LEDGER, expect_ledger=None)
    with pytest.raises(Refusal) as caught:
        commit(str(root), "revert", [], Ledger(), expect_ledger=None)
    assert caught.value.kind == "changed"
    assert contents(root) == [NEW, NEW]


MADE = "verl/added/deeper/three.py"


def making(content: bytes) -> tuple[Change, PatchedFile]:
    change = Change(MADE, ABSENT, content)
    return change, PatchedFile(ABSENT, change.sha256, ("toy",))


def test_a_file_is_made_and_removed_with_its_folders(root: Path) -> None:
    change, entry = making(NEW)
    ledger = Ledger({**LEDGER.files, MADE: entry}, LEDGER.records)
    assert commit(str(root), "apply", [*CHANGES, change], ledger, expect_ledger=None) == (*PATHS, MADE)
    assert (root / MADE).read_bytes() == NEW
    found = account(Storage(root)).ledger
    assert found.files[MADE].folders == ("verl/added", "verl/added/deeper")
    (root / "verl/added/__pycache__").mkdir()
    gone = Change(MADE, digest_of(NEW), None)
    commit(str(root), "revert", [gone], found.without([MADE]), expect_ledger=digest_of(dump(found)))
    assert not (root / "verl/added").exists()
    assert contents(root) == [NEW, NEW]


def test_a_folder_that_was_there_or_has_something_else_in_it_stays(root: Path) -> None:
    (root / "verl/added").mkdir()
    change, entry = making(NEW)
    ledger = Ledger({MADE: entry}, LEDGER.records)
    commit(str(root), "apply", [change], ledger, expect_ledger=None)
    (root / "verl/added/deeper/theirs.py").write_bytes(b"theirs\n")
    found = account(Storage(root)).ledger
    gone = [Change(MADE, digest_of(NEW), None)]
    commit(str(root), "revert", gone, Ledger(), expect_ledger=digest_of(dump(found)))
    assert [path.name for path in (root / "verl/added/deeper").iterdir()] == ["theirs.py"]
    (root / "verl/added/deeper/theirs.py").unlink()
    (root / "verl/added/deeper").rmdir()
    commit(str(root), "apply", [change], ledger, expect_ledger=None)
    found = account(Storage(root)).ledger
    commit(str(root), "revert", gone, Ledger(), expect_ledger=digest_of(dump(found)))
    assert [*(root / "verl/added").iterdir()] == []


def test_a_file_that_came_meanwhile_or_a_file_in_the_place_of_a_folder_is_not_replaced(root: Path) -> None:
    change, entry = making(NEW)
    ledger = Ledger({MADE: entry}, LEDGER.records)
    (root / MADE).parent.mkdir(parents=True)
    (root / MADE).write_bytes(b"theirs\n")
    with pytest.raises(Refusal) as caught:
        commit(str(root), "apply", [change], ledger, expect_ledger=None)
    assert caught.value.kind == "changed"
    (root / MADE).unlink()
    (root / MADE).parent.rmdir()
    (root / MADE).parent.write_bytes(b"a file\n")
    with pytest.raises(Refusal) as caught:
        commit(str(root), "apply", [change], ledger, expect_ledger=None)
    assert (caught.value.kind, (root / MADE).parent.read_bytes()) == ("path", b"a file\n")
    assert not (root / ".uky-patch").exists()


PROGRAM = """
import json, sys
from importlib.machinery import ModuleSpec
SOURCES, PACKAGES = json.load(open(sys.argv[1]))
{finder}
from patcher.worktree.hashing import ABSENT, digest_of
from patcher.worktree.ledger import AppliedRecord, Ledger, PatchedFile, dump
from patcher.worktree.transaction import Change, commit
made = PatchedFile(ABSENT, digest_of(b"3"), ("toy",), folders=("verl/new",))
files = {{"verl/one.py": PatchedFile(digest_of(b"1"), digest_of(b"2"), ("toy",)), "verl/new/two.py": made}}
ledger = Ledger(files, {{"toy": AppliedRecord("t")}})
change = [Change("verl/one.py", digest_of(b"1"), b"2"), Change("verl/new/two.py", ABSENT, b"3")]
print(commit(sys.argv[2], "apply", change, ledger, expect_ledger=None))
back = [Change("verl/one.py", digest_of(b"2"), b"1"), Change("verl/new/two.py", digest_of(b"3"), None)]
print(commit(sys.argv[2], "revert", back, Ledger(), expect_ledger=digest_of(dump(ledger))))
"""


def test_it_runs_from_the_sources_that_are_sent_to_a_host(root: Path, other_python: Path | None) -> None:
    """In the oldest Python here that sees nothing else than its standard library: no packages, not this checkout."""
    (root / PATHS[0]).write_bytes(b"1")
    found = agent_program.sources_of(agent_program.SENT)
    packages = [name for name in found if any(other.startswith(f"{name}.") for other in found)]
    (root / "sources.json").write_text(json.dumps([found, packages]))
    loader = agent_program._LOADER
    finder = loader[loader.index("class Sent") : loader.index("if __name__")]
    command = [
        str(other_python or sys.executable),
        "-I",
        "-S",
        "-c",
        PROGRAM.format(finder=finder),
        str(root / "sources.json"),
        str(root),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("('verl/one.py', 'verl/new/two.py')\n" * 2, "")
    assert (root / PATHS[0]).read_bytes() == b"1"
    assert not (root / "verl/new").exists()
