"""Git's list of a tree, and what is left out of it."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from patcher.errors import TreeError
from patcher.migrate.listing import Listing, list_tree
from patcher.migrate.prefetch import prefetched
from patcher.profiles.rendered_file import with_hash_line
from tests.migrate.toys import VERSION, fork, git, write


def left_out(found: Listing) -> dict[str, str]:
    return {left.path: str(left.reason) for left in found.left_out}


def test_the_list_is_gits_with_new_files_and_without_deleted_ones(tmp_path: Path) -> None:
    root = fork(tmp_path / "fork", {".gitignore": "*.log\n/outputs/\n", "verl/gone.py": "", "verl/models/a.py": "x"})
    (root / "verl/gone.py").unlink()
    write(root, {"verl/untracked.py": "new", "train.log": "l", "outputs/step/model.pt": "w" * 1000})
    found = list_tree(root)
    assert sorted(found.items) == [".gitignore", "README.md", VERSION, "verl/models/a.py", "verl/untracked.py"]
    assert found.dirty
    assert found.commit == git(root, "rev-parse", "HEAD").strip()
    item = found.items["verl/models/a.py"]
    assert (item.size, item.source) == (1, root / "verl/models/a.py")
    assert item.sha256 == "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
    sizes = {left.path: left.size for left in found.left_out}
    assert sizes["outputs/"] == 1000
    assert sizes["train.log"] == 1
    assert sizes[".git"] > 1000


def test_a_clean_tree_and_one_without_a_commit(tmp_path: Path) -> None:
    assert not list_tree(fork(tmp_path / "clean")).dirty
    (tmp_path / "new").mkdir()
    git(tmp_path / "new", "init", "--quiet")
    write(tmp_path / "new", {"a": "1"})
    found = list_tree(tmp_path / "new")
    assert (list(found.items), found.commit, found.dirty) == (["a"], None, True)


def test_the_root_may_be_a_folder_of_the_checkout(tmp_path: Path) -> None:
    top = fork(tmp_path / "top", {"fork/verl/a.py": "", ".gitignore": "*.log\n", "other.py": ""})
    write(top, {"fork/x.log": "", "y.log": "", "untracked": ""})
    found = list_tree(top / "fork")
    assert list(found.items) == ["verl/a.py"]
    assert left_out(found) == {"x.log": "git ignores it"}
    assert not found.dirty


def test_variables_of_the_caller_point_git_nowhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, other = fork(tmp_path / "fork"), fork(tmp_path / "other", {"theirs": ""})
    for name, value in {
        "GIT_DIR": str(other / ".git"),
        "GIT_WORK_TREE": str(other),
        "GIT_INDEX_FILE": str(other / ".git/index"),
        "GIT_LITERAL_PATHSPECS": "1",
    }.items():
        monkeypatch.setenv(name, value)
    assert sorted(list_tree(root).items) == ["README.md", VERSION]


def test_hosts_own_files_notes_and_other_repositories_are_left_out_with_a_reason(tmp_path: Path) -> None:
    root = fork(
        tmp_path / "fork", {"git_ignore.py": "HERE = 1\n", "recipe/git_ignore.py": "", ".uky-patch/ledger.json": ""}
    )
    fork(root / "vendored")
    sub = fork(tmp_path / "sub")
    git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(sub), "third")
    write(root, {".uky-patch-kept/2026/x": ""})
    found = list_tree(root)
    assert sorted(found.items) == [".gitmodules", "README.md", "recipe/git_ignore.py", VERSION]
    reasons = left_out(found)
    assert reasons["git_ignore.py"] == "each host has its own"
    assert reasons["vendored/"] == reasons["third/"] == "a git repository of its own"
    assert reasons[".uky-patch/ledger.json"] == reasons[".uky-patch-kept/2026/x"] == "notes of uky-patch"


def test_an_ignored_git_ignore_py_is_named_as_the_hosts_own(tmp_path: Path) -> None:
    root = fork(tmp_path / "fork", {".gitignore": "git_ignore.py\n"})
    write(root, {"git_ignore.py": "HERE = 1\n"})
    assert left_out(list_tree(root))["git_ignore.py"] == "each host has its own"


def test_symlinks_stay_inside_or_stay_here(tmp_path: Path) -> None:
    root = fork(tmp_path / "fork", {"verl/sub/a.py": ""})
    links = {
        "fine": "verl/sub/a.py",
        "verl/sub/up": "../../README.md",
        "dangling": "not/there",
        "verl/folder": "sub",
        "absolute": str(root / "README.md"),
        "out": "../other",
        "verl/sub/far": "../../../x",
        "by_another": "out/y",
    }
    for path, target in links.items():
        (root / path).symlink_to(target)
    found = list_tree(root)
    assert {path: item.link for path, item in found.items.items() if item.link} == {
        path: links[path] for path in ("fine", "verl/sub/up", "dangling", "verl/folder")
    }
    reasons = left_out(found)
    assert "absolute target" in reasons["absolute"]
    assert all("leads out" in reasons[path] for path in ("out", "verl/sub/far", "by_another"))


def test_nothing_is_read_through_a_folder_that_became_a_symlink(tmp_path: Path) -> None:
    root = fork(tmp_path / "fork", {"verl/sub/a.py": "ours"})
    write(tmp_path / "elsewhere", {"a.py": "a secret"})
    (root / "verl/sub/a.py").unlink()
    (root / "verl/sub").rmdir()
    (root / "verl/sub").symlink_to(tmp_path / "elsewhere")
    found = list_tree(root)
    assert sorted(found.items) == ["README.md", VERSION]
    assert "absolute target" in left_out(found)["verl/sub"]


def test_pipes_sockets_and_unreadable_files_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = fork(tmp_path / "fork", {"secret": "s"})
    monkeypatch.chdir(root)
    os.mkfifo("pipe")
    with socket.socket(socket.AF_UNIX) as plug:
        plug.bind("plug")
        real = os.open
        monkeypatch.setattr(
            os, "open", lambda path, *rest: _denied(path) if os.fspath(path).endswith("/secret") else real(path, *rest)
        )
        found = list_tree(root)
    assert sorted(found.items) == ["README.md", VERSION]
    reasons = left_out(found)
    assert reasons["secret"] == "cannot be read: Permission denied"
    assert reasons.get("pipe", "neither a file nor a folder") == "neither a file nor a folder"


def _denied(path: str) -> int:
    raise PermissionError(13, "Permission denied", path)


def test_names_that_are_no_utf8_keep_their_bytes(tmp_path: Path) -> None:
    root = fork(tmp_path / "fork")
    name = b"verl/\xff\n\xe9.py"
    (root / os.fsdecode(name)).write_text("x")
    assert name in [os.fsencode(path) for path in list_tree(root).items]


def test_ignored_folders_of_one_name_are_told_together(tmp_path: Path) -> None:
    root = fork(tmp_path / "fork", {".gitignore": "__pycache__/\n", "verl/a/x.py": "", "verl/b/x.py": ""})
    write(root, {f"verl/{part}/__pycache__/x.pyc": "1234" for part in ("a", "b")})
    found = {left.path: left for left in list_tree(root).left_out}
    assert found["**/__pycache__/"].size == 8
    assert str(found["**/__pycache__/"].reason) == "git ignores it, in 2 places"


def test_permission_bits_are_those_of_the_file(tmp_path: Path) -> None:
    root = fork(tmp_path / "fork", {"run.sh": ""})
    (root / "run.sh").chmod(0o4755)
    assert list_tree(root).items["run.sh"].mode == 0o755


def test_a_folder_without_git_is_refused_with_advice(tmp_path: Path) -> None:
    write(tmp_path, {VERSION: ""})
    with pytest.raises(TreeError, match="not a git checkout") as caught:
        list_tree(tmp_path)
    assert "git init" in str(caught.value.advice)


def test_a_tree_that_an_outer_checkout_ignores_is_no_empty_list(tmp_path: Path) -> None:
    outer = fork(tmp_path / "outer", {".gitignore": "/fork/\n"})
    write(outer, {"fork/verl/__init__.py": ""})
    with pytest.raises(TreeError, match="lists no file"):
        list_tree(outer / "fork")


def test_what_git_refuses_is_said_in_its_words(tmp_path: Path) -> None:
    root = fork(tmp_path / "fork")
    (root / ".git/index").write_bytes(b"not an index")
    with pytest.raises(TreeError, match="index file"):
        list_tree(root)


def test_a_script_that_was_rendered_for_this_machine_is_not_sent(tmp_path: Path) -> None:
    ours = with_hash_line("#!/bin/sh\n# rendered by uky-patch @\n")
    root = fork(tmp_path / "fork", {"run_standard.sh": "the fork's own", "run_debug.sh": ours})
    write(root, {"run_fast_load.sh": ours + "# edited", "other.sh": ours})
    found = list_tree(root)
    assert "run_standard.sh" in found.items
    assert "other.sh" in found.items
    told = left_out(found)
    assert told["run_debug.sh"] == told["run_fast_load.sh"] == "each host has its own"


def test_what_is_included_is_sent_though_git_ignores_it(tmp_path: Path) -> None:
    root = fork(tmp_path / "fork", {".gitignore": "data/\n*.pt\n"})
    write(root, {"data/tokens.json": "{}", "data/big.bin": "x", "a.pt": "1", "b.pt": "2", "git_ignore.py": ""})
    found = list_tree(root, ("data/tokens.json", "a.pt"))
    assert {"data/tokens.json", "a.pt"} <= set(found.items)
    assert not {"data/big.bin", "b.pt"} & set(found.items)
    assert "a.pt" not in left_out(found)
    whole = list_tree(root, ("data",))
    assert {"data/tokens.json", "data/big.bin"} <= set(whole.items)
    assert "data/" not in left_out(whole)


def test_a_submodule_that_is_included_is_sent_with_the_files_that_git_lists_there(tmp_path: Path) -> None:
    root = fork(tmp_path / "fork")
    sub = fork(tmp_path / "sub", {"bridge/core.py": "x = 1\n", ".gitignore": "*.log\n"})
    git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(sub), "third/bridge")
    write(root, {"third/bridge/run.log": ""})
    without = list_tree(root)
    assert [left.path for left in without.left_out if left.kind == "repository"] == ["third/bridge/"]
    found = list_tree(root, ("third",))
    assert found.items["third/bridge/bridge/core.py"].size == 6
    assert "third/bridge/run.log" not in found.items
    assert [left.path for left in found.left_out if left.kind == "repository"] == []
    assert not any(path.endswith("/.git") for path in found.items)


def test_an_include_that_names_nothing_is_an_error(tmp_path: Path) -> None:
    root = fork(tmp_path / "fork")
    with pytest.raises(TreeError, match="include: there is no file to send at data/x") as error:
        list_tree(root, ("data/x",))
    assert "git submodule update --init" in str(error.value.advice)


def test_files_that_git_does_not_track_are_known(tmp_path: Path) -> None:
    root = fork(tmp_path / "fork")
    write(root, {"new/a.bin": "x", "b.bin": "x"})
    assert list_tree(root).untracked == {"new/a.bin", "b.bin"}


def test_a_listing_made_ahead_is_used_once_and_only_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = fork(tmp_path / "fork")
    listing = prefetched(lambda: list_tree(root))
    (root / "verl/late.py").write_text("LATE = 1\n")
    assert "verl/late.py" not in listing().items
    assert "verl/late.py" in listing().items
    monkeypatch.setattr("patcher.migrate.prefetch.FRESH", -1.0)
    listing = prefetched(lambda: list_tree(root))
    (root / "verl/later.py").write_text("LATER = 1\n")
    assert "verl/later.py" in listing().items


def test_what_hinders_a_listing_made_ahead_is_told_when_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()
    listing = prefetched(lambda: list_tree(tmp_path / "bare"))
    with pytest.raises(TreeError, match="not a git checkout"):
        listing()
