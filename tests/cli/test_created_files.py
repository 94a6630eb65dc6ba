"""Files of a fork's own as records: recorded, made in a clean tree, seen, taken out, never put over another file."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import tomllib

from patcher.cli.app import run
from tests.cli.conftest import Answer, write_tree

FILE = "verl/server.py"
LOG = '"""Flags of the log."""\n\nfrom verl import x\n\n\ndef log_flag(args):\n    return not args.disable_log\n'
SCRIPT = "#!/bin/bash\nset -e\nexport NCCL_DEBUG=WARN\npython -m verl.server\n"
JSON = '{"stage": 2}\n'
NEW = {
    "verl/flags/__init__.py": "",
    "verl/flags/log.py": LOG,
    "examples/own/run.sh": SCRIPT,
    "verl/stage.json": JSON,
}


def git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout


def commit(root: Path, subject: str) -> None:
    git(root, "add", ".")
    git(root, "-c", "user.name=A User", "-c", "user.email=user@example.invalid", "commit", "-q", "-m", subject)


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "A User")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "user@example.invalid")


def base(folder: Path) -> Path:
    root = write_tree(folder, "server")
    (root / "verl/__init__.py").write_text("x = 1\n")
    (root / ".gitignore").write_text(".uky-patch*\n__pycache__/\n")
    git(root, "init", "-q", "-b", "fork")
    commit(root, "verl 99.1")
    return root


@pytest.fixture
def fork(tmp_path: Path) -> Path:
    """A fork with files of its own, one of which its server imports."""
    root = base(tmp_path / "fork")
    for path, text in NEW.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    server = (root / FILE).read_text()
    server = server.replace("from verl import x\n", "from verl import x\nfrom verl.flags.log import log_flag\n")
    (root / FILE).write_text(server.replace("disable_log=args.disable_log", "enable_log=log_flag(args)"))
    return root


Call = Callable[..., Answer]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    def made(root: Path, *arguments: str, as_json: bool = True) -> Answer:
        shared = ["--root", str(root), "--assume", "vllm==0.12.0", *(["--format", "json"] if as_json else [])]
        code = run([*shared, *arguments])
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return made


@pytest.fixture
def clean(tmp_path: Path, fork: Path, call: Call) -> Path:
    """The base without the fork's edits, and the fork's records."""
    answer = call(fork, "record", "--new", "--yes")
    assert answer.code == 0
    root = base(tmp_path / "clean")
    shutil.copytree(fork / "patches", root / "patches")
    shutil.copy(fork / "uky-patch.toml", root)
    commit(root, "Records")
    return root


OWN = (".git", ".uky-patch", ".uky-patch-kept")
WRITTEN = (0, 1)
"""Exit codes of an apply that has written: 1, as `check` has no sources of what is assumed here."""


def outcomes(answer: Answer) -> set[str]:
    return {one["outcome"] for one in answer.json["records"] if one["id"].startswith("fork-")}


def everything(root: Path) -> dict[str, bytes | None]:
    """Each file with its content and each folder, git's and our own aside."""
    found = (path for path in root.rglob("*") if path.relative_to(root).parts[0] not in OWN)
    return {str(path.relative_to(root)): path.read_bytes() if path.is_file() else None for path in found}


def test_without_new_they_are_named_with_the_way_to_record_them(fork: Path, call: Call) -> None:
    answer = call(fork, "record", "--dry-run")
    assert {one["file"] for one in answer.json["left"]} == set(NEW)
    assert all("uky-patch record --new" in one["why"] for one in answer.json["left"])
    assert all(one["created"] == [] for one in answer.json["records"])
    assert "uky-patch record --new" in call(fork, "record", "--dry-run", as_json=False).out


def test_records_make_them_in_a_clean_tree_and_a_revert_takes_them_out(fork: Path, clean: Path, call: Call) -> None:
    before = everything(clean)
    dry = call(clean, "apply", "--dry-run")
    assert (dry.code, outcomes(dry), everything(clean)) == (1, {"pending"}, before)
    done = call(clean, "apply")
    assert done.code in WRITTEN
    assert set(done.json["written"]) == {*NEW, FILE}
    log = (clean / "verl/flags/log.py").read_text()
    assert log.startswith("# Uky[fork-")
    assert log.partition("\n")[2] == LOG
    lines = (clean / "examples/own/run.sh").read_text().splitlines()
    assert (lines[0], lines[1].startswith("# Uky[fork-"), lines[2]) == ("#!/bin/bash", True, "set -e")
    assert (clean / "verl/stage.json").read_text() == JSON
    assert "from verl.flags.log import log_flag" in (clean / FILE).read_text()
    assert outcomes(call(clean, "status")) == {"applied"}
    second = call(clean, "apply")
    assert (second.code in WRITTEN, second.json["written"]) == (True, [])
    (clean / "verl/flags/__pycache__").mkdir()
    (clean / "verl/flags/__pycache__/log.cpython-311.pyc").write_bytes(b"compiled")
    back = call(clean, "revert")
    assert back.code == 0
    assert set(back.json["written"]) == {*NEW, FILE}
    assert everything(clean) == before
    assert not (clean / ".uky-patch").exists()


