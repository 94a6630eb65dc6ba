"""Each way in which a host cannot be worked on has its own error. Real ssh against a real sshd."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from patcher.errors import CutError, HostError, UnreachableError
from patcher.remote import agent_program, connection
from patcher.remote.connection import connect
from patcher.remote.failures import ProcessEnd, connection_error
from patcher.remote.host import Host
from tests.machines import Machine

LOOP = Host("loop", "loop")


def fails(host: Host = LOOP, kind: type[HostError] = HostError) -> str:
    with pytest.raises(HostError) as caught, connect(host):
        pass
    assert isinstance(caught.value, kind)
    assert isinstance(caught.value, UnreachableError) is issubclass(kind, UnreachableError)
    assert caught.value.title
    assert caught.value.cause
    assert caught.value.advice
    return str(caught.value)


@contextlib.contextmanager
def holding(path: Path, text: str) -> Iterator[None]:
    """`path` with another text for a while."""
    before = path.read_text()
    path.write_text(text)
    try:
        yield
    finally:
        path.write_text(before)


@contextlib.contextmanager
def listening(answer: bytes | None) -> Iterator[int]:
    """A port where something answers, and no sshd; with None it stays silent."""
    server = socket.create_server(("127.0.0.1", 0))
    taken = []

    def serve() -> None:
        with contextlib.suppress(OSError):
            taken.append(server.accept()[0])
            if answer is not None:
                taken[0].sendall(answer)
                taken[0].shutdown(socket.SHUT_RDWR)

    thread = threading.Thread(target=serve)
    thread.start()
    yield server.getsockname()[1]
    with contextlib.suppress(OSError):
        server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join()
    for each in taken:
        each.close()


def test_a_name_that_is_none(reachable: Machine) -> None:
    told = fails(Host("no-such-host.invalid", "no-such-host.invalid"), UnreachableError)
    assert "no host of this name" in told


def test_nothing_listens(reachable: Machine) -> None:
    assert "refuses the connection" in fails(Host("loop", "loop", port=1), UnreachableError)


def test_something_else_listens(reachable: Machine) -> None:
    with listening(b"HTTP/1.1 400 Bad Request\r\n\r\n") as port:
        assert "hung up before the login" in fails(Host("loop", "loop", port=port), UnreachableError)


def test_a_host_that_does_not_answer(reachable: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "CONNECT_SECONDS", 1)
    with listening(None) as port:
        assert "does not answer" in fails(Host("loop", "loop", port=port), UnreachableError)


def test_a_wrong_key(reachable: Machine) -> None:
    config = reachable.config.read_text().replace("user_key", "no_key")
    with holding(reachable.config, config):
        told = fails()
    assert "does not let you in" in told
    assert "Permission denied" in told


def test_a_key_that_others_can_read(reachable: Machine) -> None:
    key = reachable.folder / "user_key"
    key.chmod(0o644)
    try:
        told = fails()
    finally:
        key.chmod(0o600)
    assert "bad permissions" in told
    assert "@@@" not in told


def test_a_host_key_that_is_not_known_is_never_accepted(reachable: Machine) -> None:
    known = reachable.folder / "known_hosts"
    with holding(known, ""):
        assert "not known yet" in fails()
        assert known.read_text() == ""


@pytest.mark.parametrize("config", ["", "  StrictHostKeyChecking no\n", "  StrictHostKeyChecking accept-new\n"])
def test_a_changed_host_key_stops_it_whatever_the_configuration_says(reachable: Machine, config: str) -> None:
    other = (reachable.folder / "user_key.pub").read_text().split()
    known = reachable.folder / "known_hosts"
    fingerprint = subprocess.run(
        ["ssh-keygen", "-lf", str(reachable.folder / "host_key.pub")], capture_output=True, text=True, check=True
    ).stdout.split()[1]
    with (
        holding(known, f"[127.0.0.1]:{reachable.port} {other[0]} {other[1]}\n"),
        holding(reachable.config, reachable.config.read_text() + config),
    ):
        told = fails()
    assert "its host key has changed" in told
    assert "Do not go on" in told
    assert fingerprint in told
    assert str(known) in told
    assert "ssh-keygen -f" in told
    assert f"[127.0.0.1]:{reachable.port}" in told


def test_a_configuration_that_ssh_does_not_accept(reachable: Machine) -> None:
    with holding(reachable.config, reachable.config.read_text() + "  Bogus yes\n"):
        told = fails()
    assert "does not accept its configuration" in told
    assert "line 9" in told


def test_a_jump_host_that_fails(reachable: Machine) -> None:
    with holding(reachable.config, reachable.config.read_text() + "  ProxyJump no-such-jump.invalid\n"):
        told = fails(kind=UnreachableError)
    assert "no-such-jump.invalid" in told


@pytest.mark.parametrize("shell", ["/usr/sbin/nologin", "/bin/false", "/bin/true"])
def test_a_login_shell_that_is_none(reachable: Machine, shell: str) -> None:
    subprocess.run(["usermod", "-s", shell, reachable.user], check=True)
    try:
        told = fails()
    finally:
        subprocess.run(["usermod", "-s", "/bin/bash", reachable.user], check=True)
    assert "login shell there does not run commands" in told


@contextlib.contextmanager
def bashrc(host: Machine, text: str) -> Iterator[None]:
    """A start-up file that runs at the beginning; the usual one stops early where there is no terminal."""
    with holding(host.home / ".bashrc", text):
        yield


def test_noise_of_the_login_shell_is_read_over(reachable: Machine) -> None:
    noise = 'printf "Welcome\\nuky-patch agent 1 \\n\\0{\\"body\\": 3}"; echo warning >&2; head -c 300000 /dev/zero\n'
    with bashrc(reachable, noise), connect(LOOP) as line:
        assert line.channel.ask("begin", path=None, name="x")["path"] == str(reachable.home / "x")


def test_a_start_up_file_that_ends_the_shell(reachable: Machine) -> None:
    with bashrc(reachable, "echo 'module: command not found' >&2; exit 3\n"):
        told = fails()
    assert "does not run commands" in told
    assert "module: command not found" in told


def test_a_start_up_file_that_waits(reachable: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "GREETING_SECONDS", 1.5)
    with bashrc(reachable, "echo 'mounting ...'; sleep 8\n"):
        told = fails(kind=UnreachableError)
    assert "nothing answers" in told


@pytest.fixture
def pythons(reachable: Machine, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets what the host looks for as Python."""

    def set_to(*names: str) -> None:
        monkeypatch.setattr(
            agent_program, "COMMAND", agent_program.COMMAND.replace(agent_program._PYTHONS, " ".join(names))
        )

    return set_to


