"""verl's own main_ppo trains a tiny model on vLLM's CPU build: patched, and with a CPU standing in for the GPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.corpus.making.standing_in import stand_in
from tests.corpus.making.topics.on_verl import ON_A_CPU, training
from tests.runtime.lane.running import apply
from tests.runtime.running import ran

pytestmark = [pytest.mark.runtime, pytest.mark.network]


def test_main_ppo_trains_a_step(python: Callable[[str], Path], toy: Path, tmp_path: Path) -> None:
    interpreter = python("0.28.0")
    tree, _ = apply("0.8.0", "0.28.0", interpreter, tmp_path)
    stand_in(tree)
    told = {
        "TREES": str(tmp_path),
        "MODEL": str(toy / "model"),
        "DATA": str(toy / "train.parquet"),
        "PYTHON": str(interpreter),
    }
    done = ran(interpreter, ["bash", "-c", training(tree.name, ON_A_CPU)], [], 400, told)
    assert "step:1 - " in done.text, done.end
    assert done.code == 0, done.end
