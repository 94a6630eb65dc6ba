"""The commands `record` and `adopt` on a checkout: from a hand edit to a record that is ours."""

from __future__ import annotations

import ast
import contextlib
import errno
import json
import os
import pty
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomllib

from patcher.cli.app import run
from patcher.recording import base
from patcher.worktree import files
from tests.cli.conftest import SERVER, Answer, write_tree

FILE = "verl/server.py"
OWN = "a file of the fork's own; a record of it is made by: uky-patch record --new"
SETTINGS = "trainer:\n  nodes: 1\n  epochs: 30  # many\n  seed: 7\n"


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
    monkeypatch.setenv("LC_ALL", "C.UTF-8")


@pytest.fixture
def fork(tmp_path: Path) -> Path:
    root = write_tree(tmp_path / "fork", "server")
    (root / "verl/settings.yaml").write_text(SETTINGS)
    (root / ".gitignore").write_text(".uky-patch*\n")
    git(root, "init", "-q", "-b", "fork")
    commit(root, "verl 99.1")
    return root


Call = Callable[..., Answer]


@pytest.fixture
def call(fork: Path, capsys: pytest.CaptureFixture[str]) -> Call:
    def made(*arguments: str, as_json: bool = True) -> Answer:
        shared = ["--root", str(fork), "--assume", "vllm==2.1", *(["--format", "json"] if as_json else [])]
        code = run([*shared, *arguments])
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return made


def edit(root: Path, file: str, old: str, new: str) -> None:
    text = (root / file).read_text()
    assert text.count(old) == 1
    (root / file).write_text(text.replace(old, new))


@pytest.fixture
def edited(fork: Path) -> Path:
    """A marked edit, one without a mark, and one of settings."""
    edit(
        fork,
        FILE,
        "            disable_log=args.disable_log,\n",
        "            # disable_log=args.disable_log,  # uky\n"
        "            enable_log=args.enable_log,  # Uky: the sense is inverted\n",
    )
    edit(fork, FILE, 'get_uri("h", 1)', 'get_uri("h", 2)')
    edit(fork, "verl/settings.yaml", "epochs: 30  # many", "epochs: 3")
    return fork


def status(call: Call) -> dict[str, str]:
    return {
        one["id"]: one["outcome"] for one in call("status", "--all").json["records"] if one["id"].startswith("fork-")
    }


def test_from_a_hand_edit_to_a_record_in_one_command(edited: Path, call: Call) -> None:
    before = (edited / FILE).read_bytes()
    answer = call("record", "--yes")
    assert answer.code == 0
    report = answer.json
    assert report["changes"] == 3
    assert report["left"] == []
    places = {(one["file"], one["line"]) for record in report["records"] for one in record["places"]}
    text = (edited / FILE).read_text().splitlines()
    assert any("enable_log=args.enable_log" in "".join(text[line - 4 : line + 3]) for _, line in places)
    assert (FILE, 1 + next(i for i, line in enumerate(text) if 'get_uri("h", 2)' in line)) in places
    assert [one["specific"] for one in report["records"]].count(True) == len(report["records"]) - 1
    assert {Path(path).parent for path in report["written"]} == {edited / "patches"}
    assert tomllib.loads((edited / "uky-patch.toml").read_text()) == {"patches": ["patches"]}
    assert (edited / FILE).read_bytes() == before
    assert set(status(call).values()) == {"adopted"}
    reasons = [tomllib.loads(Path(path).read_text())["reason"] for path in report["written"]]
    assert any("the sense is inverted" in reason for reason in reasons)


@pytest.fixture
def adopted(edited: Path, call: Call) -> Path:
    """The edits recorded, under the ledger, and committed."""
    assert call("record", "--yes").code == 0
    assert call("adopt", "--all").code == 0
    commit(edited, "Records")
    return edited


