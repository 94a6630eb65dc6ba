"""A container as the host: its client starts the agent, files go over the connection, and jobs are the container's."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from patcher.remote.connection import connect
from patcher.remote.host import Host
from patcher.remote.survey import survey_host
from tests import containers
from tests.conftest import require
from tests.containers import Container
from tests.machines import Machine
from tests.migrate import moving
from tests.migrate.conftest import copied
from tests.migrate.cuts import WORDS
from tests.migrate.moving import Mover

pytestmark = [pytest.mark.network, pytest.mark.hosts]


@pytest.fixture(scope="module")
def container() -> Iterator[Container]:
    require(containers.why_not())
    with containers.container() as made:
        moving.packages(made)
        yield made


@pytest.fixture
def mover(container: Container, templates: Callable[[bool], Path], tmp_path: Path) -> Mover:
    """A small fork that names the container as `pod`, and is trusted."""
    found = Mover(copied(templates(True), tmp_path), tmp_path / "state", tmp_path / "bin")
    words = f'via = {json.dumps(container.via)}\npython = "~/venv"\nscript = "job.sh"\n'
    (found.tree / "uky-patch.toml").write_text(f"[hosts.pod]\n{words}")
    (found.tree / "job.sh").write_text("for n in 1 2 3 4 5 6; do echo step:$n - actor/loss:0.1; sleep 1; done\n")
    (found.tree / "long.sh").write_text("sleep 300\n")
    (found.tree / "large.bin").write_bytes(os.urandom(9_000_000))
    return found


def clients(container: Container) -> list[int]:
    """The processes of this machine that are podman's client at work for us."""
    done = subprocess.run(["pgrep", "-f", f"^podman --root {container.folder}/"], check=False, capture_output=True)
    return [int(pid) for pid in done.stdout.split()]


def test_a_tree_that_is_not_trusted_starts_no_client(mover: Mover) -> None:
    told = mover.migrate("pod")
    assert told.code == 2, told.text
    assert "uky-patch trust" in told.json["error"]["advice"]


def test_the_tree_and_its_job_are_the_containers(container: Container, mover: Mover) -> None:
    mover.run("trust")
    told = mover.migrate("pod", "--until", "verify")
    assert told.code == 0, told.text
    there = container.sees(container.home / mover.tree.name)
    moving.arrived(mover.tree, there)
    assert "(tar)" in told.steps["transfer"]["detail"]
    before = moving.exact(there / "verl")
    told = mover.migrate("pod", "--until", "verify")
    assert "nothing to send" in told.steps["transfer"]["detail"]
    assert moving.exact(there / "verl") == before

    job = mover.start("run", "debug", "--host", "pod", fmt="text")
    assert job.stderr is not None
    while "step 1" not in job.stderr.readline():
        assert job.poll() is None
    for pid in clients(container):
        os.kill(pid, signal.SIGKILL)
    out, err = job.communicate(timeout=60)
    assert job.returncode == 0, out + err
    assert "the connection was cut" in out + err
    logs = mover.run("job", "logs", "pod", "--lines", "2")
    assert logs.json["text"] == "step:5 - actor/loss:0.1\nstep:6 - actor/loss:0.1\n"

    again = mover.start("run", "debug", "--host", "pod", "--script", "long.sh")
    while mover.run("job", "status", "pod").json["job"]["state"] != "running":
        time.sleep(0.1)
    assert mover.run("job", "stop", "pod").code == 0
    again.communicate(timeout=60)
    assert mover.run("job", "status", "pod").json["job"]["verdict"] == "stopped"

    edited = there / "verl/utils/npu_utils.py"
    edited.write_text(edited.read_text() + "# edited there\n")
    assert mover.run("diff", "pod").code == 1
    assert mover.run("pull", "pod").code == 0
    assert (mover.tree / "verl/utils/npu_utils.py").read_text().endswith("# edited there\n")
    assert mover.run("prune", "pod", "--yes").code == 0


def test_a_client_that_is_killed_leaves_the_old_tree_or_the_new(container: Container, mover: Mover) -> None:
    """The same command goes on with a new client, once the agent in the container knows that it was left."""
    mover.run("trust")
    there = container.sees(container.home / mover.tree.name)
    assert mover.migrate("pod", *WORDS).code == 0
    for number in range(2):
        old = moving.shape(there)
        (mover.tree / "large.bin").write_bytes(os.urandom(9_000_000))
        (mover.tree / "README.md").write_text(f"# Round {number}\n")
        moved = mover.start("migrate", "pod", *WORDS)
        while moved.poll() is None and not (there / ".uky-patch/host/incoming/large.bin").exists():
            time.sleep(0.005)
        time.sleep(0.05 * number)
        for pid in clients(container):
            os.kill(pid, signal.SIGKILL)
        seen = moving.shape(there)
        out, err = moved.communicate(timeout=60)
        assert moved.returncode == 0, out + err
        new = moving.shape(there)
        # The agent may be putting the files in place at that moment: each is the old one or the new one.
        assert all(seen.get(path) in (old.get(path), new.get(path)) for path in {*old, *new}), moving.differing(
            old, seen
        )
        assert (there / "README.md").read_text() == f"# Round {number}\n"
        assert (there / "large.bin").read_bytes() == (mover.tree / "large.bin").read_bytes()


def test_what_is_wrong_is_told_with_a_command_to_try(container: Container, mover: Mover) -> None:
    """No such container, none that runs, no such client."""
    missing = [*container.podman, "exec", "-i", "nowhere"]
    created = subprocess.run(
        [*container.podman, "create", "--name", "asleep", "--network", "none", "--rootfs", str(container.root), "true"],
        check=True,
        capture_output=True,
    )
    assert created.stdout
    asleep = [*container.podman, "exec", "-i", "asleep"]
    hosts = {"missing": missing, "asleep": asleep, "unknown": ["no-such-client", "exec"]}
    text = "".join(f"[hosts.{name}]\nvia = {json.dumps(via)}\n" for name, via in hosts.items())
    (mover.tree / "uky-patch.toml").write_text(text)
    mover.run("trust")
    for name, said in {"missing": "nowhere", "asleep": "running", "unknown": "not installed"}.items():
        told = mover.run("job", "logs", name)
        assert told.code == 5, told.text
        error = told.json["error"]
        assert said in error["title"] + error["cause"], told.text
        assert name == "unknown" or f"exec -i {hosts[name][-1]} echo ok" in error["advice"], told.text


def test_a_container_on_a_host_of_ssh(host: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client runs there, and gets each word as it was written: no shell reads any of them."""
    words = ("exec", "-i", "a b", "$(touch read-by-a-shell)", "'", "*", "")
    client = '#!/bin/sh\nfor n in 1 2 3 4 5 6 7; do printf "%s\\n" "$1" >> words; shift; done\nexec "$@"\n'
    host.do("sh", "-c", 'printf "%s" "$0" > client && chmod +x client', client)
    monkeypatch.setenv("PATH", f"{host.shims}:{os.environ['PATH']}")
    with connect(Host("inner", host.name, via=(f"{host.home}/client", *words))) as connection:
        assert connection.ssh is None
        assert survey_host(connection, connection.host).user == host.user
    assert host.do("cat", "words").splitlines() == list(words)
    assert "read-by-a-shell" not in host.do("ls", "-a").split()
