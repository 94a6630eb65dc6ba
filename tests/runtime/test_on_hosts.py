"""A fork moves to a cluster of Slurm and into a container, and trains there on vLLM's CPU build, patched on the way.

The lane needs `make runtime`, which no lane of hosts has: so it is one of `make test-runtime`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from patcher.packages.releases import wheel
from tests import containers, forks, machines, pythons, slurm
from tests.conftest import require
from tests.corpus.making.standing_in import stand_in
from tests.corpus.making.topics.on_verl import ON_A_CPU, training
from tests.lanes import ALL_CASES
from tests.migrate.moving import Mover, Told
from tests.runtime.running import PLAIN

pytestmark = [
    pytest.mark.runtime,
    pytest.mark.network,
    pytest.mark.skipif(
        not ALL_CASES, reason="each trains for two to three minutes: UKY_PATCH_ALL_CASES=1 make test-runtime"
    ),
]

VERL, BUILD = "0.8.0", "0.28.0"
JOB = """\
#!/bin/bash
{exports}
export TREES="$(dirname "$PWD")" RAY_TMPDIR=$(mktemp -d /tmp/uky-ray-XXXX)
{command}
"""


@pytest.fixture
def open_folder(toy: Path) -> Iterator[Path]:
    """A folder that any user may enter, with the model and the data."""
    with TemporaryDirectory(prefix="uky-open-", dir="/tmp") as folder:
        shutil.copytree(toy, Path(folder, "toy"), copy_function=shutil.copyfile)
        for place in (Path(folder), Path(folder, "toy"), Path(folder, "toy/model")):
            place.chmod(0o755)
        yield Path(folder)


@pytest.fixture
def fork(open_folder: Path, tmp_path: Path) -> Path:
    """A fork of verl 0.8.0 in which a CPU stands in for the GPU, and which no record has touched."""
    tree, toy = tmp_path / "fork", open_folder / "toy"
    shutil.copytree(wheel("verl", VERL) / "verl", tree / "verl")
    stand_in(tree)
    told = {**PLAIN, "MODEL": str(toy / "model"), "DATA": str(toy / "train.parquet")}
    exports = "\n".join(f"export {name}={value}" for name, value in told.items())
    (tree / "job.sh").write_text(JOB.format(exports=exports, command=training(tree.name, ON_A_CPU)))
    forks.git(tree, "init", "--quiet", "--initial-branch=main")
    forks.commit(tree, "verl 0.8.0 on a CPU")
    return tree


def trained(mover: Mover, host: str, python: Path, sees: Callable[[Path], Path] = Path) -> None:
    """Move it there and train a step: with the records for what is there, which are not in the tree here.

    `sees`: the way from here to an absolute path there.
    """
    with (mover.tree / "job.sh").open("r+") as job:
        text = job.read().replace("#!/bin/bash\n", f"#!/bin/bash\nexport PYTHON={python}\n")
        job.seek(0)
        job.write(text)
    moved = mover.migrate(host, "--until", "environment", within=300)
    assert moved.code == 0, moved.text
    assert moved.statuses["plan"] == "ok", moved.text
    assert moved.statuses["environment"] in ("ok", "warn"), moved.text
    refused = mover.migrate(host, "--only", "job", within=120)
    assert refused.code != 0
    assert "no GPU" in refused.text
    done: Told = mover.migrate(host, "--only", "job", "--force", within=500)
    log = sees(Path(done.json["job"]["log"])).read_text()
    print(log[-20_000:])  # pytest shows it where the test fails.
    assert done.code == 0, done.text
    assert "step:1 - " in log
    assert "Uky[" not in (mover.tree / "verl/workers/rollout/vllm_rollout/vllm_async_server.py").read_text()


def settings(tree: Path, name: str, toy: Path, **keys: object) -> None:
    """The host's table, with the places of data and model."""
    wanted = {"script": "job.sh", "data": str(toy), "models": f"{toy}/model", **keys}
    lines = [f"{key} = {json.dumps(value)}" for key, value in wanted.items()]
    (tree / "uky-patch.toml").write_text("\n".join([f"[hosts.{name}]", *lines, ""]))


def test_on_a_cluster_of_slurm(fork: Path, python: Callable[[str], Path], open_folder: Path, tmp_path: Path) -> None:
    require(slurm.why_not() or machines.why_not())
    with (
        slurm.cluster() as cluster,
        machines.machine(tmp_path / "login", "login", variables={"SLURM_CONF": str(cluster.conf)}) as login,
        pythons.environment_open_to_all(python(BUILD), open_folder) as interpreter,
    ):
        settings(fork, "login", open_folder / "toy", scheduler="slurm", time="15", python=str(interpreter))
        trained(Mover(fork, tmp_path / "state", login.shims), "login", interpreter)
        cluster.clear()


def test_in_a_container(fork: Path, python: Callable[[str], Path], open_folder: Path, tmp_path: Path) -> None:
    require(containers.why_not())
    interpreter = python(BUILD)
    mounts = [interpreter.parent.parent, interpreter.resolve().parent.parent, open_folder]
    with containers.container(mounts=[f"{place}:{place}:ro" for place in mounts], shared_memory="4g") as container:
        settings(fork, "pod", open_folder / "toy", via=container.via, python=str(interpreter))
        mover = Mover(fork, tmp_path / "state", tmp_path / "bin")
        mover.run("trust")
        trained(mover, "pod", interpreter, container.sees)
