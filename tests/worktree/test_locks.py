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
    first, second = locks.open_lock(tmp_path / "lock"), locks.open_lock(tmp_path / "lock")
    told: list[bool] = []
    try:
        assert locks.try_lock(first)
        started = time.monotonic()
        with pytest.raises(locks.LockHeldError):
            locks.await_lock(second, 0.1, on_wait=lambda: told.append(True))
        assert time.monotonic() - started < 10
        assert told == [True]
        assert locks.is_at(first, tmp_path / "lock")
        (tmp_path / "lock").unlink()
        assert not locks.is_at(first, tmp_path / "lock")
    finally:
        os.close(first)
        os.close(second)
