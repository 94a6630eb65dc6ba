"""Real releases, fetched once."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import pytest

from patcher.analysis.meaning import Program
from patcher.analysis.project import Project
from patcher.analysis.symbols import Symbols
from patcher.analysis.target import Target
from patcher.check.pair import judge
from patcher.packages.releases import sources


@lru_cache(maxsize=8)
def _project(version: str) -> Project:
    return Project(sources("verl", version))


@lru_cache(maxsize=8)
def _symbols(version: str) -> Symbols:
    return Symbols(sources("vllm", version) / "vllm")


@pytest.fixture
def program() -> Callable[[str, str], Program]:
    """`program("0.7.0", "0.20.2")`: that verl on that vLLM."""

    def make(verl: str, vllm: str) -> Program:
        return Program(_project(verl), Target({"vllm": vllm}, {"vllm": _symbols(vllm)}, {"vllm": vllm}), judge)

    return make
