"""A package on disk, written file by file."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from patcher.analysis.symbols import Symbols


@pytest.fixture
def package(tmp_path: Path) -> Callable[..., Symbols]:
    """`package({"__init__.py": …})` makes a package `pkg` with those files; importing any of them would fail."""

    def make(files: dict[str, str]) -> Symbols:
        for name, text in {"__init__.py": "", **files}.items():
            file = tmp_path / "pkg" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(textwrap.dedent(text))
        return Symbols(tmp_path / "pkg")

    return make
