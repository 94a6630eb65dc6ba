"""Requests that a compute node answers, with a stand-in for srun: an agent that it starts on this machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from patcher.remote import channel
from patcher.remote.channel import Answer, RefusedError
from patcher.remote.compute_node import ask_where_it_trains
from patcher.remote.connection import connect
from patcher.remote.host import HERE, Host
from patcher.remote.slurm import Slurm
from patcher.remote.tree_folder import open_tree_folder
from tests.profiles.hosts import survey
from tests.remote.toys import toys

AT_ONCE = 'while [[ $1 == --* ]]; do shift; done; exec "$@"'
QUEUED = "echo 'srun: job 7 queued and waiting for resources' >&2\nsleep 2.5\n"
SHOWN = "JobId=7 JobName=x JobState=PENDING Reason=Priority ExitCode=0:0 NodeList=(null)"
Ask = Callable[..., Answer]


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """A function that asks through a stand-in for srun whose script it is given."""
    monkeypatch.setattr(channel, "BEAT", 0.2)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    toys(monkeypatch, BEAT=0.2, SILENCE=1.5)
    host = Host(HERE, HERE, path=str(tmp_path / "fork"), slurm=Slurm(partition="h100", sbatch=("--requeue",)))

    def asked(srun: str, verb: str, told: list[object] | None = None, **args: object) -> Answer:
        for name, script in (("srun", f'echo "$*" >"$0.said"\n{srun}'), ("scontrol", f"echo '{SHOWN}'")):
            (tmp_path / name).write_text(f"#!/bin/bash\n{script}\n")
            (tmp_path / name).chmod(0o755)
        heard = [] if told is None else told
        with connect(host) as connection:
            open_tree_folder(connection, "fork", "a test")
            return ask_where_it_trains(
                connection,
                host,
                survey(python=sys.executable),
                verb,
                args,
                minutes=7,
                on_event=lambda event, body: heard.append((event["number"], body)),
                on_queue=lambda sentence: heard.append(str(sentence)),
            )

    return asked


def test_answer_and_events_are_passed_on(ask: Ask, tmp_path: Path) -> None:
    told: list[object] = []
    assert ask(f"echo a prolog prints\n{AT_ONCE}", "chatter", told, count=3, size=5).values == {}
    assert told == [(number, b"xxxxx") for number in range(3)]
    said = (tmp_path / "srun.said").read_text()
    assert "--time=7 --partition=h100 " in said
    assert "--requeue" not in said


def test_why_a_node_is_waited_for_is_told_once(ask: Ask) -> None:
    told: list[object] = []
    ask(QUEUED + AT_ONCE, "chatter", told, count=1, size=1)
    assert told == ["waits in Slurm's queue, job 7: Priority", (0, b"x")]


def test_a_check_may_take_longer_than_the_silence_after_which_nobody_is_there(ask: Ask) -> None:
    assert ask(AT_ONCE, "attend", seconds=3).values == {"gone": False}


@pytest.mark.parametrize(
    ("srun", "kind", "told"),
    [
        ("echo 'srun: error: invalid partition specified: h100' >&2; exit 1", "slurm", "invalid partition specified"),
        ("exit 3", "slurm", "exit code 3"),
        ("mv fork.seen elsewhere; " + AT_ONCE, "shared", "storage that login and compute nodes share"),
    ],
)
def test_no_node_and_one_that_does_not_see_the_tree(ask: Ask, tmp_path: Path, srun: str, kind: str, told: str) -> None:
    with pytest.raises(RefusedError) as refused:
        ask(srun.replace("fork.seen", str(tmp_path / "fork")).replace("elsewhere", str(tmp_path / "gone")), "echo")
    assert refused.value.kind == kind
    assert told in str(refused.value.cause)
