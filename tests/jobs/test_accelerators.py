"""A job that trains is not started where there is no GPU, and nothing else is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from patcher.jobs.agent import accelerators
from patcher.jobs.agent.accelerators import why_no_gpu
from patcher.remote.channel import RefusedError
from tests.jobs.conftest import Site

TRAINING = "#!/bin/bash\npython3 -m verl.trainer.main_ppo data.train_batch_size=8\n"
GPU = {"index": 0, "uuid": "GPU-1", "busy": [], "used": 0}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without devices, whose programs are in the folder `bin` of this path."""
    monkeypatch.setattr(accelerators, "DEVICES", (str(tmp_path / "dev/nvidia[0-9]*"), str(tmp_path / "dev/kfd")))
    monkeypatch.setattr(accelerators, "RAY_CLUSTER", str(tmp_path / "ray_current_cluster"))
    for name in ("dev", "bin"):
        (tmp_path / name).mkdir()
    return tmp_path


def told(script: str = TRAINING, environment: dict[str, str] | None = None, gpus: list[object] | None = None) -> str:
    surroundings = {"PATH": "/nowhere", **(environment or {})}
    return str(why_no_gpu(script, surroundings, gpus or []) or "")  # type: ignore[arg-type]


def test_a_machine_without_a_device(machine: Path) -> None:
    assert "has no device of a GPU driver" in told()


def test_a_login_node_is_called_one(machine: Path) -> None:
    (machine / "bin/sbatch").write_text("#!/bin/sh\n")
    (machine / "bin/sbatch").chmod(0o755)
    assert "is it a login node?" in told(environment={"PATH": str(machine / "bin")})


@pytest.mark.parametrize("value", ["", "-1", " none "])
def test_gpus_that_a_variable_hides(machine: Path, value: str) -> None:
    assert "hides every GPU" in told(environment={"CUDA_VISIBLE_DEVICES": value}, gpus=[GPU])
    assert not told(f"export CUDA_VISIBLE_DEVICES=0\n{TRAINING}", {"CUDA_VISIBLE_DEVICES": value}, [GPU])


@pytest.mark.parametrize(
    "script",
    [
        "echo prepare the data\n",
        f"sbatch <<'X'\n{TRAINING}X\n",
        f"export RAY_ADDRESS=http://head:8265\n{TRAINING}",
        f"ray job submit -- {TRAINING}",
    ],
)
def test_what_may_run_elsewhere_or_needs_none(machine: Path, script: str) -> None:
    assert not told(script)


def test_what_may_be_a_gpu_is_one(machine: Path) -> None:
    assert not told(gpus=[GPU])
    assert not told(gpus=[GPU], environment={"CUDA_VISIBLE_DEVICES": "0"})
    assert not told(environment={"RAY_ADDRESS": "10.0.0.1:6379"})
    (machine / "dev/kfd").touch()
    assert not told()
    assert not told(environment={"CUDA_VISIBLE_DEVICES": ""})


def test_a_ray_cluster_on_this_machine_may_have_them(machine: Path) -> None:
    (machine / "ray_current_cluster").write_text("10.0.0.1:6379")
    assert not told()


@pytest.mark.skipif(Path("/dev/nvidia0").exists(), reason="this machine has a GPU")
def test_a_job_is_refused_and_started_with_force(here: Site) -> None:
    script = "exit 0\npython3 -m verl.trainer.main_ppo\n"
    with pytest.raises(RefusedError) as refused:
        here.start(script)
    assert refused.value.kind == "no-gpu"
    assert "--force" in str(refused.value.advice)
    assert here.follow(here.start(script, force=True)).kind == "ok"
