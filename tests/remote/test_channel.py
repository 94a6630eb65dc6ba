"""Requests and answers, and what becomes of them when a side falls silent, dies or is killed. Real ssh, real sshd."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from patcher.errors import CutError
from patcher.remote import channel
from patcher.remote.connection import Connection, connect
from patcher.remote.host import HERE, Host
from tests.machines import Machine
from tests.remote.toys import alive, children, parent, toys, within

BOTH = pytest.mark.parametrize("host", [Host(HERE, HERE), Host("loop", "loop")], ids=["here", "ssh"])
LOOP = Host("loop", "loop")


@pytest.fixture(autouse=True)
def nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Whatever a test does: no process, zombie, socket or folder of a connection outlives it."""
    processes = children()
    with TemporaryDirectory(prefix="line-", dir="/tmp") as place:
        monkeypatch.setenv("XDG_RUNTIME_DIR", place)
        yield
        for _ in within(5):
            if children() <= processes:
                break
        assert children() <= processes
        assert not list(Path(place).iterdir())


def pid_of_ssh() -> int:
    (pid,) = children("ssh") - children("sshd")
    return pid


@BOTH
def test_large_bodies_and_odd_names_go_both_ways(
    reachable: Machine, monkeypatch: pytest.MonkeyPatch, host: Host
) -> None:
    toys(monkeypatch)
    body = os.urandom(1 << 20) * 12
    with connect(host) as connection:
        answer = connection.channel.ask("echo", body=body, name="a\udcff\n中")
        assert answer.body == body
        assert answer["args"]["name"] == "a\udcff\n中"
        assert connection.channel.trips == 1


@BOTH
def test_events_come_in_order_and_before_the_answer(
    reachable: Machine, monkeypatch: pytest.MonkeyPatch, host: Host
) -> None:
    toys(monkeypatch)
    heard: list[tuple[int, int]] = []
    with connect(host) as connection:
        connection.channel.ask(
            "chatter", count=300, size=5000, on_event=lambda event, body: heard.append((event["number"], len(body)))
        )
    assert heard == [(number, 5000) for number in range(300)]


@BOTH
def test_what_verbs_and_their_children_print_or_read_is_apart(
    reachable: Machine, monkeypatch: pytest.MonkeyPatch, host: Host
) -> None:
    toys(monkeypatch)
    with connect(host) as connection:
        assert connection.channel.ask("noise")["read"] == ""
        assert connection.channel.ask("echo", a=1)["args"] == {"a": 1}


@BOTH
def test_a_bug_of_the_agent_keeps_its_traceback_and_the_connection(
    reachable: Machine, monkeypatch: pytest.MonkeyPatch, host: Host
) -> None:
    toys(monkeypatch)
    with connect(host) as connection:
        with pytest.raises(RuntimeError, match=r"(?s)raise ZeroDivisionError.*a bug"):
            connection.channel.ask("bug")
        assert connection.channel.ask("echo")


@BOTH
@pytest.mark.parametrize("verb", ["die", "half"])
def test_an_agent_that_dies_within_a_verb_is_a_cut(
    reachable: Machine, monkeypatch: pytest.MonkeyPatch, host: Host, verb: str
) -> None:
    toys(monkeypatch)
    with connect(host) as connection:
        begun = time.monotonic()
        with pytest.raises(CutError) as caught:
            connection.channel.ask(verb)
        assert time.monotonic() - begun < 3
        with pytest.raises(CutError):
            connection.channel.ask("echo")
    if verb == "die":
        assert "SIGKILL" in str(caught.value)


