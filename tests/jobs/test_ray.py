"""Stopping a job that runs Ray takes its Ray, and leaves another Ray of the same user alone."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tarfile
from pathlib import Path

import pytest

from patcher import jobs
from patcher.cli.app import run
from patcher.jobs import Job
from patcher.jobs.cleaning import list_leftovers, take_away
from tests.jobs.conftest import Site
from tests.jobs.test_running import alive, log_of, wait_for
from tests.machines import REQUIRED
from tests.runtime.environment import interpreter

PROGRAM = """
import os, sys, time
import ray
ray.init(num_cpus=1, include_dashboard=False, object_store_memory=80_000_000, _temp_dir=sys.argv[1])
@ray.remote
class Actor:
    def where(self):
        return os.getpid(), os.environ.get("UKY_PATCH_JOB")
actor = Actor.remote()
print("actor", *ray.get(actor.where.remote()), "at", ray.get_runtime_context().gcs_address, flush=True)
time.sleep(600)
"""


def children(pid: int) -> list[int]:
    found = []
    for path in Path("/proc").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # It may end while it is looked at.
            if path.name.isdigit() and alive(int(path.name)):
                parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
                if parent == pid:
                    found += [int(path.name), *children(int(path.name))]
    return found


def ray_status(python: str, job: Job) -> str:
    """What the job's Ray says of itself; a head that has just started says for some seconds that it has no status."""
    (address,) = re.findall(rb"^actor .* at (\S+)$", log_of(job), re.MULTILINE)
    command = [str(Path(python).with_name("ray")), "status", "--address", address.decode()]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout


@pytest.mark.hosts
def test_its_ray_goes_and_another_ray_stays(here: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    python = interpreter()
    if python is None:
        if os.environ.get(REQUIRED):
            pytest.fail("the runtime environment is missing: make runtime")
        pytest.skip("the runtime environment is missing: make runtime")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    here.write("program.py", PROGRAM)
    folder = f"/tmp/uky-ray-{os.getpid()}"
    other = subprocess.Popen(
        [python, str(here.root / "program.py"), f"{folder}a"], stdout=subprocess.PIPE, start_new_session=True
    )
    assert other.stdout is not None
    try:
        assert other.stdout.readline().startswith(b"actor")
        theirs = children(other.pid)
        assert len(theirs) >= 4
        job = here.start(f"{python} program.py {folder}b")
        wait_for(lambda: b"actor" in log_of(job), 120)
        assert job.id.encode() in log_of(job)
        _, usage = jobs.look(here.open())
        mine = [process["pid"] for process in usage.processes]
        assert {"raylet", "gcs_server"} <= {process["name"] for process in usage.processes}
        stopped = jobs.stop(here.open())
        assert stopped.left == []
        assert not [pid for pid in mine if alive(pid)]
        assert not [pid for pid in theirs if not alive(pid)]
    finally:
        left = children(other.pid)
        os.killpg(other.pid, signal.SIGTERM)
        other.wait(timeout=60)
        other.stdout.close()
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        other.kill()
        other.wait()
        other.stdout.close()
        for which in "ab":
            shutil.rmtree(f"{folder}{which}", ignore_errors=True)


@pytest.mark.hosts
def test_what_a_killed_ray_left_is_cleaned_up_and_another_ray_stays(
    here: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Both Rays keep their sessions in one folder; the job's is bundled while it lives, then all of it is killed."""
    python = interpreter()
    if python is None:
        if os.environ.get(REQUIRED):
            pytest.fail("the runtime environment is missing: make runtime")
        pytest.skip("the runtime environment is missing: make runtime")
    folder = Path(f"/tmp/uky-rays-{os.getpid()}")
    folder.mkdir()
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.setenv("RAY_TMPDIR", str(folder))
    here.write("program.py", PROGRAM.replace(", _temp_dir=sys.argv[1]", ""))
    command = [python, str(here.root / "program.py")]
    other = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    assert other.stdout is not None
    theirs: list[int] = []
    try:
        assert other.stdout.readline().startswith(b"actor")
        theirs = children(other.pid)
        (kept,) = folder.joinpath("ray").glob("session_2*")
        job = here.start(f"exec {python} program.py")
        wait_for(lambda: b"actor" in log_of(job), 120)
        wait_for(lambda: "node_" in ray_status(python, job), 120)
        archive = tmp_path / "b.tar.gz"
        assert run(["--root", str(here.root), "--python", python, "bundle", "--yes", "--output", str(archive)]) == 0
        with tarfile.open(archive) as found:
            names = {name.partition("/")[2]: name for name in found.getnames()}
            status = found.extractfile(names["ray/status.txt"])
            assert status is not None
            assert "node_" in status.read().decode()
            assert {"ray/list-nodes.txt", "ray/logs/gcs_server.out", "ray/logs/raylet.out"} <= set(names)
        capsys.readouterr()
        wait_for(lambda: Path(job.folder, "traces").exists())
        mine = [process["pid"] for process in jobs.look(here.open())[1].processes]
        for pid in mine:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        here.follow(job)
        wait_for(lambda: not [pid for pid in mine if alive(pid)])
        (gone,) = set(folder.joinpath("ray").glob("session_2*")) - {kept}
        left = list_leftovers(here.open(), job.id, caches=False, running=False)
        assert [thing.what for thing in left.things if thing.kind == "session"] == [str(gone)]
        assert [thing for thing in left.alone if "ray stop" in str(thing.why)]
        assert not take_away(here.open(), left, caches=False, running=False).left
        assert not gone.exists()
        assert kept.exists()
        assert not [pid for pid in theirs if not alive(pid)]
    finally:
        for pid in [other.pid, *theirs]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        other.wait()
        other.stdout.close()
        shutil.rmtree(folder, ignore_errors=True)
