"""Real verl, planned for the versions of another user's environment, sent there, proven there, and reverted there."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from patcher.migrate.payload import lay_groundwork, plan_payload
from patcher.migrate.transfer import compare, send
from patcher.migrate.verify import verify_payload
from patcher.packages.releases import sources
from patcher.remote.connection import connect
from patcher.remote.host import Host
from patcher.remote.survey import survey_host
from patcher.remote.tree_folder import open_tree_folder
from patcher.session.session import Session
from tests import pythons
from tests.lanes import one_in
from tests.machines import Machine
from tests.migrate.toys import contents, git
from tests.packages.venvs import Venv

VERSIONS = {"vllm": "0.20.2", "torch": "2.11.0", "transformers": "4.57.6", "triton": "3.6.0", "ray": "2.49.0"}


def uky(root: Path, versions: Mapping[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    """The command, with these versions installed as far as it knows."""
    assumed = [word for name, version in versions.items() for word in ("--assume", f"{name}=={version}")]
    command = [sys.executable, "-m", "patcher", "--root", str(root), *assumed, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def environment(machine: Machine) -> None:
    """Make an environment to train with in the user's home, as far as its files tell."""
    prefix = machine.home / "training"
    if not prefix.exists():
        made = Venv(prefix)
        for name, version in VERSIONS.items():
            made.install(name, version)
        subprocess.run(["chown", "-R", machine.user, str(prefix)], check=True)


@pytest.mark.network
@pytest.mark.parametrize("release", one_in(2, ["0.6.1", "0.8.0"]))
def test_verl_arrives_with_the_records_of_the_host(release: str, reachable: Machine, tmp_path: Path) -> None:
    root = tmp_path / "fork"
    shutil.copytree(sources("verl", release) / "verl", root / "verl")
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message=all")
    pristine = contents(root)
    assert uky(root, {**VERSIONS, "vllm": "0.11.0"}, "apply").returncode in (0, 1)
    mine = contents(root)

    environment(reachable)
    host = Host("loop", "loop", path=f"~/cargo-{release}", python="training")
    with connect(host) as connection:
        open_tree_folder(connection, "fork", "migrate")
        cargo = plan_payload(Session(root), lay_groundwork(Session(root)), survey_host(connection, host), connection)
        assert not cargo.result.failed
        assert cargo.environment.version("vllm") == "0.20.2"
        assert cargo.environment.version("verl") == release
        difference = compare(connection, cargo)
        send(connection, cargo, difference)
        checks = verify_payload(connection, cargo)
    assert {check.status for check in checks} == {"ok"}
    assert any(check.name.startswith("record ") for check in checks)
    assert contents(root) == mine

    there = reachable.home / f"cargo-{release}"
    status = uky(there, VERSIONS, "status")
    assert status.returncode == 0, status.stdout + status.stderr
    expected = {outcome.id for outcome in cargo.result.plan.outcomes if outcome.kind == "applied"}
    assert expected
    assert all(name in status.stdout for name in expected)
    assert uky(there, VERSIONS, "verify", "--level", "markers").returncode == 0
    done = uky(there, VERSIONS, "revert")
    assert done.returncode == 0, done.stdout + done.stderr
    assert contents(there) == pristine


def test_an_old_python_surveys_and_proves(reachable: Machine, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = Path("/tmp") / f"uky-probe-{reachable.user}"
    folder.mkdir(mode=0o755, exist_ok=True)
    other = pythons.another(folder)
    if other is None:
        pytest.skip("no other Python here")
    root = tmp_path_factory.mktemp("old") / "fork"
    (root / "verl").mkdir(parents=True)
    (root / "verl/__init__.py").write_text("")
    (root / "verl/version").mkdir()
    (root / "verl/version/version").write_text("0.1.0\n")
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    host = Host("loop", "loop", path="~/old-python", python=str(other))
    try:
        with connect(host) as connection:
            open_tree_folder(connection, "fork", "migrate")
            found = survey_host(connection, host)
            cargo = plan_payload(Session(root), lay_groundwork(Session(root)), found, connection)
            send(connection, cargo, compare(connection, cargo))
            checks = verify_payload(connection, cargo)
            package = connection.channel.ask("sources", package=str(reachable.home / "old-python/verl"), known=None)
    finally:
        shutil.rmtree(folder)
    assert found.interpreter is not None
    assert found.agent_python == found.interpreter.version
    assert found.agent_python != platform.python_version()
    assert [check.status for check in checks if check.name == "files"] == ["ok"]
    assert package.body
