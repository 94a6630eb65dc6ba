"""A host is away for a while: whoever follows its job waits, says so, goes on at the same byte, and has an end."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from patcher.errors import CutError, HostError, LoginError, UnreachableError
from patcher.jobs import follow_log
from patcher.jobs.follow_log import LastingConnection
from patcher.remote.host import Host
from tests.jobs.conftest import Site
from tests.jobs.test_running import log_of
from tests.machines import Machine
from tests.migrate.conftest import host, site, templates
from tests.migrate.moving import Site as Place

__all__ = ["host", "site", "templates"]

NUMBERS = """
echo 'Training Progress:   0%| | 0/1 [00:00<?, ?it/s]'
number=0
until [ -e enough ]; do number=$((number + 1)); echo "line $number"; sleep 0.05; done
echo 'step:1 - a:1 - b:2'
"""
"""A job that says something all the time, until there is a file `enough`."""
REACHED = "loop: reached again\n"


@dataclass
class Follower:
    """A command that follows the job, in a process of its own."""

    process: subprocess.Popen[str]
    output: Path
    """What it has printed so far."""

    def reads(self, within: float = 30) -> None:
        """Wait until it has printed some of the log, so that from now on a cut finds it following."""
        deadline = time.monotonic() + within
        while not self.output.stat().st_size and self.process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)

    def begins(self) -> None:
        """Wait until it follows: it has told a phase."""
        assert self.process.stderr is not None
        while (line := self.process.stderr.readline()) and "loop" not in line.split():
            pass

    def ends(self, within: float = 60) -> tuple[int, str, str]:
        try:
            _, err = self.process.communicate(timeout=within)
        finally:
            self.process.kill()
        return self.process.returncode, self.output.read_text(), err


Follow = Callable[..., Follower]


@pytest.fixture
def follow(there: Site, tmp_path: Path) -> Follow:
    """Start a command on the tree that is `there`, named as a user names it; it has connected when this returns."""
    tree = tmp_path / "mine"
    (tree / "verl").mkdir(parents=True)
    (tree / "verl/__init__.py").write_text("")

    def start(*words: str, patience: float = follow_log.PATIENCE) -> Follower:
        program = "from patcher.jobs import follow_log; import sys; follow_log.PATIENCE = float(sys.argv.pop(1))"
        program += "; from patcher.__main__ import main; main()"
        command = [sys.executable, "-c", program, str(patience), "--root", str(tree), *words, "loop"]
        env = {**os.environ, "LC_ALL": "C.UTF-8", "PYTHONPATH": str(Path(__file__).parents[2])}
        output = tmp_path / ("-".join(word for word in words if word.isalpha()) + ".out")
        with output.open("w") as file:
            process = subprocess.Popen(
                [*command, "--path", str(there.root)], stdout=file, stderr=subprocess.PIPE, text=True, env=env
            )
        return Follower(process, output)

    return start


def sessions(machine: Machine) -> int:
    """How many connections it has by now."""
    command = ["pgrep", "-c", "-u", machine.user, "^sshd"]
    return int(subprocess.run(command, capture_output=True, text=True).stdout)


def connected(machine: Machine, count: int) -> None:
    """Wait until so many followers are there and have begun to read."""
    deadline = time.monotonic() + 30
    while sessions(machine) < count and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1)


def away(machine: Machine, seconds: float) -> None:
    with machine.no_sshd():
        time.sleep(seconds)
    time.sleep(1)


def test_half_a_second_without_sshd(there: Site, reachable: Machine, follow: Follow) -> None:
    job = there.start(NUMBERS)
    there.link.close()
    attached, logs = follow("job", "attach"), follow("job", "logs", "--lines", "1000000", "-f")
    attached.begins()
    logs.reads()
    connected(reachable, 2)
    away(reachable, 0.5)
    there.write("enough", "")
    code, out, err = attached.ends()
    assert (code, out.split()[0]) == (0, "ok"), err
    assert "the job does not need this connection; trying for 30 min to reach it again" in err
    assert "reached again" in err
    assert "step 1 of 1" in err
    code, out, err = logs.ends()
    assert code == 0, err
    assert out == log_of(job).decode()
    assert err.count(REACHED) == 1


def test_a_host_that_does_not_come_back_is_left_with_the_command_to_go_on(
    there: Site, reachable: Machine, follow: Follow
) -> None:
    job = there.start(NUMBERS)
    there.link.close()
    attached = follow("job", "attach", patience=0.2)
    attached.begins()
    with reachable.no_sshd():
        code, out, err = attached.ends()
    assert (code, out) == (5, "")
    assert "error: loop: not reached again for 0 min\n" in err
    assert f"uky-patch job attach loop --path '{there.root}' --id {job.id}\n" in err
    there.write("enough", "")


@pytest.mark.hosts
def test_a_minute_without_sshd(there: Site, reachable: Machine, follow: Follow) -> None:
    job = there.start(NUMBERS)
    there.link.close()
    followers = {
        "attach": follow("job", "attach"),
        "logs": follow("job", "logs", "--lines", "1000000", "-f"),
        "watch": follow("watch"),
    }
    followers["attach"].begins()
    followers["logs"].reads()
    connected(reachable, 3)
    away(reachable, 60)
    deadline = time.monotonic() + 40
    while sessions(reachable) < 3 and time.monotonic() < deadline:
        time.sleep(0.2)
    there.write("enough", "")
    for name, follower in followers.items():
        code, out, err = follower.ends(within=90)
        assert code == 0, (name, err)
        assert err.count("reached again") == 1, (name, err)
        assert err.count("trying for") <= 3, (name, err)
        if name == "logs":
            assert out == log_of(job).decode()


@pytest.mark.hosts
def test_sshd_comes_and_goes(there: Site, reachable: Machine, follow: Follow) -> None:
    job = there.start(NUMBERS)
    there.link.close()
    logs = follow("job", "logs", "--lines", "1000000", "-f")
    logs.reads()
    for seconds in (0.1, 0.5, 1, 3, 0.2):
        away(reachable, seconds)
        time.sleep(2)
    there.write("enough", "")
    code, out, err = logs.ends(within=90)
    assert code == 0, err
    assert out == log_of(job).decode()


@pytest.mark.hosts
def test_a_migration_follows_its_job_through_it(site: Place) -> None:
    tree = site.mover.tree
    (tree / "mine.sh").write_text(NUMBERS)
    (tree / "uky-patch.toml").write_text('[hosts.site]\nscript = "mine.sh"\n')
    subprocess.run(["git", "add", "mine.sh", "uky-patch.toml"], cwd=tree, check=True)
    assert site.mover.migrate("site", "--until", "render").code == 0
    process = site.mover.start("migrate", "site", "--only", "job", "--share", fmt="text", hasty=False)
    log = site.there / ".uky-patch/host/jobs"
    deadline = time.monotonic() + 60
    while not list(log.glob("*/log")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(2)
    away(site.machine, 2)
    (site.there / "enough").write_text("")
    out, err = process.communicate(timeout=90)
    assert process.returncode == 0, out + err
    assert "reached again" in err
    assert len(list(log.iterdir())) == 1
    assert "what worked is kept in" in out


class Line:
    """What `LastingConnection` reaches: it fails as it is told to, and counts how often it was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *errors: HostError) -> None:
        monkeypatch.setattr(follow_log, "PAUSES", (0.01,))
        self.errors = list(errors)
        self.asked = 0
        self.told: list[str] = []
        self.connection: Any = SimpleNamespace(host=Host("loop", "loop"))
        self.lasting = LastingConnection(
            self.again, self.connection, lambda told: self.told.append(str(told)), back="attach it"
        )

    def again(self) -> Any:
        self.asked += 1
        if self.errors:
            raise self.errors.pop(0)
        return self.connection


