"""The runtime environment, a tiny model and data set, and real trees of verl."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from patcher.packages.releases import sources
from tests.machines import REQUIRED
from tests.runtime import environment, tiny


@pytest.fixture(scope="session")
def runtime() -> Path:
    """The interpreter with real torch, vLLM and Ray; made where hosts are required, else a reason to skip."""
    found = environment.interpreter()
    if found is None and os.environ.get(REQUIRED):
        found = environment.make()
    if found is None:
        pytest.skip("there is no runtime environment: make runtime")
    return found


@pytest.fixture(scope="session")
def open_folder() -> Iterator[Path]:
    """A folder that any user may enter."""
    with TemporaryDirectory(prefix="uky-ladder-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture(scope="session")
def toy(runtime: Path, open_folder: Path) -> Path:
    """A folder with `model/` and `train.parquet`."""
    place = open_folder / "toy"
    subprocess.run([runtime, tiny.__file__, place], check=True, capture_output=True)
    return place


@pytest.fixture
def release(tmp_path: Path) -> Callable[..., Path]:
    """Makes a tree of a verl release: `release("0.9.1")`."""

    def make(version: str, folder: Path = tmp_path) -> Path:
        root = folder / f"fork-{version}"
        shutil.copytree(sources("verl", version) / "verl", root / "verl")
        return root

    return make
