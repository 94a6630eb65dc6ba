"""One connection, real sshd at the other end."""

from __future__ import annotations

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