def test_one_record_is_what_is_made_and_what_imports_it(clean: Path, call: Call) -> None:
    records = {path.stem: tomllib.loads(path.read_text()) for path in (clean / "patches").glob("*.toml")}
    kinds = {name: [edit["kind"] for edit in one["edit"]] for name, one in records.items()}
    assert max(kinds.values(), key=len)[0] == "create-file"
    (using,) = [name for name, one in records.items() if any(edit["file"] == FILE for edit in one["edit"])]
    assert {edit["file"] for edit in records[using]["edit"]} == {FILE, "verl/flags/log.py", "verl/flags/__init__.py"}
    alone = [name for name, found in kinds.items() if found == ["create-file"]]
    assert len(alone) == 2


def test_the_fork_has_them_by_hand_and_adopts_them(fork: Path, clean: Path, call: Call) -> None:
    before = everything(clean)
    assert outcomes(call(fork, "status")) == {"adopted"}
    again = call(fork, "record", "--new", "--dry-run")
    assert (again.code, again.json["records"], again.json["left"]) == (0, [], [])
    plain = call(fork, "record", "--dry-run")
    assert (plain.code, plain.json["records"], plain.json["left"]) == (0, [], [])
    assert call(fork, "adopt", "--all").code in WRITTEN
    assert outcomes(call(fork, "status")) == {"applied"}
    assert call(fork, "verify").code in (0, 1)
    assert call(fork, "revert").code == 0
    assert everything(fork) == before


def test_another_file_of_the_name_is_a_conflict_and_stays(clean: Path, call: Call) -> None:
    (clean / "verl/flags").mkdir()
    mine = "# mine\nx = 1\n"
    (clean / "verl/flags/log.py").write_text(mine)
    before = everything(clean)
    answer = call(clean, "apply")
    assert answer.code == 3
    (refused,) = [one for one in answer.json["records"] if one["outcome"] == "conflict"]
    assert "verl/flags/log.py is here with other content, from line 1 on" in refused["detail"]
    assert everything(clean) == before
    (clean / "verl/flags/log.py").write_bytes(b"\xff\xfe binary")
    answer = call(clean, "apply")
    assert [one["outcome"] for one in answer.json["records"] if one["id"] == refused["id"]] == ["conflict"]


def test_one_that_was_edited_since_is_not_taken_out_and_one_that_was_removed_is_made_again(
    clean: Path, call: Call
) -> None:
    assert call(clean, "apply").code in WRITTEN
    made = clean / "verl/flags/log.py"
    text = made.read_text()
    made.write_text(text + "edited = 1\n")
    assert "tampered" in outcomes(call(clean, "status"))
    assert call(clean, "revert").code == 3
    assert call(clean, "apply", "--merge", "--allow-dirty").code != 0
    assert made.read_text() == text + "edited = 1\n"
    found = call(clean, "record", "--new", "--dry-run").json["left"]
    assert [(one["file"], "put the change into that record" in one["why"]) for one in found] == [
        ("verl/flags/log.py", True)
    ]
    made.unlink()
    assert "pending" in outcomes(call(clean, "status"))
    assert call(clean, "apply").json["written"] == ["verl/flags/log.py"]
    assert made.read_text() == text
    made.write_text("edited = 1\n")
    forced = call(clean, "revert", "--force")
    assert forced.code == 0
    assert not (clean / "verl/flags").exists()
    assert any("edited" in path.read_text() for path in (clean / ".uky-patch-kept").glob("verl__flags__log*"))


def test_a_changed_record_changes_what_it_has_made(clean: Path, call: Call) -> None:
    assert call(clean, "apply").code in WRITTEN
    (record,) = [path for path in (clean / "patches").glob("*.toml") if "NCCL_DEBUG" in path.read_text()]
    record.write_text(record.read_text().replace("NCCL_DEBUG=WARN", "NCCL_DEBUG=INFO"))
    assert outcomes(call(clean, "status")) == {"applied", "pending"}
    assert call(clean, "apply").json["written"] == ["examples/own/run.sh"]
    assert "NCCL_DEBUG=INFO" in (clean / "examples/own/run.sh").read_text()
    assert call(clean, "revert").code == 0
    assert not (clean / "examples").exists()