def test_names_are_utf8_whatever_the_locale(reachable: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    toys(monkeypatch)
    monkeypatch.setenv("LC_ALL", "C")
    for host in (LOOP, Host(HERE, HERE)):
        with connect(host) as connection:
            assert connection.channel.ask("process")["locale"] == "中".encode().hex()


def stopped(connection: Connection, pid: int) -> float:
    """Stop a process for good, ask, and give the seconds until the cut was noticed."""
    os.kill(pid, signal.SIGSTOP)
    begun = time.monotonic()
    with pytest.raises(CutError, match="cut"):
        connection.channel.ask("echo")
    return time.monotonic() - begun


@BOTH
def test_an_agent_that_is_busy_is_waited_for_and_one_that_sleeps_is_not(
    reachable: Machine, monkeypatch: pytest.MonkeyPatch, host: Host
) -> None:
    toys(monkeypatch, BEAT=0.3)
    monkeypatch.setattr(channel, "SILENT_SECONDS", 1.5)
    with connect(host) as connection:
        connection.channel.ask("nap", seconds=3)
        pid = connection.channel.ask("process")["pid"]
        assert stopped(connection, pid) < 3
        begun = time.monotonic()
    assert time.monotonic() - begun < 3
    os.kill(pid, signal.SIGKILL) if alive(pid) else None


@pytest.mark.hosts
@pytest.mark.parametrize("which", ["agent", "sshd"])
def test_a_host_that_falls_asleep_is_noticed_in_time(
    reachable: Machine, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    toys(monkeypatch)
    with connect(LOOP) as connection:
        pid = connection.channel.ask("process")["pid"]
        stop = parent(parent(pid)) if which == "sshd" else pid
        seconds = stopped(connection, stop)
    for each in (pid, stop):
        if alive(each):
            os.kill(each, signal.SIGKILL)
    assert 10 < seconds < 23


def test_a_large_body_to_a_sleeping_agent_ends_too(reachable: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    toys(monkeypatch)
    monkeypatch.setattr(channel, "SILENT_SECONDS", 1.5)
    with connect(LOOP) as connection:
        pid = connection.channel.ask("process")["pid"]
        os.kill(pid, signal.SIGSTOP)
        with pytest.raises(CutError):
            connection.channel.ask("echo", body=b"x" * (30 << 20))
    os.kill(pid, signal.SIGKILL)


def test_the_agent_finishes_what_it_does_when_the_line_is_cut(
    reachable: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    toys(monkeypatch)
    mark = reachable.home / "finished"
    with connect(LOOP) as connection:
        pid = connection.channel.ask("process")["pid"]
        ssh = pid_of_ssh()
        with pytest.raises(CutError):
            _cut_after(0.5, ssh, lambda: connection.channel.ask("nap", seconds=2, mark=str(mark)))
        assert not mark.exists()
        assert alive(pid)
    for _ in within(6):
        if mark.exists() and not alive(pid):
            break
    assert mark.exists()
    assert not alive(pid)
    mark.unlink()


def _cut_after(seconds: float, pid: int, work: Any) -> None:
    import threading

    timer = threading.Timer(seconds, os.kill, (pid, signal.SIGKILL))
    timer.start()
    try:
        work()
    finally:
        timer.join()


@pytest.mark.parametrize("verb", ["nap", "chatter"])
def test_an_orphan_ends_by_itself_even_where_nobody_reads_it(
    reachable: Machine, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    toys(monkeypatch, SILENCE=2.0)
    monkeypatch.setattr(channel, "SILENT_SECONDS", 1.0)
    with connect(LOOP) as connection:
        pid = connection.channel.ask("process")["pid"]
        ssh = pid_of_ssh()
        os.kill(ssh, signal.SIGSTOP)
        with pytest.raises(CutError):
            connection.channel.ask(verb, seconds=0.1, count=10**6, size=10**6)
        for _ in within(8):
            if not alive(pid):
                break
        assert not alive(pid)
        os.kill(ssh, signal.SIGKILL)


@BOTH
def test_ctrl_c_ends_at_once(reachable: Machine, monkeypatch: pytest.MonkeyPatch, host: Host) -> None:
    toys(monkeypatch)
    begun = time.monotonic()

    def interrupt(event: Mapping[str, Any], body: bytes) -> None:
        raise KeyboardInterrupt

    pids = []

    def work() -> None:
        with connect(host) as connection:
            pids.append(connection.channel.ask("process")["pid"])
            connection.channel.ask("chatter", count=1000, size=100_000, on_event=interrupt)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert time.monotonic() - begun < 5
    for _ in within(3):
        if not alive(pids[0]):
            break
    assert not alive(pids[0])


def test_an_answer_that_was_interrupted_does_not_disturb_the_next(
    reachable: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    toys(monkeypatch)

    def interrupt(event: Mapping[str, Any], body: bytes) -> None:
        raise KeyboardInterrupt

    with connect(LOOP) as connection:
        with pytest.raises(KeyboardInterrupt):
            connection.channel.ask("chatter", count=20, size=300_000, on_event=interrupt)
        assert connection.channel.ask("echo", a=2)["args"] == {"a": 2}


def test_a_line_cut_while_idle_is_told_at_the_next_request(reachable: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    toys(monkeypatch)
    with connect(LOOP) as connection:
        os.kill(pid_of_ssh(), signal.SIGKILL)
        with pytest.raises(CutError):
            connection.channel.ask("echo")


def test_a_connection_of_the_users_own_is_not_touched(reachable: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    toys(monkeypatch)
    before = reachable.config.read_text()
    own = reachable.folder / "own"
    reachable.config.write_text(
        f"{before}  ControlMaster auto\n  ControlPath {own}\n  ControlPersist 60\n  RemoteCommand ls\n"
        "  RequestTTY force\n  LocalForward 1 localhost:1\n  LogLevel DEBUG3\n"
    )
    own.write_text("something that is no socket")
    try:
        with connect(LOOP) as connection:
            assert connection.channel.ask("echo", a=1)["args"] == {"a": 1}
    finally:
        reachable.config.write_text(before)
    assert own.read_text() == "something that is no socket"
