"""One virtual environment on disk, the active one."""

from __future__ import annotations

from pathlib import Path

import pytest
from venvs import Venv


@pytest.fixture
def venv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Venv:
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "no-cuda"))
    monkeypatch.setenv("PYTHONUSERBASE", str(tmp_path / "user"))
    made = Venv(tmp_path / "venv")
    monkeypatch.setenv("VIRTUAL_ENV", str(made.prefix))
    return made
