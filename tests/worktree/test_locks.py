"""A lock file is opened as what it is, by those who have a say over its folder, and is waited for within a limit."""

from __future__ import annotations

import os
import stat
import subprocess
import time
from pathlib import Path

import pytest

from patcher.worktree import locks
from patcher.worktree.files import IrregularFileError
from tests.worktree.test_files import PLANTED

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")


@pytest.mark.parametrize("kind", PLANTED)
@pytest.mark.parametrize("make", [True, False])
def test_what_is_planted_is_no_lock(kind: str, make: bool, tmp_path: Path) -> None:
    place = tmp_path / "lock"
    PLANTED[kind](place)
    with pytest.raises(IrregularFileError):
        locks.open_lock(place, make=make)


@pytest.mark.parametrize(
    ("folder", "file"), [(0o755, 0o600), (0o700, 0o600), (0o775, 0o660), (0o777, 0o666), (0o1777, 0o600)]
)
def test_a_lock_has_no_more_rights_than_its_folder_gives(folder: int, file: int, tmp_path: Path) -> None:
    tmp_path.chmod(folder)
    before = os.umask(0)
    try:
        os.close(locks.open_lock(tmp_path / "lock"))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "lock").stat().st_mode) == file


def test_a_readable_lock_of_ours_loses_the_right(tmp_path: Path) -> None:
    (tmp_path / "lock").write_bytes(b"note")
    (tmp_path / "lock").chmod(0o644)
    os.close(locks.open_lock(tmp_path / "lock"))
    assert stat.S_IMODE((tmp_path / "lock").stat().st_mode) == 0o600
    assert (tmp_path / "lock").read_bytes() == b"note"


@needs_root
def test_somebody_who_may_not_write_there_cannot_take_the_lock(tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents[:2]):  # As far as pytest made them, for its own user alone.
        folder.chmod(0o755)
    os.close(locks.open_lock(tmp_path / "lock"))
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]
    tried = subprocess.run([*nobody, "flock", "-s", "-n", str(tmp_path / "lock"), "true"], capture_output=True)
    assert tried.returncode != 0


@needs_root
def test_a_stranger_s_lock_in_a_folder_for_all_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "shared" / "lock"
    place.parent.mkdir()
    place.write_bytes(b"")
    os.chown(place, 65534, 65534)
    place.parent.chmod(0o755)
    os.close(locks.open_lock(place))
    place.parent.chmod(0o1777)
    with pytest.raises((locks.ForeignLockError, PermissionError)):
        locks.open_lock(place)


def test_no_lock_is_waited_for_without_a_limit(tmp_path: Path) -> None:
    told: list[locks.Note] = []
    with locks.take(tmp_path / "lock", locks.signature("first"), wait=0.0) as first:
        assert not locks.is_free(tmp_path / "lock")
        started = time.monotonic()
        with pytest.raises(locks.LockHeldError) as held:
            locks.take(tmp_path / "lock", locks.signature("second"), wait=0.1, on_wait=told.append)
        assert time.monotonic() - started < 10
        assert [note["purpose"] for note in (*told, held.value.owner)] == ["first", "first"]
    assert locks.is_free(tmp_path / "lock")
    assert (tmp_path / "lock").read_bytes() == b""
    first.release()


def test_readers_share_and_keep_a_writer_out(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        locks.take(tmp_path / "lock", None, wait=0.0)
    locks.take(tmp_path / "lock", {}, wait=0.0).release()
    with locks.take(tmp_path / "lock", None, wait=0.0), locks.take(tmp_path / "lock", None, wait=0.0):
        assert not locks.is_free(tmp_path / "lock")
        with pytest.raises(locks.LockHeldError):
            locks.take(tmp_path / "lock", {}, wait=0.0)


def test_a_lock_that_its_holder_removed_is_taken_anew(tmp_path: Path) -> None:
    first = locks.take(tmp_path / "lock", {}, wait=0.0)
    second = locks.take(tmp_path / "lock", {}, wait=5.0, on_wait=lambda _: first.remove())
    fd = locks.open_lock(tmp_path / "lock", make=False)
    try:
        assert not locks.try_lock(fd)
        assert locks.is_at(fd, tmp_path / "lock")
        second.remove()
        assert not locks.is_at(fd, tmp_path / "lock")
    finally:
        os.close(fd)


def test_an_orphan_is_waited_for_and_nobody_else(tmp_path: Path) -> None:
    orphan = locks.take(tmp_path / "lock", {"run": "lost"}, wait=0.0)
    with pytest.raises(locks.LockHeldError):
        locks.take(tmp_path / "lock", {}, wait=5.0, on_held=locks.end_orphans(["another"]))
    wait = locks.end_orphans(["lost"])
    seen: list[locks.Note] = []

    def on_held(owner: locks.Note, fd: int) -> None:
        wait(owner, fd)
        seen.append(owner)
        if owner:  # It takes its note out first, and lets go a moment later.
            (tmp_path / "lock").write_bytes(b"")
        else:
            orphan.release()

    locks.take(tmp_path / "lock", {"run": "next"}, wait=5.0, on_held=on_held).release()
    assert seen == [{"run": "lost"}, {}]