def test_a_file_in_which_a_recorded_line_was_changed_is_left_out_with_the_way_on(adopted: Path, call: Call) -> None:
    settings = adopted / "verl/settings.yaml"
    settings.write_text(re.sub("  epochs: 3 .*", "  epochs: 5  # Uky", settings.read_text()))
    edit(adopted, FILE, "from verl import x", "from verl import x, y")
    only = call("record", FILE, "--dry-run").json
    assert ([one["files"] for one in only["records"]], only["left"]) == ([[FILE]], [])
    (left,) = call("record", "--dry-run").json["left"]
    assert left["file"] == "verl/settings.yaml"
    assert "put the change into the record, then uky-patch apply --merge" in left["why"]
    changed = [one for one in call("status").json["records"] if one["outcome"] == "tampered"]
    (name,) = [one["id"] for one in changed if not one["changed_since"]]
    record = adopted / f"patches/{name}.toml"
    record.write_text(record.read_text().replace("epochs: 3\n", "epochs: 5\n").replace('new = "3"', 'new = "5"'))
    assert call("apply", "--merge", name, as_json=False).code != 3
    assert status(call)[name] == "applied"
    assert "epochs: 5" in settings.read_text()
    # The commit has `epochs: 3`, which the record made as it was there: that is no edit of a hand.
    again = call("record", "--dry-run").json
    assert ([one["files"] for one in again["records"]], again["left"]) == ([[FILE]], [])


def test_what_a_revert_has_taken_out_is_no_edit_of_a_hand(adopted: Path, call: Call) -> None:
    call("revert", *(one for one, outcome in status(call).items() if outcome == "applied"))
    edit(adopted, FILE, "from verl import x", "from verl import x, y")
    report = call("record", "--dry-run").json
    assert (report["changes"], report["left"]) == (1, [])


def test_lines_of_a_record_that_is_in_no_commit_are_no_base(edited: Path, call: Call) -> None:
    """The commit has `epochs: 3` of a record whose text of that time is lost: no record may take `epochs: 5` back."""
    call("record", "verl/settings.yaml", "--yes")
    (record,) = (edited / "patches").glob("fork-*.toml")
    assert call("adopt", "--all").code == 0
    (edited / ".git/info/exclude").write_text("patches\n")
    commit(edited, "Without the record")
    record.write_text(record.read_text().replace("epochs: 3\n", "epochs: 5\n").replace('new = "3"', 'new = "5"'))
    assert call("apply", record.stem).json["written"] == ["verl/settings.yaml"]
    edit(edited, "verl/settings.yaml", "seed: 7", "seed: 8")
    again = call("record", "--dry-run").json
    assert again["records"] == []
    (left,) = [one for one in again["left"] if one["file"] == "verl/settings.yaml"]
    assert "compare it with --from upstream" in left["why"]


def test_edits_beside_recorded_lines_are_recorded_by_themselves(adopted: Path, call: Call) -> None:
    """Whether they are compared with a commit that has the recorded lines, or with one that has these edits too."""
    edit(adopted, FILE, "config=args.config", "config=None")
    (first,) = call("record", "--dry-run").json["records"]
    assert first["files"] == [FILE]
    commit(adopted, "Quiet")
    assert call("record", "--dry-run").json["changes"] == 0
    edit(adopted, FILE, "from verl import x", "from verl import x, y")
    again = call("record", "--dry-run").json
    assert (again["changes"], [one["files"] for one in again["records"]]) == (1, [[FILE]])


def test_a_second_run_finds_nothing_new(edited: Path, call: Call) -> None:
    call("record", "--yes")
    again = call("record", "--yes").json
    assert again["records"] == []
    assert len(again["known"]) >= 2


def test_adopted_edits_can_be_reverted_and_made_again(edited: Path, call: Call, fork: Path) -> None:
    call("record", "--yes")
    answer = call("adopt", "--all")
    assert answer.code == 0
    assert set(answer.json["adopted"]) == set(status(call))
    assert set(status(call).values()) == {"applied"}
    text = (edited / FILE).read_text()
    assert "enable_log=args.enable_log,  # Uky[" in text
    assert "# disable_log=args.disable_log,  # Uky[" in text
    assert len(answer.json["kept"]) == 2  # Copies of both files, whose edits were in no commit.
    assert call("revert").code == 0
    assert git(fork, "status", "--porcelain", "--", "verl") == ""
    assert set(call("apply", "--allow-dirty").json["written"]) == {FILE, "verl/settings.yaml"}
    assert (edited / FILE).read_text() == text


