"""The agent killed at any instant: every file is whole, and the next run finishes the work.

The faults and kills are those of `tests.tree.test_crash`: one engine, the tree here and the tree on a host.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from patcher.migrate.listing import Item
from patcher.migrate.transfer import compare, send
from patcher.remote.channel import RefusedError
from patcher.worktree import layout
from patcher.worktree.placement import JOURNAL
from tests.agent.direct import direct
from tests.lanes import ALL_CASES, one_in
from tests.migrate.toys import cargo, contents, fork, git, write
from tests.tree.faults import faults, killed_at, sigkilled_at, wait_for
from tests.tree.faults import fork as forked

OLD = {
    "verl/changed.py": "old = 1\n",
    "verl/theirs.py": "old = 2\n",
    "verl/gone/only.py": "old = 3\n",
    "verl/thing": "a file\n",
    "verl/pack/inner.py": "old = 4\n",
    "verl/mode.sh": "echo\n",
    "verl/linked": "a file, soon a link\n",
}
PATCHED = b"made = True\n"


class World:
    """A fork here, a copy of its first commit there, edited by somebody, and its second commit waiting."""

    def __init__(self, folder: Path) -> None:
        self.here, self.there = folder / "here", folder / "there"
        fork(self.here, OLD)
        (self.here / "verl/was_link").symlink_to("changed.py")
        git(self.here, "add", "--all")
        self.there.mkdir()
        (self.there / ".uky-patch/host").mkdir(parents=True, mode=0o700)
        connection, first = direct(self.there), cargo(self.here)
        send(connection, first, compare(connection, first))
        self._move_on()
        write(
            self.there,
            {
                "verl/theirs.py": "theirs = 2\n",
                "git_ignore.py": "PROJECT_ROOT = '/scratch'\n",
                "checkpoints/step_10/model.pt": "weights",
                "verl/gone/__pycache__/only.cpython-311.pyc": "stale",
                "verl/__pycache__/changed.cpython-311.pyc": "stale",
                "verl/__pycache__/other.cpython-311.pyc": "fresh",
            },
        )
        self.old = contents(self.there)
        self.untouched = ("git_ignore.py", "checkpoints/step_10/model.pt", "verl/__pycache__/other.cpython-311.pyc")

    def _move_on(self) -> None:
        root = self.here
        git(root, "rm", "-r", "-f", "--quiet", "verl/gone", "verl/thing", "verl/pack", "verl/linked", "verl/was_link")
        write(
            root,
            {
                "verl/changed.py": "new = 1\n",
                "verl/theirs.py": "new = 2\n",
                "verl/thing/now_a_folder.py": "new = 3\n",
                "verl/pack": "now a file\n",
                "verl/was_link": "now a file\n",
                "verl/added/deep/file.py": "new = 4\n",
            },
        )
        (root / "verl/linked").symlink_to("changed.py")
        (root / "verl/mode.sh").chmod(0o755)
        self.new = {**contents(root), "verl/patched.py": PATCHED}

    def cargo(self):
        made = Item("verl/patched.py", len(PATCHED), 0o644, hashlib.sha256(PATCHED).hexdigest(), content=PATCHED)
        return cargo(self.here, made)

    def bring(self) -> None:
        connection = direct(self.there)
        what = self.cargo()
        send(connection, what, compare(connection, what))

    def assert_whole(self) -> None:
        for path, content in contents(self.there).items():
            assert content in (self.old.get(path), self.new.get(path)), path

    def assert_new(self, *, swept: bool = True) -> None:
        found = contents(self.there)
        for path in self.untouched:
            assert found.pop(path) == self.old[path]
        assert found == self.new
        assert not swept or not (self.there / "verl/gone").exists()
        assert os.access(self.there / "verl/mode.sh", os.X_OK)
        kept = {}
        for folder in (self.there / layout.KEPT).iterdir():
            kept.update(contents(folder) if folder.is_dir() else {})
        assert kept["verl/theirs.py"] == b"theirs = 2\n"
        assert kept["verl/gone/only.py"] == b"old = 3\n"
        assert "verl/changed.py" not in kept
        # The digests are a cache, written where the files are old enough for their times to tell an edit.
        state = {path.name for path in (self.there / ".uky-patch/host").iterdir()}
        assert state - {"digests.json"} == {"manifest.json"}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("model"))


@pytest.fixture
def world(model: World, tmp_path: Path):
    """Makes the model's host anew, as often as it is called."""
    saved = tmp_path / "saved"
    shutil.copytree(model.there, saved, symlinks=True)

    def again() -> World:
        shutil.rmtree(model.there)
        shutil.copytree(saved, model.there, symlinks=True)
        return model

    yield again
    again()


def calls(world: World) -> int:
    with faults() as stand_in:
        world.bring()
    world.assert_new()
    return len(stand_in.calls)


