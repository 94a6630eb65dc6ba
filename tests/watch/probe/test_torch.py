"""What torch holds in a live training: DataLoaders, gradients, rates, a checkpoint, and a collective of all ranks."""

from __future__ import annotations

from pathlib import Path

import pytest

from patcher.cli.app import run
from tests.watch.probe.conftest import Start
from tests.watch.probe.environment import interpreter
from tests.watch.probe.test_probe import asked

pytestmark = pytest.mark.hosts
SCRIPT = """
import os, time, torch
import torch.distributed as dist
dist.init_process_group("gloo", init_method="file://" + os.environ["MASTER_FILE"],
                        rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]))
model = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.Linear(2, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.5, weight_decay=0.1)
model(torch.ones(3, 4)).sum().backward()
model[1].weight.grad[0, 0] = float("nan")
loader = torch.utils.data.DataLoader(list(range(64)), batch_size=4, num_workers=2, prefetch_factor=3)
rows = iter(loader)
next(rows)
class PpoTrainer: pass
trainer = PpoTrainer()
trainer.global_steps = 5 + dist.get_rank()
print("ready")
while True:
    time.sleep(0.05)
"""


def test_a_training_of_two_ranks(
    start: Start, runtime: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = map(str, start(SCRIPT, python=interpreter(runtime), ranks=2))
    both = ("--pid", one, "--pid", two)
    (loader,) = asked(capsys, "loader", "--pid", one)
    assert (loader["rows"][0]["workers"], loader["rows"][0]["prefetch"], loader["rows"][0]["rows"]) == (2, 3, 64)
    assert [worker["alive"] for worker in loader["rows"][0]["running"]] == [True, True]
    (gradients,) = asked(capsys, "gradients", "--pid", one)
    assert gradients["rows"][0]["first"] == [{"parameter": "1.weight", "nan": True, "inf": False}]
    ranks = asked(capsys, "ranks", *both)
    assert [(row["rank"], row["world"], row["backend"]) for answer in ranks for row in answer["rows"]] == [
        (0, 2, "gloo"),
        (1, 2, "gloo"),
    ]
    changed = asked(capsys, "rate", "0.1", "--write", "--yes", *both)
    assert [(row["before"], row["rate"]) for answer in changed for row in answer["rows"]] == [(0.5, 0.05)] * 2
    summed = asked(capsys, "all-reduce", "--write", "--yes", *both)
    assert [(row["step"], row["sum"]) for answer in summed for row in answer["rows"]] == [(5, 11), (6, 11)]
    assert run(["probe", "all-reduce", "--write", "--yes", "--pid", one]) == 2
    file = tmp_path / "emergency.pt"
    (saved,) = asked(capsys, "checkpoint", str(file), "--write", "--yes", "--pid", one)
    assert saved["rows"][0]["bytes"] == file.stat().st_size
    (keys,) = asked(capsys, "checkpoint", str(file), "--pid", two)
    assert [row["key"] for row in keys["rows"]] == ["step", "models", "optimizers"]
    (again,) = asked(capsys, "checkpoint", str(file), "--write", "--yes", "--pid", one, code=5)
    assert "FileExistsError" in again["error"]
    (clipped,) = asked(capsys, "clip", "1.0", "--write", "--yes", "--pid", one)
    assert clipped["rows"][0]["model"] == "Sequential"