def test_an_edit_in_a_file_with_crlf_is_adopted_and_reverted_byte_for_byte(fork: Path, call: Call) -> None:
    path = fork / FILE
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    commit(fork, "CRLF")
    before = path.read_bytes()
    path.write_bytes(before.replace(b'get_uri("h", 1)', b'get_uri("h", 2)').replace(b"verl import x", b"verl import y"))
    assert call("record", "--yes").code == 0
    (edited,) = [one for one in call("record", "--dry-run").json["known"] if "launch" in one]
    assert call("adopt", edited).json["refused"] == []
    assert path.read_bytes().count(b"\n") == path.read_bytes().count(b"\r\n")
    call("revert", edited)
    assert path.read_bytes() == before.replace(b"verl import x", b"verl import y")


@pytest.mark.parametrize("content", [b"x = 1\r\n", b"\xef\xbb\xbfx = 1\n"])
def test_a_new_file_that_its_record_would_change_is_named(fork: Path, call: Call, content: bytes) -> None:
    (fork / "verl/new.py").write_bytes(content)
    report = call("record", "--new", "--dry-run").json
    assert report["records"] == []
    assert "with a byte order mark or with other line ends than LF" in report["left"][0]["why"]


def test_a_new_file_of_any_name_is_adopted(fork: Path, call: Call) -> None:
    (fork / "verl/NOTES.md").write_text("# Notes\n")
    assert "--- /dev/null\n+++ b/verl/NOTES.md\n" in call("record", "--new", "--diff", as_json=False).out
    assert call("record", "--new", "--yes").code == 0
    assert call("adopt", "--all").json["refused"] == []
    assert set(status(call).values()) == {"applied"}
    call("revert")
    assert not (fork / "verl/NOTES.md").exists()


def test_edits_that_no_record_has_stay_when_others_are_adopted(edited: Path, call: Call) -> None:
    call("record", "--yes")
    edit(edited, FILE, "        parser = Parser()", "        parser = Parser(strict=True)")
    assert call("adopt", "--all").code == 0
    assert "Parser(strict=True)" in (edited / FILE).read_text()
    assert call("revert").code == 0
    assert (edited / FILE).read_text() == SERVER.replace("Parser()", "Parser(strict=True)")


def test_of_committed_edits_the_base_is_named(edited: Path, call: Call) -> None:
    git(edited, "tag", "v99.1")
    commit(edited, "Our cluster")
    assert call("record", "--yes").json["records"] == []
    found = call("record", "--from", "upstream", "--dry-run")
    assert found.code == 1
    assert found.json["base"].startswith("v99.1 (")
    assert len(found.json["records"]) >= 2
    assert not (edited / "patches").exists()


def test_a_commit_gives_its_records_its_subject(edited: Path, call: Call) -> None:
    commit(edited, "[rollout] feat: log again")
    records = call("record", "--from", "HEAD~1..HEAD", "--yes").json["records"]
    assert all(one["title"] == "[rollout] feat: log again" for one in records)
    assert all(one["id"].startswith("rollout-feat-log-again") for one in records)


def test_only_the_files_that_are_named(edited: Path, call: Call) -> None:
    found = call("record", "verl/settings.yaml", "--dry-run").json
    assert [one["files"] for one in found["records"]] == [["verl/settings.yaml"]]


def test_records_that_use_what_another_brings_are_made_after_it(fork: Path, call: Call) -> None:
    """A helper that many files import is in a record of its own, and `apply` on the base makes all of them."""
    users = [f"verl/user_{letter}.py" for letter in "abcdefghij"]
    (fork / "verl/zones.py").write_text("def here():\n    return 1\n")
    for user in users:
        (fork / user).write_text(f"from verl.zones import here\n\n\ndef {Path(user).stem}():\n    return here()\n")
    commit(fork, "base")
    edit(fork, "verl/zones.py", "    return 1\n", "    return 1\n\n\ndef overseas():\n    return 2\n")
    for number, user in enumerate(users):
        edit(fork, user, "import here", "import here, overseas")
        edit(fork, user, "return here()", f"return here() + {number} * overseas()")
    wanted = {user: (fork / user).read_text() for user in users}
    records = call("record", "--yes").json["records"]
    git(fork, "checkout", "-q", "--", "verl")
    written = call("apply", "--allow-dirty", *(one["id"] for one in records)).json["written"]
    assert sorted(written) == sorted(["verl/zones.py", *users])
    made = {user: (fork / user).read_text() for user in users}
    assert all(ast.dump(ast.parse(made[user])) == ast.dump(ast.parse(wanted[user])) for user in users)


