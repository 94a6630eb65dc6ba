"""The folder for the tree: what is refused, what is carried as it stands, who may be there. Over ssh, and here."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from patcher.errors import HostError, UsageError
from patcher.remote.channel import RefusedError
from patcher.remote.connection import Connection, connect
from patcher.remote.host import HERE, Host
from patcher.remote.tree_folder import open_tree_folder
from tests.machines import Machine
from tests.remote.hostile import CARRIED, REFUSED
from tests.remote.toys import alive, toys, within


@pytest.fixture(params=["here", "ssh"])
def line(
    request: pytest.FixtureRequest, reachable: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Connection, Path]]:
    """A connection, and the home at its end."""
    monkeypatch.setenv("HOME", str(tmp_path / "home" / "me"))
    (tmp_path / "home" / "me").mkdir(parents=True)
    host = Host(HERE, HERE) if request.param == "here" else Host("loop", "loop")
    with connect(host) as connection:
        yield connection, (tmp_path / "home" / "me" if host.here else reachable.home)


def at(connection: Connection, path: str | None) -> Connection:
    from dataclasses import replace

    return replace(connection, host=replace(connection.host, path=path))


def snapshot(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*")}


def test_a_hostile_path_is_refused_and_nothing_is_made(line: tuple[Connection, Path]) -> None:
    connection, home = line
    before = snapshot(home)
    for path in (*REFUSED, str(home), str(home.parent), f"{home}/", f"{home}/../{home.name}"):
        for purpose in (None, "migrate"):
            with pytest.raises(UsageError) as caught:
                open_tree_folder(at(connection, path), "fork", purpose)
            assert caught.value.exit_code == 2, path
            assert caught.value.cause, path
    assert snapshot(home) == before


def test_an_odd_path_is_carried_as_it_stands(line: tuple[Connection, Path]) -> None:
    connection, home = line
    for name in CARRIED:
        for path in (name, f"~/{name}", f"{home}/{name}"):
            place = open_tree_folder(at(connection, path), "fork", "migrate")
            assert place.path == f"{home}/{name.rstrip('/')}", path
            assert Path(place.path, ".uky-patch/host/lock").exists(), path
    assert not list(home.rglob("canary"))
    assert not Path("canary").exists()


@pytest.mark.parametrize("name", ["verl", "x$(touch canary)", "-x", "名字", "a b"])
def test_the_default_is_a_folder_of_the_same_name_in_the_home(line: tuple[Connection, Path], name: str) -> None:
    connection, home = line
    assert open_tree_folder(connection, name, None).path == str(home / name)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/etc", "a\nb"])
def test_a_name_of_a_folder_is_one_plain_part(line: tuple[Connection, Path], name: str) -> None:
    with pytest.raises(UsageError):
        open_tree_folder(line[0], name, "migrate")


def test_looking_leaves_no_trace(line: tuple[Connection, Path]) -> None:
    connection, home = line
    before = snapshot(home)
    place = open_tree_folder(at(connection, "~/new/deep/fork"), "fork", None)
    assert (place.exists, place.empty, place.manifest, place.within, place.nested) == (False, True, False, None, ())
    assert snapshot(home) == before


def test_a_tree_that_may_only_be_read_can_be_looked_at(reachable: Machine) -> None:
    tree = reachable.home / "only-read"
    reachable.do("mkdir", "-p", f"{tree}/verl/version")
    reachable.do("touch", f"{tree}/verl/__init__.py")
    reachable.do("chmod", "555", str(tree))
    with connect(Host("loop", "loop")) as connection:
        assert open_tree_folder(at(connection, str(tree)), "x", None).tree
        with pytest.raises(RefusedError) as caught:
            open_tree_folder(at(connection, str(tree)), "x", "migrate")
    assert caught.value.kind == "unwritable"


def test_what_was_made_in_vain_goes_at_the_end(reachable: Machine) -> None:
    before = snapshot(reachable.home)
    kept = reachable.home / "line-kept"
    reachable.do("mkdir", str(kept))
    with connect(Host("loop", "loop", path="~/new/deep/fork")) as connection:
        place = open_tree_folder(connection, "fork", "migrate")
        host = Path(place.path) / ".uky-patch" / "host"
        assert host.stat().st_mode & 0o777 == 0o700
        open_tree_folder(at(connection, str(kept)), "fork", "migrate")
        assert not host.exists()
    assert snapshot(reachable.home) - before == {str(kept)}
    kept.rmdir()


def test_what_was_received_stays(reachable: Machine) -> None:
    with connect(Host("loop", "loop", path="~/line-stays")) as connection:
        place = open_tree_folder(connection, "fork", "migrate")
        reachable.do("touch", f"{place.path}/.uky-patch/host/manifest.json", f"{place.path}/setup.py")
    with connect(Host("loop", "loop", path="~/line-stays")) as connection:
        place = open_tree_folder(connection, "fork", None)
        assert (place.exists, place.empty, place.manifest, place.entries) == (
            True,
            False,
            True,
            (".uky-patch", "setup.py"),
        )
    shutil.rmtree(place.path)


def test_links_on_the_way_are_followed_before_it_is_judged(line: tuple[Connection, Path]) -> None:
    connection, home = line
    (home / "disk").mkdir(exist_ok=True)
    for name, goal in (("to-disk", home / "disk"), ("to-etc", Path("/etc")), ("to-home", home), ("gone", home / "no")):
        with contextlib.suppress(FileExistsError):
            (home / name).symlink_to(goal)
    shutil.chown(home / "disk", home.owner())
    try:
        assert open_tree_folder(at(connection, "to-disk/fork"), "x", "migrate").path == str(home / "disk" / "fork")
        assert open_tree_folder(at(connection, "to-disk"), "x", "migrate").path == str(home / "disk")
        for name in ("to-etc", "to-etc/x", "to-home"):
            with pytest.raises(UsageError):
                open_tree_folder(at(connection, name), "x", "migrate")
        with pytest.raises(RefusedError, match=r"symbolic link to .*no, which is not there"):
            open_tree_folder(at(connection, "gone/fork"), "x", "migrate")
    finally:
        for name in ("to-disk", "to-etc", "to-home", "gone"):
            (home / name).unlink()


def test_a_link_in_place_of_our_own_folder_is_not_followed(line: tuple[Connection, Path]) -> None:
    connection, home = line
    (home / "fork1").mkdir(exist_ok=True)
    (home / "aim").mkdir(exist_ok=True)
    (home / "fork1" / ".uky-patch").symlink_to(home / "aim")
    shutil.chown(home / "fork1", home.owner())
    with pytest.raises(RefusedError, match="symbolic link"):
        open_tree_folder(at(connection, "fork1"), "x", "migrate")
    assert not list((home / "aim").iterdir())
    shutil.rmtree(home / "fork1")


def test_a_file_or_a_folder_of_somebody_else_is_refused(reachable: Machine) -> None:
    reachable.do("touch", "a-file")
    with connect(Host("loop", "loop")) as connection:
        for path in ("a-file", "a-file/x"):
            with pytest.raises(UsageError, match="is a file"):
                open_tree_folder(at(connection, path), "x", "migrate")
        for purpose in (None, "migrate"):
            for path in ("/opt/x", f"{reachable.folder}", "/mnt/a/b"):
                with pytest.raises(RefusedError) as caught:
                    open_tree_folder(at(connection, path), "x", purpose)
                assert caught.value.kind == "unwritable", path
        with pytest.raises(RefusedError, match="File name too long"):
            open_tree_folder(at(connection, "x" * 300), "x", "migrate")


def test_fork_in_fork_is_told(line: tuple[Connection, Path]) -> None:
    connection, home = line
    for tree in ("outer", "outer/outer"):
        (home / tree / "verl").mkdir(parents=True, exist_ok=True)
        (home / tree / "verl" / "__init__.py").touch()
        shutil.chown(home / tree, home.owner())
    try:
        inner = open_tree_folder(at(connection, "outer/outer"), "x", None)
        assert (inner.within, inner.nested, inner.tree) == (str(home / "outer"), (), True)
        outer = open_tree_folder(at(connection, "outer"), "x", None)
        assert (outer.within, outer.nested) == (None, ("outer",))
        assert open_tree_folder(at(connection, "outer/new"), "x", None).within == str(home / "outer")
    finally:
        shutil.rmtree(home / "outer")


def test_a_second_migration_is_refused_and_told_who_is_there(reachable: Machine) -> None:
    host = Host("loop", "loop", path="~/line-two")
    with connect(host) as first, connect(host) as second:
        open_tree_folder(first, "x", "migrate to loop")
        with pytest.raises(RefusedError) as caught:
            open_tree_folder(second, "x", "migrate")
        assert caught.value.kind == "locked"
        assert "migrate to loop" in str(caught.value)
        assert open_tree_folder(second, "x", None).exists
    with connect(host) as third:
        assert not open_tree_folder(third, "x", "migrate").exists


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_one_that_has_lost_its_client_makes_way_once_it_is_done(
    reachable: Machine, monkeypatch: pytest.MonkeyPatch, how: signal.Signals
) -> None:
    toys(monkeypatch)
    host = Host("loop", "loop", path="~/line-orphan")
    with connect(host) as lost:
        open_tree_folder(lost, "x", "migrate")
        pid = lost.channel.ask("process")["pid"]
        sshd = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        session = int(Path(f"/proc/{sshd}/stat").read_text().rpartition(")")[2].split()[1])
        if how == signal.SIGKILL:
            os.kill(pid, signal.SIGSTOP)  # First: one that sees its line end has let go of the tree before it stops.
        os.kill(session, how)  # The network is gone, and the host has not noticed.
    with connect(host) as again:
        assert open_tree_folder(again, "x", "migrate").path.endswith("line-orphan")
    for _ in within(3):
        if not alive(pid):
            break
    assert not alive(pid)
    with contextlib.suppress(ProcessLookupError):
        os.kill(session, signal.SIGKILL)


def test_one_whose_client_was_killed_makes_way_for_the_next_run(reachable: Machine) -> None:
    program = (
        "import sys, time\nfrom patcher.remote.connection import connect\n"
        "from patcher.remote.tree_folder import open_tree_folder\n"
        "from patcher.remote.host import Host\n"
        "with connect(Host('loop', 'loop', path='~/line-killed')) as connection:\n"
        "    open_tree_folder(connection, 'x', 'migrate')\n    print('ready', flush=True)\n    time.sleep(60)\n"
    )
    first = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, start_new_session=True)
    assert first.stdout is not None
    assert first.stdout.readline() == b"ready\n"
    children = subprocess.run(
        ["pgrep", "-P", str(first.pid)], capture_output=True, text=True, check=True
    ).stdout.split()
    for child in children:
        os.kill(int(child), signal.SIGSTOP)  # Its connection stands, and nobody is there.
    first.kill()
    first.wait()
    first.stdout.close()
    with connect(Host("loop", "loop", path="~/line-killed")) as second:
        open_tree_folder(second, "x", "migrate")
    for child in children:
        os.kill(int(child), signal.SIGKILL)


def test_a_disk_without_locks_is_told(reachable: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    from patcher.remote import agent_program

    whole = agent_program._sources()
    monkeypatch.setattr(
        agent_program,
        "_sources",
        lambda: (
            whole + "import errno, fcntl, os\ndef flock(*_): raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))\n"
            "fcntl.flock = flock\n"
        ),
    )
    told = r"cannot be locked(?s:.*)No locks available(?s:.*)flock"
    host = Host("loop", "loop", path="~/line-nolock")
    with connect(host) as connection, pytest.raises(HostError, match=told):
        open_tree_folder(connection, "x", "migrate")
    assert not (reachable.home / "line-nolock").exists()
