"""Git checkouts: where they stand, whose changes are in them, and committing just what was done."""

from __future__ import annotations

import ast
import os
import shutil
import stat
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import patcher
from patcher.errors import TreeError
from patcher.git import process as git_process
from patcher.git.branches import branch
from patcher.git.checkout import checkout
from patcher.git.head import head
from patcher.git.series import Commit
from patcher.git.settings import dump, parse
from patcher.tree import Ledger, Tree
from tests.tree.toys import TARGETS, apply, revert


@pytest.fixture(autouse=True)
def _plain_git(monkeypatch, tmp_path):
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


def commit_all(folder: Path) -> None:
    git(folder, "init", "--quiet", "--initial-branch=main", ".")
    git(folder, "config", "user.name", "A")
    git(folder, "config", "user.email", "a@example.org")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "start")


@pytest.fixture
def fork(tree: Tree) -> Tree:
    commit_all(tree.root)
    return tree


def agrees_with_git(root: Path) -> None:
    found = head(root)
    assert found is not None
    assert found.commit == git(root, "rev-parse", "HEAD")
    assert (found.branch or "HEAD") == git(root, "rev-parse", "--abbrev-ref", "HEAD")
    assert found.commit.startswith(found.short)


def test_the_head_is_what_git_says(fork, tmp_path):
    root = fork.root
    agrees_with_git(root)
    git(root, "checkout", "--quiet", "-b", "feature/a-b")
    agrees_with_git(root)
    git(root, "pack-refs", "--all")
    agrees_with_git(root)
    git(root, "checkout", "--quiet", "--detach")
    agrees_with_git(root)
    git(root, "worktree", "add", "--quiet", "-b", "other", str(tmp_path / "other"))
    agrees_with_git(tmp_path / "other")
    git(root, "worktree", "add", "--quiet", "--detach", str(tmp_path / "detached"))
    agrees_with_git(tmp_path / "detached")


def test_the_head_of_a_submodule_and_of_a_folder_below_the_top(fork, tmp_path):
    outer = tmp_path / "outer"
    outer.mkdir()
    (outer / "x").touch()
    commit_all(outer)
    git(outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(fork.root), "inner")
    agrees_with_git(outer / "inner")
    (outer / "below/verl").mkdir(parents=True)
    agrees_with_git(outer / "below")


def test_no_checkout_no_head(tree, fork):
    (fork.root / "venv/lib/site-packages/verl").mkdir(parents=True)
    assert head(fork.root / "venv/lib/site-packages") is None
    assert head(fork.root.parent) is None
    assert checkout(fork.root.parent) is None


def test_a_branch_without_a_commit(tree):
    git(tree.root, "init", "--quiet", "--initial-branch=empty", ".")
    found = head(tree.root)
    assert found is not None
    assert (found.branch, found.commit, found.short) == ("empty", None, "")


def foreign(tree: Tree, ledger: Ledger | None = None) -> tuple[str, ...]:
    found = checkout(tree.root)
    assert found is not None
    return found.foreign_changes(TARGETS, tree.ledger() if ledger is None else ledger, tree.read)


def test_our_changes_are_not_foreign_and_theirs_are(fork):
    assert foreign(fork) == ()
    apply(fork)
    assert checkout(fork.root).changed_files() == TARGETS
    assert foreign(fork) == ()
    assert foreign(fork, Ledger()) == TARGETS
    (fork.root / TARGETS[1]).write_bytes(b"theirs\n")
    (fork.root / TARGETS[2]).unlink()
    assert foreign(fork) == (TARGETS[1], TARGETS[2])


def test_a_staged_change_is_foreign_too(fork):
    (fork.root / TARGETS[0]).write_bytes(b"theirs\n")
    git(fork.root, "add", ".")
    assert foreign(fork) == (TARGETS[0],)


def test_foreign_changes_of_a_tree_below_the_top(tmp_path):
    from tests.tree.toys import plant

    (tmp_path / "mono/third party/fork").mkdir(parents=True)
    tree = plant(tmp_path / "mono/third party/fork")
    commit_all(tmp_path / "mono")
    (tree.root / TARGETS[3]).write_bytes("mühsam\n".encode())
    (tree.root / "verl/ü *.py").write_bytes(b"")
    assert foreign(tree) == (TARGETS[3],)
    assert checkout(tree.root).changed_files() == (TARGETS[3], "verl/ü *.py")


