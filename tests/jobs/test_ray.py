"""Stopping a job that runs Ray takes its Ray, and leaves another Ray of the same user alone."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from patcher import jobs
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
print("actor", *ray.get(actor.where.remote()), flush=True)
time.sleep(600)
"""


def children(pid: int) -> list[int]:
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit() and alive(int(path.name)):
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == pid:
                found += [int(path.name), *children(int(path.name))]
    return found


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
