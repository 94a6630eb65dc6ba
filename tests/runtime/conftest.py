"""The builds' interpreters, a tiny model and data set, and patched trees."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.machines import REQUIRED
from tests.runtime import environment, tiny


@pytest.fixture(scope="session")
def python() -> Callable[[str], Path]:
    """The interpreter of a build; made where hosts are required, else a reason to skip."""

    def find(build: str) -> Path:
        found = environment.interpreter(build)
        if found is None and os.environ.get(REQUIRED):
            found = environment.make(build)
        if found is None:
            pytest.skip("there is no runtime environment: make runtime")
        return found

    return find


@pytest.fixture(scope="session")
def toy(python: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `model/` and `train.parquet`."""
    place = tmp_path_factory.mktemp("toy")
    subprocess.run([python(environment.BUILDS[0]), tiny.__file__, place], check=True, capture_output=True)
    return place