@pytest.mark.parametrize("kill", one_in(2, [sigkilled_at, killed_at]))
def test_an_agent_killed_at_any_call_leaves_whole_files_and_the_next_run_ends_the_work(world, kill) -> None:
    total = calls(world())
    assert total > 60
    ends = set()
    for at in range(total):
        fresh = world()
        if not kill(at, fresh.bring):
            # Whether the digests are noted depends on how old the files are, so that the last calls may not be made.
            assert at > total - 10, f"call {at} of {total} was not reached"
            break
        fresh.assert_whole()
        begun = (fresh.there / JOURNAL).exists()
        ends.add(begun)
        if not begun and (fresh.there / "verl/thing").is_file():
            assert contents(fresh.there) == fresh.old, f"call {at}: changed before the journal was written"
        fresh.bring()
        fresh.assert_new()
    assert ends == {True, False}


@pytest.mark.parametrize("error", one_in(6, ["ENOSPC", "EIO", "EACCES", "EROFS", "EDQUOT", "EPERM"]))
def test_a_call_that_fails_leaves_the_old_tree_or_one_that_the_next_run_finishes(world, error: str) -> None:
    def strike() -> None:
        raise OSError(getattr(errno, error), os.strerror(getattr(errno, error)))

    kinds = set()
    for at in range(calls(world())):
        fresh = world()
        try:
            with faults(at, strike) as stand_in:
                fresh.bring()
        except RefusedError as refused:
            kinds.add(refused.kind)
            fresh.assert_whole()
            assert refused.advice  # noqa: PT017
            if refused.kind != "unfinished":
                assert contents(fresh.there) == fresh.old, f"call {at}"
                if error in ("ENOSPC", "EDQUOT"):
                    assert not (fresh.there / layout.INCOMING).exists()
        fresh.bring()
        fresh.assert_new(swept=stand_in.calls[at] != "rmdir")
    expected = {"ENOSPC": "disk-full", "EDQUOT": "quota", "EROFS": "read-only", "EIO": "io"}
    assert {expected.get(error, "permission"), "unfinished"} <= kinds


def test_work_that_is_finished_later_is_finished_by_a_comparison_alone(world) -> None:
    total = calls(world())
    fresh = world()
    assert wait_for(forked(lambda: _die_in_the_middle(fresh, total))) == -signal.SIGKILL
    assert (fresh.there / JOURNAL).exists()
    assert compare(direct(fresh.there), fresh.cargo()).nothing
    fresh.assert_new()


def _die_in_the_middle(world: World, total: int) -> None:
    with faults(total - 25, lambda: os.kill(os.getpid(), signal.SIGKILL)):
        world.bring()


@pytest.mark.slow
def test_a_recovery_that_is_killed_too_is_ended_by_the_next_run(world) -> None:
    total = calls(world())
    struck = 0
    for at in range(total - 30, total, 4):
        for second in range(0, 60, 3 if ALL_CASES else 6):
            fresh = world()
            wait_for(forked(lambda: _killed(fresh, at)))  # noqa: B023
            code = wait_for(forked(lambda: _killed(fresh, second)))  # noqa: B023
            fresh.assert_whole()
            fresh.bring()
            fresh.assert_new()
            struck += code == -signal.SIGKILL
            if code != -signal.SIGKILL:
                break
    assert struck > 20


def _killed(world: World, at: int) -> None:
    _strike(at, world.bring)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
@pytest.mark.parametrize("mounted", one_in(2, ["verl", layout.KEPT]))
def test_a_tree_that_spans_file_systems_is_filled_whenever_the_agent_is_killed(tmp_path: Path, mounted: str) -> None:
    root, there = fork(tmp_path / "here", {"verl/a.py": "a", "verl/gone.py": "g"}), tmp_path / "there"
    (there / mounted).mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(there / mounted)], check=True)

    def bring() -> None:
        connection, what = direct(there), cargo(root)
        send(connection, what, compare(connection, what))

    try:
        for at in range(0, 1000, 2):
            write(root, {"verl/a.py": "a", "verl/gone.py": "g"})
            bring()
            write(root, {"verl/a.py": "ours"})
            write(there, {"verl/a.py": "theirs"})
            (root / "verl/gone.py").unlink()
            code = wait_for(forked(lambda: _strike(at, bring)))  # noqa: B023
            bring()
            assert contents(there) == contents(root)
            newest = max(path for path in (there / layout.KEPT).iterdir() if path.is_dir())
            assert contents(newest) == {"verl/a.py": b"theirs", "verl/gone.py": b"g"}
            shutil.rmtree(newest)
            if code == 0:
                break
        assert at > 30
    finally:
        subprocess.run(["umount", "--lazy", str(there / mounted)], check=True)


def _strike(at: int, act: Callable[[], None]) -> None:
    with faults(at, lambda: os.kill(os.getpid(), signal.SIGKILL)):
        act()
