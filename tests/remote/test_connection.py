"""One connection, real sshd at the other end."""

from __future__ import annotations

import contextlib
import os
import pty
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from patcher.remote.connection import _lasting_socket, connect
from patcher.remote.host import HERE, Host
from tests.machines import Machine


def test_agent_answers_from_another_user_and_another_python(reachable: Machine) -> None:
    with connect(Host("loop", "loop")) as connection:
        told = connection.channel.ask("survey").values
    assert told["home"] == str(reachable.home)


def test_agent_runs_on_this_machine_without_ssh(reachable: Machine) -> None:
    before = len(reachable.calls)
    with connect(Host(HERE, HERE)) as connection:
        assert connection.channel.ask("survey")["hostname"]
    assert len(reachable.calls) == before


@pytest.fixture
def own(reachable: Machine, tmp_path: Path) -> Iterator[Path]:
    """The user's configuration of ssh has a host `shared`, whose connections are shared at this socket."""
    before = reachable.config.read_text()
    reachable.also("shared", reachable.address, reachable.port, options=[f"ControlPath {tmp_path / 'own'}"])
    yield tmp_path / "own"
    reachable.config.write_text(before)


def test_the_users_own_connection_is_used_where_one_is_open(reachable: Machine, own: Path) -> None:
    def logins() -> int:
        return (reachable.folder / "sshd.log").read_text().count("Accepted publickey")

    subprocess.run(["ssh", "-fN", "-M", "shared"], check=True)
    try:
        before = logins()
        with connect(Host("shared", "shared")) as connection:
            assert connection.channel.ask("survey")["home"] == str(reachable.home)
            assert connection.ssh is not None
            subprocess.run([*connection.ssh.shared_command(), "--", "shared", "true"], check=True)
        assert logins() == before
    finally:
        subprocess.run(["ssh", "-O", "exit", "shared"], check=True, capture_output=True)
    with connect(Host("shared", "shared")) as connection:
        assert connection.channel.ask("survey")["home"] == str(reachable.home)
    assert logins() == before + 1
    assert not own.exists()


def test_a_socket_that_nobody_listens_at_is_no_connection(reachable: Machine, own: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(own))
    with connect(Host("shared", "shared")) as connection:
        assert connection.channel.ask("survey")["home"] == str(reachable.home)


LOOKING = """
import sys
from patcher.remote.connection import connect
from patcher.remote.host import Host
with connect(Host("asked", "asked")) as connection:
    print("home:", connection.channel.ask("survey")["home"])
"""


def at_a_terminal(program: str, typed: str) -> str:
    """What a terminal shows of a program; whoever sits at it types that when they are asked for a passphrase."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-c", program])
    shown = b""
    with contextlib.suppress(OSError):  # The end of a terminal is an error.
        while piece := os.read(terminal, 4096):
            shown += piece
            if b"passphrase" in piece:
                os.write(terminal, f"{typed}\n".encode())
    os.close(terminal)
    os.waitpid(pid, 0)
    return shown.decode()


@pytest.fixture
def asked(reachable: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The host `asked`, for whose key ssh wants a passphrase, and the folder of the sockets."""
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "open sesame", "-f", str(key)], check=True)
    authorized = reachable.home / ".ssh/authorized_keys"
    known, configured = authorized.read_text(), reachable.config.read_text()
    authorized.write_text(known + key.with_suffix(".pub").read_text())
    reachable.also("asked", reachable.address, reachable.port, options=[f"IdentityFile {key}", "IdentityAgent none"])
    with TemporaryDirectory(dir="/tmp") as short:
        monkeypatch.setenv("XDG_RUNTIME_DIR", short)
        folder = Path(short, f"uky-patch-{os.getuid()}")
        yield folder
        for place in folder.glob("*"):
            command = ["ssh", "-O", "exit", "-o", f"ControlPath={place}", "asked"]
            subprocess.run(command, check=False, capture_output=True)
    authorized.write_text(known)
    reachable.config.write_text(configured)


def test_a_person_is_asked_once_for_several_commands(reachable: Machine, asked: Path) -> None:
    first = at_a_terminal(LOOKING, "open sesame")
    assert "passphrase" in first
    assert f"home: {reachable.home}" in first
    second = at_a_terminal(LOOKING, "never typed")
    assert "passphrase" not in second
    assert f"home: {reachable.home}" in second
    (socket_,) = asked.iterdir()
    assert asked.stat().st_mode & 0o077 == 0
    subprocess.run(["ssh", "-O", "exit", "-o", f"ControlPath={socket_}", "asked"], check=True, capture_output=True)
    assert "passphrase" in at_a_terminal(LOOKING, "open sesame"), "logged out"


def test_a_socket_of_a_connection_that_was_killed_is_in_nobodys_way(reachable: Machine, asked: Path) -> None:
    assert "home:" in at_a_terminal(LOOKING, "open sesame")
    (place,) = asked.iterdir()
    subprocess.run(["pkill", "-KILL", "-f", f"ssh: {place}|ControlPath={place}"], check=True)
    told = at_a_terminal(LOOKING, "open sesame")
    assert f"home: {reachable.home}" in told


def test_without_a_terminal_no_connection_outlives_its_command(reachable: Machine, asked: Path) -> None:
    with connect(Host("loop", "loop")) as connection:
        connection.channel.ask("survey")
    assert not asked.exists()


def test_a_folder_that_others_can_write_to_holds_no_socket(reachable: Machine, asked: Path) -> None:
    asked.mkdir(mode=0o777)
    asked.chmod(0o777)
    elsewhere = _lasting_socket(Host("asked", "asked"))
    assert elsewhere is not None
    assert elsewhere.parent != asked
    try:
        assert "home:" in at_a_terminal(LOOKING, "open sesame")
        assert list(asked.iterdir()) == []
    finally:
        command = ["ssh", "-O", "exit", "-o", f"ControlPath={elsewhere}", "asked"]
        subprocess.run(command, check=False, capture_output=True)