def test_the_tools_folder_is_invisible_to_git_and_git_ignore_is_untouched(fork):
    apply(fork)
    fork.keep(TARGETS[0], b"x")
    assert not [line for line in git(fork.root, "status", "--porcelain", "-uall").splitlines() if "uky" in line]
    assert not (fork.root / ".gitignore").exists()
    revert(fork)
    assert git(fork.root, "status", "--porcelain") == ""


def test_files_that_git_is_told_not_to_look_at_are_foreign_too(fork):
    for path, flag in zip(TARGETS, ("--assume-unchanged", "--skip-worktree"), strict=False):
        git(fork.root, "update-index", flag, path)
        (fork.root / path).write_bytes(b"theirs\n")
    assert git(fork.root, "status", "--porcelain") == ""
    assert foreign(fork) == TARGETS[:2]
    assert git(fork.root, "ls-files", "-v", *TARGETS[:2]) == f"h {TARGETS[0]}\nS {TARGETS[1]}"


def test_remotes_are_told_as_they_are_written(fork):
    git(fork.root, "config", "remote.a.b.url", "https://x.invalid/ü y")
    git(fork.root, "config", "url.https://other.invalid/.insteadOf", "https://x.invalid/")
    assert checkout(fork.root).remotes() == {"a.b": "https://x.invalid/ü y"}


def plant(place: Path, kind: str, elsewhere: Path) -> None:
    """Put something else in the place of one of git's files."""
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "link to a secret":
        place.symlink_to(elsewhere)
    elif kind == "link to a device":
        place.symlink_to("/dev/zero")
    elif kind == "device":
        os.mknod(place, stat.S_IFCHR | 0o600, os.makedev(1, 5))
    elif kind == "folder":
        place.mkdir()
    elif kind == "loop":
        place.symlink_to(place.name)
    elif kind == "huge":
        with place.open("wb") as file:
            file.truncate(1 << 40)


KINDS = ("pipe", "link to a secret", "link to a device", "device", "folder", "loop", "huge", "nothing")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "name", ["", "HEAD", "config", "packed-refs", "index", "commondir", "info/exclude", "refs/heads/main"]
)
def test_what_is_planted_among_gits_files_is_neither_waited_for_nor_shown(fork, tmp_path, monkeypatch, name, kind):
    monkeypatch.setattr(git_process, "LIMIT", 10)
    (tmp_path / "secret").write_text("TOP-SECRET\n")
    git(fork.root, "pack-refs", "--all")
    place = fork.root / ".git" / name
    if kind == "device" and os.geteuid():
        pytest.skip("only root makes devices")
    plant(place, kind, tmp_path / "secret")
    started = time.monotonic()
    told = [repr(head(fork.root))]
    try:
        found = checkout(fork.root)
        if found is not None:
            told += [*found.changed_files(), *found.foreign_changes(TARGETS, Ledger(), fork.read)]
    except TreeError as error:
        told.append(str(error))
    assert time.monotonic() - started < 10
    assert "TOP-SECRET" not in "".join(told)


@pytest.mark.parametrize(
    "content",
    [
        "ref: ../../secret",
        "ref: refs/../../../secret",
        "ref: /etc/passwd",
        "TOP-SECRET",
        "ref: refs/heads/\x1b[2J",
        "ref:",
    ],
)
def test_a_head_that_leads_out_of_the_repository_is_not_followed(fork, tmp_path, content):
    (tmp_path / "secret").write_text("TOP-SECRET\n")
    (fork.root / ".git/HEAD").write_text(content + "\n")
    assert head(fork.root).commit is None
    assert head(fork.root).branch is None


def test_a_branch_that_holds_no_commit_has_none(fork):
    (fork.root / ".git/refs/heads/main").write_text("TOP-SECRET\n")
    assert (head(fork.root).branch, head(fork.root).commit) == ("main", None)


def test_a_head_that_is_a_symlink_is_understood_as_git_does(fork):
    (fork.root / ".git/HEAD").unlink()
    (fork.root / ".git/HEAD").symlink_to("refs/heads/main")
    agrees_with_git(fork.root)