def test_a_record_that_imports_from_a_new_file_is_named_with_it(fork: Path, call: Call) -> None:
    (fork / "verl/own.py").write_text("PORT = 2\n")
    (fork / "verl/alone.py").write_text("x = 1\n")
    edit(fork, FILE, "\n\nclass Server:", "\nfrom verl.own import PORT\n\n\nclass Server:")
    report = call("record", "--dry-run").json
    (record,) = report["records"]
    left = {one["file"]: one["why"] for one in report["left"]}
    assert record["id"] in left["verl/own.py"]
    assert left["verl/alone.py"] == OWN


def test_new_and_removed_files_are_named_and_not_lost(edited: Path, call: Call) -> None:
    (edited / "verl/own.py").write_text("x = 1\n")
    (edited / "verl/__init__.py").unlink()
    left = {one["file"]: one["why"] for one in call("record", "--dry-run").json["left"]}
    assert left == {"verl/own.py": OWN, "verl/__init__.py": "the fork has taken this file away"}


def test_what_does_the_like_of_a_record_that_is_off_is_told_why(fork: Path, call: Call) -> None:
    stubs = 'import os\nos.environ["LD_LIBRARY_PATH"] = "/usr/local/cuda/lib64/stubs"\n'
    edit(fork, FILE, "\n\nclass Server:", f"\n{stubs}\n\nclass Server:")
    (record,) = call("record", "--dry-run").json["records"]
    assert record["related"] == ["triton-libcuda-stubs"]
    assert "ld ignores LD_LIBRARY_PATH" in call("record", "--dry-run", as_json=False).out


def test_a_link_out_of_the_tree_stops_nothing(edited: Path, call: Call) -> None:
    (edited / "verl/outside.py").symlink_to("/etc/passwd")
    (edited / "verl/folder.py").mkdir()
    found = call("record", "--dry-run").json
    assert found["changes"] == 3
    assert {one["file"] for one in found["left"]} == {"verl/outside.py"}
    assert "leads out of the tree" in found["left"][0]["why"]


def test_what_is_applied_already_is_no_edit_of_a_hand(edited: Path, call: Call) -> None:
    call("record", "--yes")
    call("adopt", "--all")
    edit(edited, FILE, "        parser = Parser()", "        parser = Parser(strict=True)")
    found = call("record", "--dry-run").json
    assert found["changes"] == 1
    assert len(found["records"]) == 1


def test_blank_lines_around_a_new_function_are_no_edit(fork: Path, call: Call) -> None:
    edit(fork, FILE, "\n\nclass Server:", "\n\ndef own():\n    return 1\n\n\nclass Server:")
    assert len(call("record", "--yes").json["records"]) == 1
    assert call("record", "--dry-run").json["records"] == []
    assert call("adopt", "--all").json["refused"] == []
    assert call("revert").code == 0
    assert git(fork, "status", "--porcelain", "--", "verl") == ""


@pytest.mark.parametrize("old", ["class Server:", "    def launch(self, args):"])
@pytest.mark.parametrize("where", ["before", "after"])
def test_a_new_function_keeps_its_blank_lines_when_it_is_adopted(fork: Path, call: Call, old: str, where: str) -> None:
    top = not old.startswith(" ")
    gap, indent = ("\n\n", "") if top else ("\n", "    ")
    new = f"{indent}def own():\n{indent}    return 1\n"
    if where == "before":
        edit(fork, FILE, f"{old}\n", f"{new}{gap}{old}\n")
    else:
        (fork / FILE).write_text((fork / FILE).read_text() + gap + new)
    wanted = (fork / FILE).read_text()
    assert call("record", "--yes").code == 0
    assert call("adopt", "--all").json["refused"] == []
    text = (fork / FILE).read_text()
    assert "# Uky[" in text
    assert re.sub(r"  # Uky\[.*\]", "", text) == wanted
    call("revert")
    assert git(fork, "status", "--porcelain", "--", "verl") == ""