def test_no_python(pythons: Any) -> None:
    pythons("/no/such/python3")
    told = fails()
    assert "no Python is found there" in told


def old_python(host: Machine) -> Path:
    path = host.home / "python36"
    path.write_text('#!/bin/sh\ncase "$1" in -V) echo Python 3.6.8;; *) exit 98;; esac\n')
    path.chmod(0o755)
    return path


def test_only_an_old_python(reachable: Machine, pythons: Any) -> None:
    pythons("/no/such/python3", str(old_python(reachable)))
    told = fails()
    assert "too old" in told
    assert "3.6.8" in told


def test_pythons_that_do_not_work_are_passed_over(reachable: Machine, pythons: Any) -> None:
    broken = reachable.home / "broken-python"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    pythons(str(old_python(reachable)), str(broken), str(reachable.home), "/usr/bin/python3")
    with connect(LOOP) as line:
        assert line.channel.ask("begin", path=None, name="x")


def test_the_python_that_is_named_is_tried_first_also_as_an_environment(reachable: Machine, pythons: Any) -> None:
    reachable.do("mkdir", "-p", "an env/bin")
    reachable.do("ln", "-sf", "/usr/bin/python3", "an env/bin/python")
    pythons("/no/such/python3")
    for name in ("an env/bin/python", "an env"):
        with connect(Host("loop", "loop", python=f"{reachable.home}/{name}")) as line:
            assert line.channel.ask("begin", path=None, name="x")


@pytest.mark.parametrize(
    "python", ["/x$(touch canary)", "/x;touch canary", "/x`touch canary`", "/$HOME", "/-c", "/a b'"]
)
def test_the_name_of_a_python_is_data(reachable: Machine, python: str) -> None:
    with connect(Host("loop", "loop", python=python)) as line:
        assert line.channel.ask("begin", path=None, name="x")
    assert not (reachable.home / "canary").exists()
    assert not any("canary" in call for call in reachable.calls)


def test_an_agent_that_cannot_start(reachable: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_program, "_sources", lambda: "SOURCES = {}\nPACKAGES = []\n")
    told = fails()
    assert "failed as it started" in told
    assert "ModuleNotFoundError" in told


def test_ssh_is_not_installed_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HostError, match=r"ssh: is not installed(?s:.*)openssh-client"), connect(LOOP):
        pass


def test_folders_with_long_paths_are_not_used_for_the_socket(
    reachable: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    long = tmp_path / ("x" * 90)
    long.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    monkeypatch.setenv("TMPDIR", "/no/such/folder")
    with connect(LOOP) as line:
        assert line.ssh
        assert not line.ssh.control.is_relative_to(long)
        assert line.ssh.control.exists()
    assert not line.ssh.control.parent.exists()
    monkeypatch.setattr(connection, "_USUAL", ())
    with pytest.raises(HostError, match=r"no folder for the socket(?s:.*)TMPDIR"), connect(LOOP):
        pass


def test_a_cut_is_told_from_a_failure(reachable: Machine) -> None:
    with connect(LOOP) as line:
        subprocess.run(["pkill", "-KILL", "-u", reachable.user, "sshd"], check=True)
        with pytest.raises(CutError, match="goes on where it stopped"):
            line.channel.ask("begin", path=None, name="x")


def test_secrets_in_what_ssh_says_are_not_shown(reachable: Machine) -> None:
    with bashrc(reachable, "echo 'login at https://me:hunter22@proxy/ failed' >&2; exit 3\n"):
        told = fails()
    assert "hunter22" not in told
    assert "https://me:***@proxy/" in told


def test_no_name_reaches_a_shell(reachable: Machine) -> None:
    """The last line of defence: a host that nobody has checked goes behind `--`, and ssh itself refuses it."""
    before = set(os.listdir("."))  # noqa: PTH208
    fails(Host("x", "-oProxyCommand=touch canary"))
    assert set(os.listdir(".")) == before  # noqa: PTH208


def test_a_line_that_is_cut_while_the_agents_program_is_sent() -> None:
    """It is no failure of the login, and what the Python there says of half a program is of no use to anybody."""
    said = "Traceback (most recent call last):\nzlib.error: Error -5: incomplete or truncated stream\n"
    error = connection_error(Host("site", "site"), ProcessEnd(255, said))
    assert isinstance(error, CutError)
    assert "only a part of it came" in str(error.cause)