def test_a_checkout_of_somebody_else_is_refused_as_git_does(fork):
    if os.geteuid():
        pytest.skip("only root gives files away")
    for path in (fork.root, *fork.root.rglob("*")):
        os.chown(path, 12345, 12345, follow_symlinks=False)
    with pytest.raises(TreeError, match="git status failed") as caught:
        checkout(fork.root).changed_files()
    assert "belongs to another user" in str(caught.value.cause)
    assert f"safe.directory {fork.root}" in str(caught.value.advice)
    git(fork.root, "config", "--global", "safe.directory", str(fork.root))
    assert checkout(fork.root).changed_files() == ()


def test_a_git_that_does_not_end_is_ended(fork, monkeypatch):
    monkeypatch.setattr(git_process, "LIMIT", 0.5)
    os.mkfifo(fork.root / "verl/part0/.gitignore")
    (fork.root / "verl/part0/new.py").touch()
    with pytest.raises(TreeError, match="did not end within") as caught:
        checkout(fork.root).changed_files()
    assert "find" in str(caught.value.advice)


@pytest.mark.parametrize("name", [".gitignore", ".gitattributes", "verl/part0/.gitignore"])
def test_a_pipe_where_git_looks_for_the_files_is_refused_at_once(fork, name):
    os.mkfifo(fork.root / name)
    with pytest.raises(TreeError, match="cannot be read"):
        foreign(fork)


def test_an_extension_that_is_not_known_is_refused(fork):
    git(fork.root, "config", "core.repositoryFormatVersion", "1")
    git(fork.root, "config", "extensions.newThing", "true")
    with pytest.raises(TreeError, match="which uky-patch does not know"):
        checkout(fork.root).changed_files()


@pytest.mark.parametrize("form", ["--object-format=sha256", "--separate-git-dir=../git", "--shared=group"])
def test_forms_of_repositories(tree, form):
    git(tree.root, "init", "--quiet", form, "--initial-branch=main", ".")
    commit_all(tree.root)
    (tree.root / TARGETS[0]).write_bytes(b"theirs\n")
    assert foreign(tree) == (TARGETS[0],)
    agrees_with_git(tree.root)


@pytest.mark.parametrize("form", ["sha1", "sha256"])
def test_a_branch_is_made_with_hashes_of_either_length(tree, form):
    git(tree.root, "init", "--quiet", f"--object-format={form}", "--initial-branch=main", ".")
    commit_all(tree.root)
    start = git(tree.root, "rev-parse", "HEAD")
    commits = [Commit("one", {TARGETS[0]: b"theirs\n", TARGETS[1]: None}), Commit("nothing", {TARGETS[0]: b"theirs\n"})]
    (made,) = branch(checkout(tree.root), "new", start, commits)
    assert git(tree.root, "rev-parse", "new") == made
    assert git(tree.root, "diff", "--name-status", start, made).split() == ["M", TARGETS[0], "D", TARGETS[1]]
    assert git(tree.root, "status", "--porcelain") == ""


@given(
    st.lists(st.tuples(st.sampled_from(["user.name", 'remote.a"b.c\\d.url']), st.text(st.characters(codec="utf-8"))))
)
@settings(max_examples=60, deadline=None)
def test_settings_are_handed_on_as_they_are(entries):
    entries = [(key, value) for key, value in entries if "\0" not in value and "\r" not in value]
    with tempfile.NamedTemporaryFile() as file:
        file.write(dump(entries))
        file.flush()
        command = ["git", "config", "--file", file.name, "--list", "--null"]
        listed = subprocess.run(command, capture_output=True, check=True, cwd="/").stdout
    assert parse(listed) == entries


def test_git_is_started_in_one_place():
    for path in Path(patcher.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            begins = isinstance(node, ast.List | ast.Tuple) and node.elts and isinstance(node.elts[0], ast.Constant)
            assert not (begins and node.elts[0].value == "git"), f"{path}:{node.lineno}"
            imported = isinstance(node, ast.Import) and any(alias.name == "git" for alias in node.names)
            assert not imported, f"{path}:{node.lineno}"


def test_without_git_only_what_needs_git_fails(fork, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    assert head(fork.root).branch == "main"
    with pytest.raises(TreeError, match="git is needed"):
        foreign(fork)
