"""Transfers that go wrong, over a real sshd with a real rsync: the right error, the old tree or the new one."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from patcher.errors import CutError, HostError, TreeError
from patcher.migrate import rsync
from patcher.migrate import transfer as transfers
from patcher.migrate.payload import Payload
from patcher.migrate.transfer import Sent, compare, send
from patcher.remote.channel import RefusedError
from patcher.remote.host import Host
from patcher.worktree import layout
from tests.machines import Machine
from tests.migrate.toys import bring, cargo, contents, fork, opened, there, write

MIB = 1 << 20


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A fork whose second state is larger than what is sent without rsync."""
    return fork(tmp_path / "fork", {f"verl/part{n}.bin": secrets.token_bytes(MIB // 4) for n in range(8)})


@pytest.fixture
def host(reachable: Machine, request: pytest.FixtureRequest) -> Host:
    name = f"{request.node.name}-{secrets.token_hex(3)}"
    return there(reachable, name)


def tree(host: Host) -> Path:
    return Path(str(host.path))


def during_rsync(monkeypatch: pytest.MonkeyPatch, act: Any, *, once: bool = True) -> None:
    """Have `act` done when rsync has sent something."""
    real, done = rsync._follow, []

    def follow(out: Any, on_bytes: Any) -> None:
        def told(count: int) -> None:
            on_bytes(count)
            if not (once and done):
                done.append(True)
                act()

        real(out, told)

    monkeypatch.setattr(rsync, "_follow", follow)


def before_rsync(monkeypatch: pytest.MonkeyPatch, act: Any) -> None:
    real = rsync.transfer

    def transfer(*arguments: Any, **options: Any) -> rsync.RsyncEnd:
        act()
        return real(*arguments, **options)

    monkeypatch.setattr(rsync, "transfer", transfer)


@contextlib.contextmanager
def hidden_rsync(machine: Machine) -> Iterator[None]:
    """A login there finds Python and a shell, and no rsync."""
    tools, profile = machine.home / "tools", machine.home / ".bashrc"
    tools.mkdir()
    for name in ("python3", "sh"):
        (tools / name).symlink_to(str(shutil.which(name, path="/usr/bin:/bin")))
    before = profile.read_text()
    profile.write_text(f"export PATH={tools}\n{before}")
    try:
        yield
    finally:
        profile.write_text(before)
        shutil.rmtree(tools)


def test_a_host_without_rsync_gets_the_files_over_the_connection(reachable: Machine, root: Path, host: Host) -> None:
    write(root, {"verl/large.bin": secrets.token_bytes(9 * MIB), "verl/empty": "", "verl/new\nline 中": "x"})
    (root / "verl/run.sh").symlink_to("large.bin")
    with hidden_rsync(reachable):
        _, sent = bring(host, cargo(root))
    assert sent.way == "tar"
    assert [str(note) for note in sent.notes] == ["the host has no rsync 3.1 or newer"]
    assert contents(tree(host)) == contents(root)


def test_a_machine_without_rsync_sends_over_the_connection(
    root: Path, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rsync, "here", lambda: None)
    _, sent = bring(host, cargo(root))
    assert (sent.way, [str(note) for note in sent.notes]) == ("tar", ["this machine has no rsync 3.1 or newer"])
    assert contents(tree(host)) == contents(root)


def test_an_old_rsync_is_not_used(root: Path, host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rsync, "here", lambda: (2, 6, 9))
    assert bring(host, cargo(root))[1].way == "tar"


def test_a_login_that_prints_something_does_not_stop_the_transfer(reachable: Machine, root: Path, host: Host) -> None:
    profile = reachable.home / ".bashrc"
    before = profile.read_text()
    profile.write_text(f"echo Welcome to the cluster\n{before}")
    try:
        _, sent = bring(host, cargo(root))
    finally:
        profile.write_text(before)
    assert sent.way == "tar"
    assert "is your shell clean" in str(sent.notes[0])
    assert contents(tree(host)) == contents(root)


def test_an_rsync_that_is_killed_on_the_host_is_made_up_for(
    reachable: Machine, root: Path, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, {"verl/large.bin": secrets.token_bytes(24 * MIB)})
    during_rsync(monkeypatch, lambda: subprocess.run(["pkill", "-KILL", "-u", reachable.user, "rsync"], check=False))
    _, sent = bring(host, cargo(root))
    assert (sent.way, len(sent.notes)) == ("tar", 1)
    assert contents(tree(host)) == contents(root)


def test_an_rsync_that_is_killed_here_is_told(root: Path, host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, {"verl/large.bin": secrets.token_bytes(24 * MIB)})
    during_rsync(monkeypatch, lambda: _kill_children("rsync"))
    with pytest.raises(HostError, match="ended from outside"):
        bring(host, cargo(root))


def _kill_children(name: str) -> None:
    own = str(os.getpid())
    for process in subprocess.run(["pgrep", "-P", own, name], capture_output=True, text=True).stdout.split():
        os.kill(int(process), signal.SIGTERM)


def test_a_transfer_that_was_cut_goes_on_where_it_stopped(
    root: Path, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, {"verl/zz_large.bin": secrets.token_bytes(24 * MIB)})
    what = cargo(root)
    with opened(host) as connection:
        master = connection.channel._process

        def progress(_: object, done: int, total: int | None) -> None:
            if done > 3 * MIB:
                master.kill()

        difference = compare(connection, what)
        with pytest.raises(CutError):
            send(connection, what, difference, progress=progress)
    assert not (tree(host) / "README.md").exists()
    _, again = _after_the_orphan(host, what)
    assert again.files == len(what.items)
    assert again.bytes <= _size(what) - 8 * MIB // 4
    assert contents(tree(host)) == contents(root)


def _after_the_orphan(host: Host, what: Payload) -> tuple[object, Sent]:
    deadline = time.monotonic() + 20
    while True:
        try:
            return bring(host, what)
        except RefusedError as refused:
            if refused.kind != "locked" or time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def test_a_file_that_changes_while_it_is_sent_is_refused(
    root: Path, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        before_rsync(patch, lambda: write(root, {"verl/part3.bin": "otherwise"}))
        with pytest.raises(TreeError, match="changed here during the transfer") as caught:
            bring(host, cargo(root))
    assert "part3.bin" in str(caught.value)
    assert ".gitignore" in str(caught.value.advice)
    assert not (tree(host) / "README.md").exists()
    assert bring(host, cargo(root))[1].bytes < MIB
    assert contents(tree(host)) == contents(root)


def test_a_file_that_vanishes_before_it_is_sent_is_told(
    root: Path, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    before_rsync(monkeypatch, (root / "verl/part3.bin").unlink)
    with pytest.raises(TreeError, match="cannot be read any more") as caught:
        bring(host, cargo(root))
    assert "part3.bin" in str(caught.value)
    assert not (tree(host) / "README.md").exists()


def test_a_file_that_vanishes_before_it_is_packed_is_told(
    root: Path, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rsync, "here", lambda: None)
    what = cargo(root)
    (root / "verl/part3.bin").unlink()
    with pytest.raises(TreeError, match=r"part3\.bin"):
        bring(host, what)


@pytest.fixture
def small_disk(reachable: Machine) -> Iterator[Path]:
    """A file system of 4 MiB on the host."""
    place = reachable.home / f"small-{secrets.token_hex(3)}"
    place.mkdir()
    owner = f"uid={reachable.home.stat().st_uid},mode=0755"
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size=4m,{owner}", "tmpfs", str(place)], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.mark.parametrize("way", ["rsync", "tar"])
def test_a_disk_that_fills_up_leaves_the_old_tree_and_its_room(
    small_disk: Path, reachable: Machine, root: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    host = Host("loop", "loop", path=str(small_disk / "fork"))
    first = fork(root.parent / "first", {"verl/part1.bin": "old"})
    bring(host, cargo(first))
    before = contents(tree(host))

    def fill() -> None:
        reachable.do("sh", "-c", f"head -c 2500000 /dev/zero > {small_disk}/filler")

    with monkeypatch.context() as patch:
        if way == "tar":
            patch.setattr(rsync, "here", lambda: fill())
        else:
            before_rsync(patch, fill)
        with pytest.raises(RefusedError, match="disk is full") as caught:
            bring(host, cargo(root))
    assert caught.value.kind == "disk-full"
    assert contents(tree(host)) == before
    assert not (tree(host) / layout.INCOMING).exists()
    (small_disk / "filler").unlink()
    bring(host, cargo(root))
    assert (tree(host) / "verl/part7.bin").exists()


def test_a_disk_that_is_too_small_is_told_before_anything_is_sent(
    small_disk: Path, reachable: Machine, root: Path
) -> None:
    write(root, {"verl/large.bin": secrets.token_bytes(5 * MIB)})
    with pytest.raises(RefusedError, match=r"\d\.\d MB free, 7\.\d MB needed"):
        bring(Host("loop", "loop", path=str(small_disk / "fork")), cargo(root))


def test_a_folder_that_may_not_be_written_to_stops_all(reachable: Machine, root: Path, host: Host) -> None:
    bring(host, cargo(root))
    before = contents(tree(host))
    write(root, {"README.md": "new", "verl/part1.bin": "new"})
    reachable.do("chmod", "a-w", str(tree(host) / "verl"))
    with pytest.raises(RefusedError, match="Permission denied") as caught:
        bring(host, cargo(root))
    assert caught.value.kind == "permission"
    assert contents(tree(host)) == before


@pytest.mark.parametrize("way", ["rsync", "tar"])
def test_on_a_slow_line_what_is_sent_is_compressed(
    root: Path, host: Host, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(transfers, "SLOW", -1.0)
    commands: list[list[str]] = []
    real = subprocess.Popen

    def popen(command: list[str], **options: Any) -> subprocess.Popen[bytes]:
        commands.append(command)
        return real(command, **options)

    if way == "tar":
        monkeypatch.setattr(rsync, "here", lambda: None)
    else:
        monkeypatch.setattr(rsync.subprocess, "Popen", popen)
    assert bring(host, cargo(root))[1].way == way
    assert contents(tree(host)) == contents(root)
    assert way == "tar" or any("--compress" in command for command in commands)


def test_nothing_a_user_typed_is_on_a_command_line_of_the_host(reachable: Machine, root: Path) -> None:
    before = len(reachable.calls)
    bring(there(reachable, "a name that nobody else has"), cargo(root))
    calls = reachable.calls[before:]
    assert len(calls) == 2
    assert not any("nobody" in call for call in calls)
    assert " -- loop exec rsync --server -s" in calls[1]


def test_progress_ends_at_all_bytes(root: Path, host: Host) -> None:
    what, told = cargo(root), []
    with opened(host) as connection:
        send(connection, what, compare(connection, what), progress=lambda _, done, total: told.append((done, total)))
    assert told[-1] == (_size(what), _size(what))
    assert told == sorted(told)
    assert len(told) > 1


def _size(payload: Payload) -> int:
    return sum(item.size for item in payload.items.values())
