"""apply --commit: edits and commits, or neither; and what git itself would store."""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from patcher.errors import TreeError
from patcher.git import owed
from patcher.git.process import Process
from patcher.worktree import disk
from tests import tools
from tests.cli.conftest import SERVER, Uky
from tests.lanes import one_in
from tests.tree.faults import Faults, fork, wait_for

FILE = "verl/server.py"


def git(tree: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=tree, check=True, capture_output=True, text=True).stdout


def commit_all(tree: Path) -> None:
    git(tree, "init", "-q", "-b", "fork")
    git(tree, "config", "user.name", "A User")
    git(tree, "config", "user.email", "user@example.invalid")
    git(tree, "add", ".")
    git(tree, "commit", "-q", "-m", "verl 99.1")


@pytest.fixture(autouse=True)
def _plain_git(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture
def checkout(tree: Path) -> Path:
    commit_all(tree)
    return tree


def state(tree: Path) -> tuple[object, ...]:
    """All that a refused commit leaves as it is. Objects that nothing names may lie about."""
    folder = Path(git(tree, "rev-parse", "--absolute-git-dir").strip())
    notes = sorted(path.name for path in folder.iterdir() if path.name.startswith("uky"))
    index = git(tree, "ls-files", "--stage", "-v")
    files = {path: path.read_bytes() for path in (tree / "verl").rglob("*") if path.is_file()}
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=tree, capture_output=True).stdout
    return (head, index, files, notes, (tree / ".uky-patch").exists())


def assert_committed(tree: Path, count: int = 2, changed: str = "") -> None:
    subjects = ["Import Parser from its new home", "Pass enable_log"]
    assert git(tree, "log", "--format=%s", f"-{count}").splitlines() == subjects[:count]
    assert git(tree, "status", "--porcelain", "-uno") == changed
    assert git(tree, "diff-index", "HEAD") == changed
    assert "Uky[" in (tree / FILE).read_text()
    git(tree, "fsck", "--no-dangling")


def pretend_merge(tree: Path) -> Callable[[], None]:
    (tree / ".git/MERGE_HEAD").write_text(git(tree, "rev-parse", "HEAD"))
    return (tree / ".git/MERGE_HEAD").unlink


def begin_rebase(tree: Path) -> Callable[[], None]:
    (tree / ".git/rebase-merge").mkdir()
    return (tree / ".git/rebase-merge").rmdir


def lock(name: str) -> Callable[[Path], Callable[[], None]]:
    def plant(tree: Path) -> Callable[[], None]:
        (tree / ".git" / name).touch()
        return (tree / ".git" / name).unlink

    return plant


def link(name: str) -> Callable[[Path], Callable[[], None]]:
    def plant(tree: Path) -> Callable[[], None]:
        place, kept = tree / ".git" / name, tree.parent / "kept"
        place.rename(kept)
        place.symlink_to(kept)

        def mend() -> None:
            place.unlink()
            kept.rename(place)

        return mend

    return plant


def forget_who(tree: Path) -> Callable[[], None]:
    git(tree, "config", "--unset", "user.email")
    git(tree, "config", "user.useConfigOnly", "true")
    return lambda: git(tree, "config", "user.email", "user@example.invalid") and None


def steal(tree: Path) -> Callable[[], None]:
    """`.git` is a file that leads to a repository that is not this checkout's."""
    (tree / ".git").rename(tree.parent / "other.git")
    (tree / ".git").write_text("gitdir: ../other.git\n")
    return lambda: git(tree, "config", "core.worktree", str(tree)) and None


def borrow_filter(tree: Path) -> Callable[[], None]:
    git(tree, "config", "filter.x.clean", "tr a-z A-Z")
    (tree / ".git/info/attributes").write_text("*.py filter=x\n")
    return (tree / ".git/info/attributes").unlink