def test_one_of_several_is_taken_out_alone(clean: Path, call: Call) -> None:
    assert call(clean, "apply").code in WRITTEN
    (record,) = [path.stem for path in (clean / "patches").glob("*.toml") if "stage.json" in path.read_text()]
    assert call(clean, "revert", record).json["written"] == ["verl/stage.json"]
    assert not (clean / "verl/stage.json").exists()
    assert (clean / "verl/flags/log.py").exists()
    assert call(clean, "revert").code == 0
    assert not (clean / "verl/flags").exists()


def test_the_ledger_is_made_again_from_what_is_kept(clean: Path, call: Call) -> None:
    assert call(clean, "apply").code in WRITTEN
    (clean / ".uky-patch/ledger.json").unlink()
    assert outcomes(call(clean, "status")) == {"applied"}
    assert call(clean, "revert").code == 0
    assert not any((clean / path).exists() for path in NEW)


def test_each_is_in_a_commit_of_its_record_and_another_takes_it_out(clean: Path, call: Call) -> None:
    done = call(clean, "apply", "--commit")
    assert done.code in WRITTEN
    assert git(clean, "status", "--porcelain") == ""
    assert set(NEW) <= set(git(clean, "ls-files").split())
    settings = (clean / "uky-patch.toml").read_text()
    (record,) = [path.stem for path in (clean / "patches").glob("*.toml") if "stage.json" in path.read_text()]
    (clean / "uky-patch.toml").write_text(f'disable = ["{record}"]\n{settings}')
    commit(clean, "Without it")
    assert call(clean, "apply", "--commit").code in WRITTEN
    assert "verl/stage.json" not in git(clean, "ls-files").split()
    assert git(clean, "status", "--porcelain") == ""


def test_what_is_no_text_or_too_large_is_named_and_not_recorded(tmp_path: Path, call: Call) -> None:
    root = base(tmp_path / "fork")
    (root / "verl/weights.bin").write_bytes(b"\0\1\2")
    (root / "verl/latin.py").write_bytes("# -*- coding: latin-1 -*-\nname = 'é'\n".encode("latin-1"))
    (root / "verl/odd.txt").write_bytes(b"caf\xe9\n")
    (root / "verl/large.json").write_text('"' + "x" * 1_100_000 + '"\n')
    (root / "verl/small.py").write_text("y = 1\n")
    answer = call(root, "record", "--new", "--yes")
    assert [one["created"] for one in answer.json["records"]] == [["verl/small.py"]]
    left = {one["file"]: one["why"] for one in answer.json["left"]}
    assert "no text" in left["verl/weights.bin"]
    assert "not in UTF-8" in left["verl/latin.py"]
    assert "not in UTF-8" in left["verl/odd.txt"]
    assert "1.1 MB" in left["verl/large.json"]


def test_committed_files_count_against_an_older_base(fork: Path, call: Call) -> None:
    first = git(fork, "rev-parse", "HEAD").strip()
    commit(fork, "Ours")
    (fork / "verl/later.py").write_text("z = 1\n")
    found = call(fork, "record", "--new", "--from", first, "--dry-run").json
    assert {file for one in found["records"] for file in one["created"]} == {*NEW, "verl/later.py"}
    only = call(fork, "record", "--new", "--from", first, "--dry-run", "verl/later.py").json
    assert [one["created"] for one in only["records"]] == [["verl/later.py"]]


@pytest.mark.parametrize("path", ["../outside.py", ".git/hooks/post-commit", "verl/out/made.py", ".uky-patch/x.py"])
def test_a_path_out_of_the_tree_is_refused(tmp_path: Path, call: Call, path: str) -> None:
    root = base(tmp_path / "tree")
    (tmp_path / "elsewhere").mkdir()
    (root / "verl/out").symlink_to(tmp_path / "elsewhere")
    (root / "patches").mkdir()
    (root / "patches/own.toml").write_text(
        f'id = "own"\ntitle = "t"\nreason = "r"\nlifetime = "fork-only"\n[when]\n[[edit]]\nfile = "{path}"\n'
        'kind = "create-file"\ncontent = "x = 1\\n"\n'
    )
    (root / "uky-patch.toml").write_text('patches = ["patches"]\n')
    before = everything(tmp_path)
    answer = call(root, "apply")
    assert answer.code not in (0, 1)
    assert "error" in answer.json
    assert everything(tmp_path) == before
