from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.tree.toys import plant

if TYPE_CHECKING:
    from patcher.tree import Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    (tmp_path / "fork").mkdir()
    return plant(tmp_path / "fork")