def test_the_records_themselves_are_no_edits(edited: Path, call: Call) -> None:
    call("record", "--yes")
    assert call("record", "--dry-run").json["left"] == []


def test_a_record_that_is_there_is_not_overwritten(edited: Path, call: Call) -> None:
    name = Path(call("record", "--yes").json["written"][0]).name
    shutil.copytree(edited / "patches", edited / "kept")
    text = (edited / "kept" / name).read_text()
    (edited / "uky-patch.toml").unlink()
    answer = call("record", "--yes")
    assert answer.code == 2
    assert json.loads(answer.out)["error"]["cause"] == "nothing was written"
    assert (edited / "patches" / name).read_text() == text
    assert not (edited / "uky-patch.toml").exists()


@pytest.mark.parametrize(
    ("arguments", "title"),
    [
        (("record", "--from", "nowhere"), "'nowhere' is no commit of this checkout"),
        (("record", "--into", "../elsewhere"), "../elsewhere: not in the tree"),
        (("adopt",), "it is not said what is to be adopted"),
        (("adopt", "vllm-log-requests"), "vllm-log-requests: not made by hand here"),
    ],
)
def test_mistakes_are_one_error(edited: Path, call: Call, arguments: tuple[str, ...], title: str) -> None:
    answer = call(*arguments)
    assert answer.code == 2
    assert answer.json["error"]["title"].startswith(title)


def test_without_git_a_release_is_asked_for(edited: Path, call: Call) -> None:
    shutil.rmtree(edited / ".git")
    answer = call("record")
    assert answer.code == 2
    assert "--from verl==VERSION" in answer.json["error"]["advice"]