def cut_once(seconds: float = 0.0) -> Callable[[Any], str]:
    calls: list[Any] = []

    def work(link: Any) -> str:
        calls.append(link)
        if len(calls) == 1:
            time.sleep(seconds)
            raise CutError("loop: the connection was cut")
        return "done"

    return work


def test_each_trouble_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = [UnreachableError("loop: it refuses the connection") for _ in range(5)]
    line = Line(monkeypatch, *refused, HostError("loop: no Python is found there"))
    assert line.lasting.do(cut_once()) == "done"
    assert line.asked == 7
    assert [told.partition(";")[0] for told in line.told] == [
        "loop: the connection was cut",
        "loop: it refuses the connection",
        "loop: no Python is found there",
        "loop: reached again",
    ]


def test_a_login_that_is_refused_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    line = Line(monkeypatch, UnreachableError("x"), LoginError("loop: its host key has changed"))
    with pytest.raises(LoginError, match="key has changed"):
        line.lasting.do(cut_once())


def test_patience_is_counted_from_the_loss_and_not_from_the_last_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that says nothing for an hour is no host that was away for an hour."""
    monkeypatch.setattr(follow_log, "PATIENCE", 0.2)
    monkeypatch.setattr(follow_log, "STEADY", 0.1)
    line = Line(monkeypatch, UnreachableError("x"), UnreachableError("x"))
    assert line.lasting.do(cut_once(0.4)) == "done"


def test_patience_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow_log, "PATIENCE", 0.1)
    line = Line(monkeypatch, *(UnreachableError("loop: it refuses the connection") for _ in range(1000)))
    with pytest.raises(UnreachableError, match="attach it") as caught:
        line.lasting.do(cut_once())
    assert str(caught.value.cause) == "loop: it refuses the connection"
