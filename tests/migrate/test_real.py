"""The whole way on a host with real vLLM, torch and Ray: every step, and a job that runs Ray, judged by its log."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from patcher.packages.releases import sources
from tests import forks, machines
from tests.conftest import require
from tests.machines import Machine
from tests.migrate import moving
from tests.migrate.moving import Mover, Site
from tests.migrate.test_end_to_end import LOG, show
from tests.preflight.conftest import open_folder, runtime, toy

__all__ = ["open_folder", "runtime", "toy"]

pytestmark = [pytest.mark.network, pytest.mark.hosts]

WITH_RAY = """\
import os, time
import ray
ray.init(num_cpus=1, include_dashboard=False, log_to_driver=True, _temp_dir=os.environ["SHORT"])
@ray.remote
def inside():
    return os.environ.get("UKY_TOLD"), os.getpid()
told, pid = ray.get(inside.remote())
assert pid != os.getpid()
print(f"a worker was told {told}", flush=True)
ray.shutdown()
for line in open("tests/train.txt", encoding="utf-8"):
    print(line, end="", flush=True)
"""


@pytest.fixture
def trainer(tmp_path: Path) -> Iterator[Machine]:
    require(machines.why_not())
    with machines.machine(tmp_path / "trainer", "trainer") as made:
        yield made


def test_from_nothing_to_a_run_that_trains(trainer: Machine, runtime: Path, toy: Path, tmp_path: Path) -> None:
    if trainer.do(str(runtime), "-c", "import torch; print('ok')", check=False).strip() != "ok":
        pytest.skip("another user cannot run the runtime environment's Python")
    tree = tmp_path / "fork"
    tree.mkdir()
    forks.git(tree, "init", "--quiet", "--initial-branch=main")
    shutil.copytree(sources("verl", "0.9.1") / "verl", tree / "verl", copy_function=shutil.copyfile)
    (tree / "tests").mkdir()
    (tree / "tests/train.txt").write_bytes(LOG.read_bytes())
    (tree / "with_ray.py").write_text(WITH_RAY)
    (tree / "job.sh").write_text(f'#!/bin/bash\nexport SHORT="$HOME/r"\nexec {runtime} with_ray.py\n')
    (tree / "job.sh").chmod(0o755)
    table = f'[hosts.trainer]\npython = "{runtime}"\ndata = "{toy}"\nmodels = "{toy}/model"\nscript = "job.sh"\n'
    (tree / "uky-patch.toml").write_text(f'{table}[hosts.trainer.env]\nUKY_TOLD = "by the host\'s table"\n')
    forks.commit(tree, "verl 0.9.1")
    site = Site(trainer, Mover(tree, tmp_path / "state", trainer.shims))
    before = moving.local(tree)
    outside = _outside(trainer)
    told = site.mover.migrate("trainer", within=240)
    show(told)
    assert told.code == 0, told.text
    assert [step["name"] for step in told.json["steps"]] == list(STEPS)
    assert all(status in ("ok", "warn") for status in told.statuses.values()), told.text
    assert "vllm 0.28.0" in told.steps["probe"]["detail"]
    assert told.json["job"]["verdict"] == "ok"
    assert "a worker was told by the host's table" in Path(told.json["job"]["log"]).read_text()
    assert moving.local(tree) == before
    left = _outside(trainer) - outside
    assert left <= {str(trainer.home / name) for name in ("r", ".ray")}, "beyond what the job itself has made"


def _outside(host: Machine) -> set[str]:
    """What its user has in the usual places outside the tree."""
    found = set(host.do("find", "/tmp", "/dev/shm", "/var/tmp", "-maxdepth", "1", "-user", host.user).splitlines())
    return found | {str(path) for path in host.home.iterdir() if path.name != "fork"}


STEPS = ("preflight", "probe", "plan", "transfer", "render", "verify", "environment", "job")
