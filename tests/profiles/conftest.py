"""An old Python, where there is one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import pythons


@pytest.fixture
def old_python() -> str:
    """The oldest Python that is to be had."""
    for version in ("3.8", "3.9", "3.10"):
        for python in pythons._installed(version):
            return str(Path(python))
    pytest.skip("there is no Python older than 3.11")
