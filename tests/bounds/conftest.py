"""A small tree, a release to check it against, and a command on it as a user runs it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from patcher.cli.app import run

_LLM = """\
__version__ = "0.20.2"
from vllm.engine import LLM, SamplingParams
"""
_ENGINE = """\
class LLM:
    def __init__(self, model, *, seed=0):
        self.model = model

    def generate(self, prompts, sampling_params=None):
        return prompts


class SamplingParams:
    def __init__(self, n=1):
        self.n = n
"""


@dataclass(frozen=True, slots=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def told(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def vllm(tmp_path: Path) -> Path:
    folder = tmp_path / "release/vllm"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(_LLM)
    (folder / "engine.py").write_text(_ENGINE)
    return folder


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "verl/version").mkdir(parents=True)
    (root / "verl/version/version").write_text("0.6.1\n")
    (root / "verl/__init__.py").write_text("")
    (root / "verl/odd").mkdir()
    (root / "verl/odd/__init__.py").write_text("")
    return root


@pytest.fixture
def uky(tree: Path, capfd: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """Runs a command in this process: what the contract does not know is an exception here."""

    def command(*arguments: str | Path, root: Path = tree) -> Done:
        capfd.readouterr()
        code = run(["--root", str(root), "--format", "json", *map(str, arguments)])
        told = capfd.readouterr()
        return Done(code, told.out, told.err)

    return command
