"""What the tests of migrations stand on: lines that fail as they are told to, and hosts in namespaces."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from patcher.errors import CutError, HostError
from patcher.remote.connection import connect
from patcher.remote.host import Host
from tests import machines
from tests.machines import Machine
from tests.remote import cutting, namespaces
from tests.remote.cutting import Fault, Line


@pytest.fixture
def line(reachable: Machine) -> Iterator[Line]:
    with cutting.line(reachable, "line") as made:
        yield made


def greet(name: str) -> str:
    with connect(Host(name, name)) as connection:
        return str(connection.channel.ask("survey")["hostname"])


def test_a_line_carries_and_counts_both_ways(line: Line) -> None:
    assert greet("line")
    assert line.connections == 1
    assert line.up > 5_000
    assert line.down > 1_000


def test_a_line_is_cut_at_a_byte(line: Line) -> None:
    greet("line")
    whole = line.total
    line.set(Fault(after=whole // 4))
    with pytest.raises(HostError):
        greet("line")
    assert line.total == whole // 4
    line.set(Fault(after=whole // 4, times=1))
    with pytest.raises(HostError):
        greet("line")
    assert greet("line")


def test_a_line_is_cut_after_a_while(line: Line) -> None:
    with connect(Host("line", "line")) as connection:
        connection.channel.ask("survey")
        line.drop()
        with pytest.raises(CutError):
            connection.channel.ask("survey")


def test_a_slow_line_is_slow(line: Line) -> None:
    started = time.monotonic()
    greet("line")
    usual = time.monotonic() - started
    line.set(Fault(latency=0.1))
    started = time.monotonic()
    greet("line")
    assert time.monotonic() - started > usual + 0.5


def test_a_host_may_lack_what_others_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loop: Machine) -> None:
    hidden = ["--bind /dev/null /usr/bin/rsync", "-t tmpfs -o size=1m,mode=777 tmpfs /mnt"]
    with machines.machine(tmp_path / "bare", "bare", mounts=hidden) as bare:
        assert bare.do("sh", "-c", "command -v rsync", check=False) == ""
        bare.do("touch", "/mnt/there")
        assert bare.sees(Path("/mnt/there")).exists()
    assert loop.do("sh", "-c", "command -v rsync")


@pytest.mark.hosts
def test_three_hosts_in_namespaces(
    fleet: tuple[Machine, ...], other_python: Path | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{machines.joined(tmp_path, fleet)}:{os.environ['PATH']}")
    homes, versions = set(), []
    for host in fleet:
        with connect(Host(host.name, host.name)) as connection:
            told = connection.channel.ask("survey").values
            homes.add(told["home"])
        done = subprocess.run(["ssh", host.name, "python3 -V"], capture_output=True, text=True, check=True)
        versions.append(done.stdout)
    assert homes == {str(host.home) for host in fleet}
    assert len({host.address for host in fleet}) == 3
    assert versions[0] != versions[1] or other_python is None


@pytest.mark.hosts
def test_what_a_killed_run_has_left_goes(tmp_path: Path) -> None:
    if reason := namespaces.why_not():
        pytest.skip(reason)
    program = (
        "import os, pathlib, sys; from tests.remote import namespaces\n"
        f"with namespaces.fleet(pathlib.Path({str(tmp_path)!r}), [None]) as (host,):\n"
        "    print(host.user, flush=True); os.kill(os.getpid(), 9)\n"
    )
    with (tmp_path / "said").open("w") as said:  # no pipe: sshd outlives the process and would hold it open
        subprocess.run([sys.executable, "-c", program], stdout=said, check=False)
    user = (tmp_path / "said").read_text().strip()
    assert user in Path("/etc/passwd").read_text()
    namespaces.sweep()
    assert user not in Path("/etc/passwd").read_text()
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    assert user[3:-1] not in listed