REFUSALS = {
    "no identity": forget_who,
    "merge": pretend_merge,
    "rebase": begin_rebase,
    "index.lock": lock("index.lock"),
    "HEAD.lock": lock("HEAD.lock"),
    "branch.lock": lock("refs/heads/fork.lock"),
    "objects linked": link("objects"),
    "log linked": link("logs/HEAD"),
    "branch log linked": link("logs/refs/heads"),
    "refs linked": link("refs"),
    "index linked": link("index"),
    "another's repository": steal,
    "a filter of the tree's": borrow_filter,
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_cannot_be_committed_is_not_written(uky: Uky, checkout: Path, case: str) -> None:
    mend = REFUSALS[case](checkout)
    before = state(checkout)
    answer = uky("apply", "--commit", json=False)
    assert answer.code == 5, answer.out
    assert "nothing was written" in answer.err or "cannot be read" in answer.err
    assert len(answer.err.splitlines()) >= 3
    assert state(checkout) == before
    mend()
    again = uky("apply", "--commit")
    assert again.code == 0, again.err
    assert len(again.json["commits"]) == 2
    assert_committed(checkout)


def test_a_branch_without_a_commit(uky: Uky, tree: Path) -> None:
    git(tree, "init", "-q", "-b", "fork")
    answer = uky("apply", "--commit", "--allow-dirty", json=False)
    assert answer.code == 5
    assert "no commit yet" in answer.err
    assert (tree / FILE).read_text() == SERVER
    assert not (tree / ".uky-patch").exists()


@tools.needs(*(["setpriv"] if os.geteuid() == 0 else []))
@pytest.mark.parametrize("name", one_in(3, ["", "refs/heads", "objects", "logs"]))
def test_a_repository_that_cannot_be_written_to(checkout: Path, records: Path, name: str) -> None:
    """Neither its folder, nor that of the branches, nor the objects; of the log git sees it when the branch moves."""
    before = state(checkout)
    for path in (checkout / ".git" / name, *(checkout / ".git" / name).rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    plain = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    command = [*plain, sys.executable, "-m", "patcher", "--root", str(checkout), "--patches", str(records)]
    command += ["--assume", "vllm==2.1", "apply", "--commit"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 5, done.stdout + done.stderr
    assert ("taken back" if name == "logs" else "nothing was written") in done.stderr
    assert state(checkout) == before
    for path in (checkout / ".git" / name, *(checkout / ".git" / name).rglob("*")):
        path.chmod(0o755)
    assert subprocess.run(command, capture_output=True).returncode == 0
    assert_committed(checkout)


def detach(tree: Path) -> Path:
    git(tree, "checkout", "-q", "--detach")
    return tree


def reject_by_hooks(tree: Path) -> Path:
    for name in ("pre-commit", "commit-msg", "reference-transaction", "post-index-change", "prepare-commit-msg"):
        (tree / ".git/hooks" / name).write_text("#!/bin/sh\necho no >&2\nexit 1\n")
        (tree / ".git/hooks" / name).chmod(0o755)
    return tree


def want_signatures(tree: Path) -> Path:
    git(tree, "config", "commit.gpgSign", "true")
    git(tree, "config", "gpg.program", "/bin/false")
    return tree


def split_index(tree: Path) -> Path:
    git(tree, "update-index", "--split-index")
    return tree


def go_sparse(tree: Path) -> Path:
    (tree / "elsewhere").mkdir()
    (tree / "elsewhere/x").touch()
    git(tree, "add", ".")
    git(tree, "commit", "-q", "-m", "more")
    git(tree, "sparse-checkout", "set", "--cone", "--sparse-index", "verl")
    return tree


def pack(tree: Path) -> Path:
    git(tree, "gc", "-q")
    return tree


@pytest.mark.parametrize("prepare", [detach, reject_by_hooks, want_signatures, split_index, go_sparse, pack])
def test_what_is_no_obstacle(uky: Uky, checkout: Path, prepare: Callable[[Path], Path]) -> None:
    prepare(checkout)
    answer = uky("apply", "--commit")
    assert answer.code == 0, answer.err
    shutil.rmtree(checkout / ".git/hooks", ignore_errors=True)
    assert_committed(checkout)
    log = git(checkout, "reflog", "-1", "--format=%gs")
    assert log == "uky-patch apply\n"


def test_what_the_user_has_signed_is_signed_before_anything_is_written(
    uky: Uky, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gitconfig").write_text("[commit]\n\tgpgSign = true\n[gpg]\n\tprogram = /bin/false\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    before = state(checkout)
    assert uky("apply", "--commit", json=False).code == 5
    assert state(checkout) == before


def test_a_worktree_a_submodule_and_a_tree_below_the_top(uky: Uky, tree: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    (outer / "forks/a b").mkdir(parents=True)
    shutil.copytree(tree, outer / "forks/a b/verl fork")
    (outer / "x").touch()
    commit_all(outer)
    below = str(outer / "forks/a b/verl fork")
    assert uky("--root", below, "apply", "--commit").code == 0
    assert git(outer, "status", "--porcelain") == ""
    assert "[utils-moved]" in git(outer, "show", f"HEAD:forks/a b/verl fork/{FILE}")
    commit_all(tree)
    git(tree, "worktree", "add", "-q", "-b", "second", str(tmp_path / "second"))
    assert uky("--root", str(tmp_path / "second"), "apply", "--commit").code == 0
    assert_committed(tmp_path / "second")
    assert (tree / FILE).read_text() == SERVER
    assert git(tree, "status", "--porcelain") == ""
    git(outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "-b", "fork", str(tree), "inner")
    git(outer / "inner", "config", "user.name", "A User")
    git(outer / "inner", "config", "user.email", "user@example.invalid")
    assert uky("--root", str(outer / "inner"), "apply", "--commit").code == 0
    assert_committed(outer / "inner")


def test_what_is_staged_stays_staged_and_marks_stay(uky: Uky, checkout: Path) -> None:
    (checkout / "verl/__init__.py").write_text("x = 1\n")
    git(checkout, "add", "verl/__init__.py")
    (checkout / "new.py").touch()
    git(checkout, "add", "--intent-to-add", "new.py")
    git(checkout, "update-index", "--assume-unchanged", FILE)
    git(checkout, "update-index", "--chmod=+x", "verl/version/version")
    before = git(checkout, "diff", "--cached")
    assert uky("apply", "--commit").code == 0
    assert git(checkout, "diff", "--cached") == before
    assert git(checkout, "ls-files", "-v", FILE) == f"h {FILE}\n"
    assert git(checkout, "show", "--name-only", "--format=", "HEAD~1", "HEAD").split() == [FILE, FILE]


def test_a_change_that_git_is_told_not_to_see_is_not_committed(uky: Uky, checkout: Path) -> None:
    git(checkout, "update-index", "--assume-unchanged", FILE)
    (checkout / FILE).write_text(SERVER + "# mine alone\n")
    before = state(checkout)
    assert uky("apply", "--commit", json=False).code == 5
    assert state(checkout) == before


ATTRIBUTES = {
    "none": ("", {}),
    "auto": ("* text=auto\n", {}),
    "crlf": ("*.py text eol=crlf\n", {}),
    "autocrlf": ("", {"core.autocrlf": "true"}),
    "input": ("* text=auto\n", {"core.autocrlf": "input"}),
    "ident": ("*.py ident\n", {}),
    "utf-16": ("*.py working-tree-encoding=UTF-8\n", {}),
    "binary": ("*.py -text\n", {"core.autocrlf": "true"}),
}


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("late", [False, True], ids=["from the start", "later"])
@pytest.mark.parametrize("case", ATTRIBUTES)
def test_what_is_stored_is_what_git_would_store(uky: Uky, tree: Path, case: str, late: bool, ends: str) -> None:
    """`later`: the file was stored before the attributes came, so its line ends stay as they are stored."""
    attributes, settings = ATTRIBUTES[case]
    (tree / FILE).write_bytes((SERVER.replace('"""A server."""', '"""A server. $Id$"""')).replace("\n", ends).encode())
    (tree / FILE).chmod(0o755)
    if late:
        commit_all(tree)
    else:
        git(tree, "init", "-q")
    for key, value in settings.items():
        git(tree, "config", key, value)
    (tree / ".gitattributes").write_text(attributes)
    commit_all(tree) if not late else git(tree, "commit", "-q", "--allow-empty", "-m", "x")
    assert uky("apply", "--commit", "--allow-dirty").code == 0
    stored = git(tree, "ls-tree", "HEAD", FILE).split()
    git(tree, "reset", "-q", "HEAD~2")
    git(tree, "add", FILE)
    expected = git(tree, "ls-files", "--stage", FILE).split()
    assert (stored[0], stored[2]) == (expected[0], expected[1])


def changed_lines(tree: Path, commit: str) -> tuple[str, set[str]]:
    """The subject of a commit, and the ids of the records that stand in the lines that it adds or removes."""
    shown = git(tree, "show", "--format=%s", "-U0", commit)
    changed = [line for line in shown.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    return shown.splitlines()[0], set(re.findall(r"Uky\[([^]]+)\]", "\n".join(changed)))


@pytest.mark.parametrize("names", [("log-flag", "utils-moved"), ("utils-moved", "log-flag")])
def test_each_commit_holds_the_lines_of_its_record_alone_whatever_is_applied_already(
    uky: Uky, checkout: Path, names: tuple[str, str]
) -> None:
    titles = {"log-flag": "Pass enable_log", "utils-moved": "Import Parser from its new home"}
    for name in names:
        assert uky("apply", name, "--commit").code == 0
        assert changed_lines(checkout, "HEAD") == (titles[name], {name})
    assert git(checkout, "status", "--porcelain") == ""


def test_a_record_taken_out_of_a_file_that_others_stand_in_has_a_commit_of_its_own(
    uky: Uky, checkout: Path, records: Path
) -> None:
    """In one apply: a record goes, one changes, and one is new; and all of them edit the same file."""
    assert uky("apply", "--commit").code == 0
    (checkout / "uky-patch.toml").write_text('disable = ["log-flag"]\n')
    moved = (records / "utils-moved.toml").read_text().replace("vllm.utils.parsers", "vllm.utils.parsing")
    (records / "utils-moved.toml").write_text(moved)
    added = (records / "log-flag.toml").read_text().replace('"log-flag"', '"added"').replace("Pass", "Send")
    (records / "added.toml").write_text(added)
    answer = uky("apply", "--commit")
    assert (answer.code, len(answer.json["commits"])) == (0, 3)
    assert changed_lines(checkout, "HEAD~2") == ("Take out records that are no longer needed", {"log-flag"})
    assert changed_lines(checkout, "HEAD~1") == ("Send enable_log", {"added"})
    assert changed_lines(checkout, "HEAD") == ("Import Parser from its new home", {"utils-moved"})
    assert "Taken out by uky-patch: log-flag." in git(checkout, "log", "-1", "--format=%b", "HEAD~2")
    assert git(checkout, "status", "--porcelain", "-uno") == ""


class Moments:
    """Each call that changes the disk, each start of a git, each word to one, and the note: all count for `Faults`."""

    def __init__(
        self,
        patch: pytest.MonkeyPatch,
        at: int | None = None,
        strike: Callable[[], None] = lambda: None,
        *,
        git_alone: bool = False,
    ) -> None:
        self.faults = Faults(at, strike)
        self._null = os.open(os.devnull, os.O_WRONLY)
        if not git_alone:
            patch.setattr(disk, "os", self.faults)
        for owner, name in ((Process, "__init__"), (Process, "converse"), (owed, "write"), (owed, "remove")):
            patch.setattr(owner, name, self._counted(getattr(owner, name)))

    def _counted(self, real: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **options: object) -> object:
            self.faults.fchmod(self._null, 0o666)
            return real(*arguments, **options)

        return call


Fresh = Callable[[], None]


@pytest.fixture
def fresh(checkout: Path) -> Fresh:
    """Put the checkout back as it was."""
    kept = checkout.parent / "kept"
    shutil.copytree(checkout, kept, symlinks=True)

    def restore() -> None:
        for name in (".git", "verl", ".uky-patch"):
            shutil.rmtree(checkout / name, ignore_errors=True)
            if (kept / name).exists():
                shutil.copytree(kept / name, checkout / name, symlinks=True)

    return restore


def count(uky: Uky, *, git_alone: bool = False) -> int:
    with pytest.MonkeyPatch.context() as patch:
        found = Moments(patch, git_alone=git_alone)
        assert uky("apply", "log-flag", "--commit").code == 0
    return len(found.faults.calls)


def assert_never_taken_back(tree: Path) -> None:
    """Neither the index nor the branch holds less than what is behind it, so no later commit undoes the edits."""
    patched = [
        b"Uky[" in content for content in ((tree / FILE).read_bytes(), *(show(tree, at) for at in (":", "HEAD:")))
    ]
    on_disk, staged, in_head = patched
    assert on_disk or not staged
    assert staged or not in_head


def show(tree: Path, at: str) -> bytes:
    return subprocess.run(["git", "show", f"{at}{FILE}"], cwd=tree, check=True, capture_output=True).stdout


def assert_unlocked(tree: Path) -> None:
    deadline = time.monotonic() + 5
    while locks := list((tree / ".git").rglob("*.lock")):
        assert time.monotonic() < deadline, locks
        time.sleep(0.01)


@pytest.mark.parametrize("every", one_in(2, [7, 1]))
def test_a_commit_killed_at_any_moment_is_made_by_the_next_run(
    uky: Uky, checkout: Path, fresh: Fresh, every: int
) -> None:
    """At every moment in the slow lane, at each seventh here."""
    total = count(uky)
    assert total > 45
    owing = 0
    for at in range(0, total, every):
        fresh()

        def killed(at: int = at) -> None:
            with pytest.MonkeyPatch.context() as patch:
                Moments(patch, at, lambda: os.kill(os.getpid(), signal.SIGKILL))
                uky("apply", "log-flag", "--commit")

        assert wait_for(fork(killed)) == -signal.SIGKILL, f"moment {at} of {total} was not reached"
        assert_unlocked(checkout)
        assert_never_taken_back(checkout)
        owing += (checkout / ".git/uky-patch-commit.json").exists()
        answer = uky("apply", "log-flag", "--commit")
        assert answer.code == 0, f"after moment {at}: {answer.err}"
        assert git(checkout, "log", "--format=%s").splitlines() == ["Pass enable_log", "verl 99.1"], f"moment {at}"
        assert git(checkout, "status", "--porcelain") == ""
        assert not (checkout / ".git/uky-patch-commit.json").exists()
    assert owing > 15 // every


@pytest.mark.parametrize(
    ("kind", "every", "least"), one_in(4, [("git", 3, 3), ("git", 1, 10), ("disk", 3, 10), ("interrupt", 3, 10)])
)
def test_a_commit_that_fails_at_any_moment_leaves_nothing_or_says_what(
    uky: Uky, checkout: Path, fresh: Fresh, kind: str, every: int, least: int
) -> None:
    def strike() -> None:
        if kind == "disk":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        raise TreeError("git failed", cause="planted") if kind == "git" else KeyboardInterrupt

    before = state(checkout)
    refused = 0
    for at in range(0, count(uky, git_alone=kind == "git"), every):
        fresh()
        with pytest.MonkeyPatch.context() as patch:
            Moments(patch, at, strike, git_alone=kind == "git")
            try:
                answer = uky("apply", "log-flag", "--commit", json=False)
                code, told = answer.code, answer.out + answer.err
            except (KeyboardInterrupt, OSError, TreeError) as error:  # OSError: at a start of git, it is a bug's.
                code, told = 130, str(error)
        assert_unlocked(checkout)
        assert_never_taken_back(checkout)
        if code and "tidied" not in told and show(checkout, "HEAD:") == SERVER.encode():
            refused += 1
            if kind == "git":
                assert state(checkout) == before, f"moment {at}: {told}"
        assert uky("apply", "log-flag", "--commit").code == 0, f"moment {at}"
        assert git(checkout, "log", "--format=%s").splitlines() == ["Pass enable_log", "verl 99.1"], f"moment {at}"
        assert git(checkout, "status", "--porcelain") == ""
    assert refused > least


def test_a_file_that_was_changed_since_is_left_out(uky: Uky, checkout: Path) -> None:
    def killed() -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("patcher.git.publishing.Publication.finish", lambda _: os.kill(os.getpid(), signal.SIGKILL))
            uky("apply", "--commit")

    assert wait_for(fork(killed)) == -signal.SIGKILL
    assert "Uky[" in (checkout / FILE).read_text()
    assert uky("status").code == 0
    assert uky("revert").code == 0
    head = git(checkout, "rev-parse", "HEAD")
    assert uky("apply", "log-flag", "--commit").code == 0
    assert git(checkout, "rev-parse", "HEAD~1") == head


def test_what_was_committed_by_hand_is_not_committed_again(uky: Uky, checkout: Path) -> None:
    def killed() -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("patcher.git.publishing.Publication.finish", lambda _: os.kill(os.getpid(), signal.SIGKILL))
            uky("apply", "--commit")

    assert wait_for(fork(killed)) == -signal.SIGKILL
    git(checkout, "commit", "-q", "-a", "-m", "by hand")
    answer = uky("apply", "--commit")
    assert (answer.code, answer.json["commits"]) == (0, [])
    assert git(checkout, "log", "-1", "--format=%s") == "by hand\n"


def test_records_taken_out_are_committed_by_the_next_run_too(uky: Uky, checkout: Path) -> None:
    """The ledger no longer names their files, so the note alone knows of them."""
    assert uky("apply", "--commit").code == 0

    def killed() -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("patcher.git.publishing.Publication.finish", lambda _: os.kill(os.getpid(), signal.SIGKILL))
            uky("apply", "--commit", vllm="1.0")

    assert wait_for(fork(killed)) == -signal.SIGKILL
    assert (checkout / FILE).read_text() == SERVER
    assert len(uky("apply", "--commit", vllm="1.0").json["commits"]) == 1
    assert git(checkout, "log", "-1", "--format=%s") == "Take out records that are no longer needed\n"
    assert git(checkout, "status", "--porcelain") == ""


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[]", b"[" * 100_000, b'{"format": 1, "steps": [{"blobs": {"x": 1}}]}']
)
def test_a_damaged_note_is_told(uky: Uky, checkout: Path, content: bytes) -> None:
    (checkout / ".git/uky-patch-commit.json").write_bytes(content)
    answer = uky("apply", "--commit", json=False)
    assert answer.code == 5
    assert "uky-patch-commit.json: damaged" in answer.err
    assert (checkout / FILE).read_text() == SERVER