def test_a_release_that_is_a_guess_is_said_to_be_one_and_need_not_have_all_of_verl(
    edited: Path, call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    released = write_tree(tmp_path / "released", "server")
    monkeypatch.setattr(base, "versions", lambda _name: ["99.1"])
    monkeypatch.setattr(base, "wheel", lambda *_, **__: released)
    (left,) = call("record", "--from", "upstream", "--dry-run").json["left"]
    assert (left["file"], left["why"].partition(":")[0]) == ("verl/settings.yaml", "not in that release")
    advice = "git remote add upstream https://github.com/volcengine/verl"
    assert advice in call("record", "--from", "upstream", "--dry-run", as_json=False).out.replace("\n", " ")
    assert advice not in call("record", "--from", "verl==99.1", "--dry-run", as_json=False).out.replace("\n", " ")


def test_a_missing_git_is_no_missing_commit(edited: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(edited / "nowhere"))
    answer = call("record", "--dry-run")
    assert (answer.code, answer.json["error"]["title"]) == (5, "git is needed and was not found")


@pytest.fixture
def read_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """No new file can be made."""
    real = os.open

    def refused(path: Any, flags: int, *rest: Any, **named: Any) -> int:
        if flags & os.O_EXCL and str(path).endswith(".part"):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
        return real(path, flags, *rest, **named)

    monkeypatch.setattr(os, "open", refused)


@pytest.mark.usefixtures("read_only")
@pytest.mark.parametrize(
    ("command", "file"),
    [
        (("record", "--yes"), "patches/fork-server-launch.toml"),
        (("new", "mine", "--at", "verl/server.py:5"), "patches/mine.toml"),
        (("docs", "--write"), "MIGRATION.md"),
        (("apply", "--skip", "vllm-log-requests", "--remember"), "uky-patch.toml"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else value,
)
def test_what_cannot_be_written_says_so_as_apply_does(
    fork: Path, call: Call, command: tuple[str, ...], file: str
) -> None:
    edit(fork, FILE, 'get_uri("h", 1)', 'get_uri("h", 2)')
    before = git(fork, "status", "--porcelain")
    answer = call(*command)
    assert answer.code == 5
    error = answer.json["error"]
    assert error["cause"] == f"{fork / file}: the file system is read-only"
    assert error["advice"] == "Remount it for writing, or work on a copy (--root)."
    assert git(fork, "status", "--porcelain") == before
    assert not (fork / "patches").exists()


def test_a_disk_that_is_full_at_the_last_file_leaves_no_record(edited: Path, call: Call) -> None:
    real = files.write_all

    def written(fd: int, content: bytes) -> None:
        if b"patches = " in content:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(fd, content)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "write_all", written)
        answer = call("record", "--yes")
    assert (answer.code, answer.json["error"]["cause"]) == (5, "the disk is full")
    assert not (edited / "patches").exists()
    assert call("record", "--yes").code == 0


def test_a_pipe_is_not_asked(edited: Path, call: Call) -> None:
    answer = call("record", as_json=False)
    assert answer.code == 0
    assert "keep (k)" not in answer.out + answer.err
    assert "proven and written to patches/" in answer.out
    assert "uky-patch adopt --all" in answer.out


def asked(root: Path, *answers: str) -> str:
    """What a terminal shows while `record` asks and gets these answers."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(
            sys.executable, [sys.executable, "-m", "patcher", "--root", str(root), "--assume", "vllm==2.1", "record"]
        )
    shown, waiting = "", list(answers)
    with contextlib.suppress(OSError):  # The terminal is closed when the program has ended.
        while chunk := os.read(terminal, 65536):
            shown += chunk.decode(errors="replace")
            if waiting and re.search(r"\[keep\]: $|its id: $", shown):
                os.write(terminal, f"{waiting.pop(0)}\n".encode())
                shown += "\n"
    os.waitpid(pid, 0)
    return shown


def test_on_a_terminal_each_record_may_be_named_split_or_skipped(edited: Path, call: Call) -> None:
    shown = asked(edited, "name", "our-flag", "skip", "all")
    assert "+            enable_log=args.enable_log," in shown.replace("\r", "").replace("\x1b[32m", "")
    names = {path.stem for path in (edited / "patches").glob("*.toml")}
    assert len(names) == len(call("record", "--from", "HEAD", "--dry-run").json["known"])
    assert "our-flag" in names
    (skipped,) = call("record", "--dry-run").json["records"]
    place = f"{skipped['places'][0]['file']}:{skipped['places'][0]['line']}"
    assert "keep (k), name (n), split (p), skip (s), or keep all (a;" in shown
    assert f"  {place}: skipped when it was asked about" in shown


def test_one_that_skips_all_is_told_what_is_in_no_record(edited: Path) -> None:
    shown = asked(edited, "s", "s", "s").replace("\r", "")
    assert "3 places are in no record:" in shown
    assert shown.endswith("nothing was written\n")
    assert not (edited / "patches").exists()


def test_a_formatter_that_went_over_the_fork_leaves_only_what_was_changed(fork: Path, call: Call) -> None:
    text = (fork / FILE).read_text()
    subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--isolated", "--line-length", "30", str(fork / FILE)],
        check=True,
        capture_output=True,
    )
    assert (fork / FILE).read_text() != text
    answer = call("record", "--dry-run")
    assert (answer.code, answer.json["records"], answer.json["laid_out"]) == (0, [], [FILE])
    assert "1 file has another layout than the base" in call("record", "--dry-run", as_json=False).out
    edit(fork, FILE, '"h", 1', '"h", 2')
    report = call("record", "--dry-run").json
    assert [one["specific"] for one in report["records"]] == [True]
    (place,) = report["records"][0]["places"]
    line = next(number for number, line in enumerate((fork / FILE).read_text().splitlines(), 1) if '"h", 2' in line)
    assert abs(place["line"] - line) <= 2


@pytest.mark.parametrize("package_too", [False, True], ids=["the package stays", "the package changes too"])
def test_a_name_that_a_package_passes_on_comes_before_who_imports_it(
    fork: Path, call: Call, *, package_too: bool
) -> None:
    """`verl/utils/__init__.py` passes on what tokenizer.py has: the record of tokenizer.py has to come first."""
    users = [fork / f"verl/a_user{number}.py" for number in range(9)]  # So many that the name is no purpose of its own.
    module = "def tokenizer():\n    return 1\n"
    (fork / "verl/utils").mkdir(exist_ok=True)
    (fork / "verl/utils/__init__.py").write_text("from .tokenizer import *\n")
    (fork / "verl/utils/tokenizer.py").write_text(module)
    for user in users:
        user.write_text("def use():\n    return 1\n")
    commit(fork, "a package that passes on names")
    (fork / "verl/utils/tokenizer.py").write_text(f"{module}\n\ndef processor():\n    return 2\n")
    for user in users:
        user.write_text("from verl.utils import processor\n\n\ndef use():\n    return processor() + 1\n")
    if package_too:
        (fork / "verl/utils/__init__.py").write_text("from .tokenizer import *\n\nVERSION = 1\n")
    report = call("record", "--yes").json
    assert report["left"] == []
    makers = {one["id"] for one in report["records"] if "verl/utils/tokenizer.py" in one["files"]}
    importing = [one for one in report["records"] if "verl/a_user0.py" in one["files"]]
    assert makers.isdisjoint(one["id"] for one in importing)
    git(fork, "stash", "push", "-q", "--", "verl")
    done = call("apply", "--allow-dirty", *(one["id"] for one in report["records"]))
    assert [one["detail"] for one in done.json["records"] if one["outcome"] == "drifted"] == []
    assert all("processor() + 1" in user.read_text() for user in users)


def test_records_that_need_each_other_are_taken_apart(fork: Path, call: Call) -> None:
    """`first.py` and `third.py` share a purpose; `second.py` needs the one, and the other needs `second.py`."""
    users = [fork / f"verl/user{number}.py" for number in range(9)]  # So many that their names are no purpose.
    texts = {
        "first.py": "def load():\n    return SITE_ZONE\n\n\nSITE_ZONE = 1\n",
        "second.py": "from verl.first import load\n\n\ndef save():\n    return load()\n",
        "third.py": "from verl.second import save\n\n\ndef both():\n    return save, SITE_ZONE\n\n\nSITE_ZONE = 2\n",
    }
    before = "BEFORE = 'from verl first import load return save both'\n"  # None of these words is new.
    for file in (*(fork / "verl" / name for name in texts), *users):
        file.write_text(before)
    commit(fork, "modules with nothing in them")
    for name, text in texts.items():
        (fork / "verl" / name).write_text(f"{before}{text}")
    for user in users:
        user.write_text(f"{before}from verl.first import load\nfrom verl.second import save\n\nrun(load, save)\n")
    report = call("record", "--yes").json
    assert report["left"] == []
    git(fork, "stash", "push", "-q", "--", "verl")
    done = call("apply", "--allow-dirty", *(one["id"] for one in report["records"]))
    assert len(done.json["written"]) == len(texts) + len(users)
    assert (fork / "verl/third.py").read_text().count("import save") == 1


def test_an_import_that_the_fork_itself_has_not_is_said_to_be_that(fork: Path, call: Call) -> None:
    (fork / "verl/names.py").write_text("ONE = 1\n")
    commit(fork, "a module")
    (fork / "verl/names.py").write_text("ONE = 1\n\n\ndef two():\n    return 2\n")
    (fork / "verl/user.py").write_text("from verl.names import three\n")
    git(fork, "add", ".")
    left = call("record", "--new", "--dry-run").json["left"]
    assert [one["why"] for one in left] == ["it imports verl.names.three, which the fork does not have either"]


def test_a_file_that_is_no_python_is_named_and_not_recorded_in_part(fork: Path, call: Call) -> None:
    edit(fork, FILE, "from verl import x", "from verl import x, y")
    edit(fork, FILE, "        return parser", "          size = 1\n        return parser")
    report = call("record", "--dry-run").json
    assert report["records"] == []
    (left,) = report["left"]
    line = 1 + (fork / FILE).read_text().splitlines().index("          size = 1")
    assert (left["file"], left["line"]) == (FILE, line)
    assert left["why"].startswith("it is no Python: ")


def test_an_actor_of_ray_may_be_imported_and_started(fork: Path, call: Call) -> None:
    (fork / "verl/queue.py").write_text("import ray\n\n\n@ray.remote\nclass Queue:\n    size = 1\n")
    (fork / "verl/main.py").write_text("from verl.queue import Queue\n\n\ndef main():\n    return Queue.remote(3)\n")
    report = call("record", "--new", "--dry-run").json
    assert report["left"] == []
    assert {file for one in report["records"] for file in one["files"]} == {"verl/queue.py", "verl/main.py"}


def test_a_link_is_named_and_is_no_copy_of_the_file_that_it_leads_to(edited: Path, call: Call) -> None:
    (edited / "verl/link.py").symlink_to("server.py")
    (edited / "verl/gone.py").symlink_to("nowhere.py")
    report = call("record", "--new", "--yes").json
    why = "it is a link, or was one: copy it along with the records"
    assert {one["file"]: one["why"] for one in report["left"]} == {"verl/link.py": why, "verl/gone.py": why}
    assert call("adopt", "--all").code == 0
    assert set(status(call).values()) == {"applied"}
    git(edited, "add", "verl")
    commit(edited, "Links")
    left = call("record", "--from", "HEAD~1..HEAD", "--new", "--dry-run").json["left"]
    assert {one["file"] for one in left if one["why"] == why} == {"verl/link.py", "verl/gone.py"}


def test_a_record_of_a_link_is_refused_alone(edited: Path, call: Call) -> None:
    (edited / "verl/link.py").write_bytes((edited / FILE).read_bytes())
    record_ids = {one["id"] for one in call("record", "--new", "--yes").json["records"]}
    (edited / "verl/link.py").unlink()
    (edited / "verl/link.py").symlink_to("server.py")
    answer = call("adopt", "--all").json
    assert [one["id"] for one in answer["refused"]] == ["fork-verl-link"]
    assert set(answer["adopted"]) == record_ids - {"fork-verl-link"}


def test_rights_to_execute_a_file_are_named(fork: Path, call: Call) -> None:
    (fork / "run.sh").write_text("#!/bin/sh\necho\n")
    (fork / "run.sh").chmod(0o755)
    (fork / FILE).chmod(0o755)
    answer = call("record", "--new", "--yes").json
    assert [one["files"] for one in answer["records"]] == [["run.sh"]]
    assert {one["file"]: one["why"] for one in answer["left"]} == dict.fromkeys(
        ("run.sh", FILE), "no record says who may execute it: after an apply, run chmod +x on it"
    )
    commit(fork, "Executable")
    (fork / FILE).chmod(0o644)
    (left,) = call("record", "--dry-run").json["left"]
    assert left["why"].endswith("run chmod -x on it")


@pytest.mark.parametrize(
    ("named", "near"), [("server.py", FILE), ("verl/servers.py", FILE), ("/etc/hostname", ""), ("verl/none", "")]
)
def test_a_file_that_neither_the_tree_nor_the_base_has_is_an_error(
    named: str, near: str, edited: Path, call: Call
) -> None:
    answer = call("record", named, "--yes")
    assert answer.code == 2
    error = answer.json["error"]
    assert named in error["title"]
    assert near in error["advice"]
    assert not (edited / "patches").exists()


def test_a_file_that_the_fork_has_taken_away_may_be_named(edited: Path, call: Call) -> None:
    (edited / "verl/__init__.py").unlink()
    answer = call("record", "verl/__init__.py", "--dry-run")
    assert answer.code == 0
    assert [one["file"] for one in answer.json["left"]] == ["verl/__init__.py"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("        parser = Parser()\n", "        # parser = Parser()  # Uky removed, ours is made elsewhere\n"),
        (
            '        return parser, get_uri("h", 1)\n',
            '        # return parser, get_uri("h", 1)  # Uky: ours is made elsewhere\n',
        ),
        (
            "from verl import x\n",
            "# from verl import x  # Uky: ours is made elsewhere\nfrom verl import y  # Uky: y has all that x had\n",
        ),
    ],
)
def test_what_a_hand_wrote_behind_a_line_that_it_took_out_is_the_reason(
    old: str, new: str, fork: Path, call: Call
) -> None:
    edit(fork, FILE, old, new)
    (written,) = call("record", "--yes").json["written"]
    reason = tomllib.loads(Path(written).read_text())["reason"]
    assert "ours is made elsewhere" in reason
    assert ("y has all that x had" in reason) == ("from verl import y" in new)


def test_a_file_that_the_fork_has_emptied_is_named_as_such(fork: Path, call: Call) -> None:
    (fork / FILE).write_text("")
    (left,) = call("record", "--dry-run").json["left"]
    assert left["why"] == "the fork has emptied this file: copy it along with the records"
