"""What a change keeps, checks and refuses."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from patcher.errors import TreeError
from patcher.tree import Change, Ledger, Tree
from patcher.worktree import disk, files, locks
from patcher.worktree.hashing import digest_of
from patcher.worktree.ledger import PatchedFile
from tests.tree.faults import faults, fork, wait_for
from tests.tree.toys import (
    FILES,
    MARK,
    REPLACED,
    TARGETS,
    apply,
    assert_settled,
    contents,
    edit,
    everything,
    plant,
    revert,
)

ONE = TARGETS[0]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount, chattr and setuid")


def place(tree: Tree, path: str = ONE) -> Path:
    return tree.root / path


def test_apply_writes_and_revert_restores(tree):
    assert apply(tree) == TARGETS
    assert assert_settled(tree) == "new"
    assert revert(tree) == TARGETS
    assert assert_settled(tree) == "old"


def test_a_second_commit_of_the_same_thing_writes_nothing(tree):
    apply(tree)
    before = {path: place(tree, path).stat().st_mtime_ns for path in everything(tree) if not path.endswith("/lock")}
    with faults() as seen, tree.transaction("apply") as transaction:
        assert transaction.commit((), transaction.ledger) == ()
    assert {path: place(tree, path).stat().st_mtime_ns for path in before} == before
    assert not {"replace", "link", "fsync", "unlink"} & set(seen.calls)


def test_the_ledger_alone_can_be_replaced(tree):
    apply(tree)
    with tree.transaction("note") as transaction:
        old = transaction.ledger
        transaction.commit((), Ledger(old.files, old.records, {"inputs": "abc", "seen": [1, {"a": None}]}))
    assert tree.ledger().basis == {"inputs": "abc", "seen": [1, {"a": None}]}
    assert assert_settled(tree) == "new"


def test_two_commits_in_one_transaction(tree):
    with tree.transaction("twice") as transaction:
        changes, ledger = edit(tree, ONE)
        transaction.commit(changes, ledger)
        transaction.commit([Change(ONE, digest_of(changes[0].content), FILES[ONE])], Ledger())
    assert assert_settled(tree) == "old"


def test_a_file_changed_since_it_was_planned_stops_everything(tree):
    changes, ledger = edit(tree, *TARGETS)
    place(tree, TARGETS[2]).write_bytes(b"theirs\n")
    with pytest.raises(TreeError, match=r"verl/part2/module\.py: changed meanwhile"), tree.transaction("apply") as run:
        run.commit(changes, ledger)
    assert contents(tree) == {**FILES, TARGETS[2]: b"theirs\n"}
    assert not (tree.root / ".uky-patch").exists()


def test_a_file_changed_between_check_and_replacement_stops_everything(tree, monkeypatch):
    replace = disk.replace

    def meddle(source: Path, target: Path) -> None:
        replace(source, target)
        if target == place(tree, TARGETS[0]):
            place(tree, TARGETS[2]).write_bytes(b"theirs\n")

    monkeypatch.setattr(disk, "replace", meddle)
    with pytest.raises(TreeError, match="changed meanwhile"):
        apply(tree)
    assert contents(tree) == {**FILES, TARGETS[2]: b"theirs\n"}
    assert not (tree.root / ".uky-patch").exists()


def test_a_missing_file_is_an_error(tree):
    with pytest.raises(TreeError, match=r"verl/gone\.py"), tree.transaction("apply") as run:
        run.commit([Change("verl/gone.py", digest_of(b""), b"x")], Ledger())
    assert assert_settled(tree) == "old"


def test_a_hardlink_into_a_package_cache_is_broken_and_the_cache_untouched(tree, tmp_path):
    cached = tmp_path / "cached.py"
    os.link(place(tree), cached)
    apply(tree)
    assert cached.read_bytes() == FILES[ONE]
    assert place(tree).stat().st_ino != cached.stat().st_ino
    cached.write_bytes(b"another version\n")
    revert(tree)
    assert assert_settled(tree) == "old"
    assert place(tree).stat().st_nlink == 1


@pytest.mark.parametrize("mode", [0o600, 0o755, 0o444, 0o640, 0o2755])
def test_modes_are_kept(tree, mode):
    place(tree).chmod(mode)
    for act in (apply, revert):
        act(tree)
        assert stat.S_IMODE(place(tree).stat().st_mode) == mode
    assert assert_settled(tree) == "old"


def test_a_private_file_has_a_private_pre_image(tree):
    place(tree).chmod(0o600)
    apply(tree)
    assert stat.S_IMODE((tree.root / ".uky-patch/originals" / digest_of(FILES[ONE])).stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbfx = 1\n",
        "# -*- coding: latin-1 -*-\nname = 'é'\n".encode("latin-1"),
        b"a = 1\r\nb = 2\r\n",
        b"a = 1\r\nb = 2\nc = 3\rd = 4\n",
        b"last = 'line'",
        b"",
        b"\x00\xff binary \r\n",
    ],
    ids=["bom", "latin-1", "crlf", "mixed", "no-last-newline", "empty", "binary"],
)
def test_bytes_come_back_as_they_were(tree, content):
    place(tree).write_bytes(content)
    apply(tree)
    assert place(tree).read_bytes() == content + MARK
    revert(tree)
    assert contents(tree) == {**FILES, ONE: content}


def test_stale_bytecode_goes_and_other_bytecode_stays(tree):
    cache = place(tree).parent / "__pycache__"
    cache.mkdir()
    for name in ("module.cpython-311.pyc", "module.cpython-312.opt-1.pyc", "modules.cpython-311.pyc"):
        (cache / name).write_bytes(b"stale")
    apply(tree)
    assert [path.name for path in cache.iterdir()] == ["modules.cpython-311.pyc"]


def test_bytecode_that_python_compiles_anew_stays(tree):
    """As a fork has it that has committed its __pycache__."""
    cache = place(tree).parent / "__pycache__"
    cache.mkdir()
    head = b"\xa7\r\r\n" + bytes(4)
    committed = cache / "module.cpython-311.pyc"
    committed.write_bytes(head + (1_600_000_000).to_bytes(4, "little") + (7).to_bytes(4, "little") + b"code")
    unchecked = cache / "module.cpython-312.pyc"
    unchecked.write_bytes(b"\xcb\r\r\n" + (1).to_bytes(4, "little") + b"12345678code")
    apply(tree)
    assert [path.name for path in cache.iterdir()] == [committed.name]
    revert(tree)
    assert committed.is_file()


def test_python_runs_the_new_code_at_once(tree):
    """Same size, same second: only the removal of the bytecode tells Python that the source is another."""
    command = [sys.executable, "-c", "import verl.part0.module as m; print(m.VALUE)"]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}

    def printed() -> bytes:
        return subprocess.run(command, cwd=tree.root, env=environment, capture_output=True, check=True).stdout

    def second() -> int:
        return int(place(tree).stat().st_mtime)

    place(tree).write_bytes(old := b"VALUE = 1\n")
    for number in range(2, 10):
        # Bytecode of a second that is over would tell Python itself that the source is another.
        os.utime(place(tree), (time.time() + 1,) * 2)
        assert printed() == old[-2:]
        new, before = b"VALUE = %d\n" % number, second()
        while time.time() < before:
            time.sleep(0.01)
        sha = digest_of(old)
        with tree.transaction("apply") as run:
            run.commit([Change(ONE, sha, new)], Ledger({ONE: PatchedFile(sha, digest_of(new), ("t",))}))
        assert printed() == new[-2:]
        if second() == before:
            return
        old = new
    pytest.fail("no commit fell into the second of the bytecode")


def test_a_symlink_inside_the_tree_is_followed_and_stays_a_symlink(tree):
    link = tree.root / "verl/alias.py"
    link.symlink_to("part0/module.py")
    with tree.transaction("apply") as run:
        run.commit(*edit(tree, "verl/alias.py"))
    assert link.is_symlink()
    assert place(tree).read_bytes() == FILES[ONE] + MARK
    revert(tree)
    link.unlink()
    assert assert_settled(tree) == "old"


def test_one_file_by_two_names_is_refused(tree):
    (tree.root / "verl/alias.py").symlink_to("part0/module.py")
    changes, ledger = edit(tree, ONE, "verl/alias.py")
    with pytest.raises(TreeError, match="named twice"), tree.transaction("apply") as run:
        run.commit(changes, ledger)
    assert place(tree).read_bytes() == FILES[ONE]


def test_a_damaged_pre_image_is_not_used(tree):
    apply(tree)
    kept = tree.root / ".uky-patch/originals" / digest_of(FILES[ONE])
    kept.write_bytes(b"damaged")
    with pytest.raises(TreeError, match="damaged"):
        revert(tree)
    kept.unlink()
    with pytest.raises(TreeError, match="missing"):
        revert(tree)
    assert tree.state(tree.ledger()) == dict.fromkeys(TARGETS, "as-applied")


def test_every_file_is_synced_before_the_journal_names_it(tree, monkeypatch):
    """A power cut: what the journal relies on must be on the disk before the journal is."""
    log: list[tuple[str, str]] = []

    class Watched:
        def __getattr__(self, name: str) -> object:
            real = getattr(os, name)

            def call(*arguments: object, **options: object) -> object:
                if name == "fsync":
                    log.append(("fsync", str(Path(f"/proc/self/fd/{arguments[0]}").readlink())))
                elif name == "replace":
                    log.append(("replace", str(arguments[1])))
                elif name == "open" and arguments[1] & os.O_CREAT:
                    log.append(("create", str(arguments[0])))
                return real(*arguments, **options)

            return call if callable(real) else real

    own = tree.root / ".uky-patch"
    monkeypatch.setattr(disk, "os", Watched())
    monkeypatch.setattr(files, "os", Watched())
    apply(tree)
    monkeypatch.undo()
    written = log.index(("replace", str(own / "journal.json")))
    before = {str(own / "lock"), str(own / ".gitignore")}
    created = {path for action, path in log[:written] if action == "create"} - before
    synced = {path for action, path in log[:written] if action == "fsync"}
    assert created <= synced
    assert {str(own / "staged"), str(tree.root)} <= synced
    first = next(number for number, entry in enumerate(log) if entry[0] == "replace" and "/verl/" in entry[1])
    assert ("fsync", str(own)) in log[written:first]
    placed = [number for number, entry in enumerate(log) if entry[0] == "replace" and "/originals/" in entry[1]]
    assert len(placed) == 2 * len(REPLACED) + 1, "a pre-image and its note for each file, and the note of files made"
    assert written < placed[0] < placed[-1] < log.index(("fsync", str(own / "originals"))) < first
    rest = {path for action, path in log[first:] if action == "fsync"}
    assert {str(place(tree, path).parent) for path in TARGETS} | {str(own)} <= rest


def refused(tree: Tree, match: str) -> TreeError:
    """Applying fails with one clear error and changes nothing."""
    before = everything(tree)
    with pytest.raises(TreeError, match=match) as caught:
        apply(tree)
    assert caught.value.cause
    assert caught.value.advice
    assert everything(tree) == before
    assert contents(tree) == FILES
    return caught.value


@needs_root
def test_an_immutable_file_stops_everything(tree):
    inodes = {path: place(tree, path).stat().st_ino for path in REPLACED}
    if subprocess.run(["chattr", "+i", place(tree, TARGETS[2])], capture_output=True).returncode:
        pytest.skip("this file system has no immutable flag")
    try:
        failure = refused(tree, "nothing was changed")
    finally:
        subprocess.run(["chattr", "-i", place(tree, TARGETS[2])], check=True)
    assert "part2/module.py" in str(failure)
    assert "chattr -i" in str(failure)
    assert {path: place(tree, path).stat().st_ino for path in REPLACED} == inodes
    assert {place(tree, path).stat().st_nlink for path in REPLACED} == {1}


def as_nobody(tree: Tree, match: str) -> None:
    def child() -> None:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        refused(tree, match)

    for folder in (tree.root, *tree.root.parents):
        if folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)
    assert wait_for(fork(child)) == 0


@needs_root
def test_a_file_of_root_is_not_taken_over_by_an_ordinary_user(tree):
    for path in ("", "verl", *(f"verl/part{number}" for number in range(4))):
        os.chown(tree.root / path, 65534, 65534)
    as_nobody(tree, "cannot be replaced")


@needs_root
def test_a_folder_that_may_not_be_written(tree):
    as_nobody(tree, "cannot be written to")
    os.chown(tree.root, 65534, 65534)
    as_nobody(tree, "cannot be replaced")


@needs_root
def test_what_root_makes_in_a_users_tree_is_the_users(tree):
    for path in (tree.root, *tree.root.rglob("*")):
        os.chown(path, 1234, 1234)
    apply(tree)
    assert {path.stat().st_uid for path in tree.root.rglob("*")} == {1234}
    revert(tree)
    assert assert_settled(tree) == "old"
    assert {path.stat().st_uid for path in tree.root.rglob("*")} == {1234}


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "mounted"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", folder], capture_output=True).returncode:
        pytest.skip("this user may not mount a file system")
    (folder / "fork").mkdir()
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk(small_disk, monkeypatch):
    tree = plant(small_disk / "fork")
    filler = small_disk / "filler"
    filler.write_bytes(b"x" * (1 << 20))
    assert "disk is full" in str(refused(tree, "nothing was changed"))
    monkeypatch.setattr(disk, "free_bytes", lambda _: None)
    subprocess.run(["dd", "if=/dev/zero", f"of={filler}", "bs=4096"], capture_output=True)
    before = everything(tree)
    with pytest.raises(TreeError, match="disk is full"):
        apply(tree)
    assert everything(tree) == before
    filler.unlink()
    apply(tree)
    assert assert_settled(tree) == "new"


def test_a_read_only_file_system(small_disk):
    tree = plant(small_disk / "fork")
    apply(tree)
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    with pytest.raises(TreeError, match="read-only"):
        revert(tree)
    with tree.reading() as reading:
        assert tree.state(reading.ledger) == dict.fromkeys(TARGETS, "as-applied")
    subprocess.run(["mount", "-o", "remount,rw", small_disk], check=True)
    assert assert_settled(tree) == "new"


@needs_root
def test_a_folder_of_another_file_system(tree, small_disk):
    part = tree.root / "verl/part2"
    (small_disk / "fork" / "module.py").write_bytes(FILES[TARGETS[2]])
    if subprocess.run(["mount", "--bind", small_disk / "fork", part], capture_output=True).returncode:
        pytest.skip("this user may not mount a file system")
    try:
        assert "another file system" in str(refused(tree, "nothing was changed"))
    finally:
        subprocess.run(["umount", part], check=True)
    assert assert_settled(tree) == "old"


def test_a_file_system_that_refuses_hard_links(tree, monkeypatch):
    real = os.link

    class NoLinks:
        def __getattr__(self, name: str) -> object:
            return self.refuse if name == "link" else getattr(os, name)

        def refuse(self, *arguments: object, **options: object) -> None:
            raise PermissionError(errno.EPERM, "no links here")

    monkeypatch.setattr(disk, "os", NoLinks())
    apply(tree)
    assert assert_settled(tree) == "new"
    revert(tree)
    assert assert_settled(tree) == "old"
    assert os.link is real


def test_a_file_system_without_flock(tree, monkeypatch):
    def unsupported(fd: int, operation: int) -> None:
        raise OSError(errno.ENOTSUP, "flock")

    apply(tree)
    monkeypatch.setattr(locks.fcntl, "flock", unsupported)
    with tree.reading() as reading:
        assert set(reading.ledger.files) == set(TARGETS)
        assert not reading.disturbed()
    with pytest.raises(TreeError, match="cannot be locked"):
        revert(tree)
    monkeypatch.undo()
    assert assert_settled(tree) == "new"


def test_keeping_what_is_about_to_be_replaced(tree):
    where = tree.keep(ONE, b"mine\n")
    assert tree.keep(ONE, b"mine\n") == where != tree.keep(ONE, b"mine too\n")
    assert (tree.root / where).read_bytes() == b"mine\n"
    assert (tree.root / ".uky-patch-kept/.gitignore").read_text() == "*\n"
