"""One connection, real sshd at the other end."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from patcher.remote.connection import connect
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
