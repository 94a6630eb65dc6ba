"""Packages that stand in for torch and vLLM, each in a tree of its own, and a climb on them."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from patcher.messages import english
from patcher.preflight.agent.run_programs import Launch, Program, run_programs
from patcher.preflight.agent.stages import environment

TORCH = """
import types
__version__ = "2.9.0"
version = types.SimpleNamespace(cuda=None, hip=None)
cuda = types.SimpleNamespace(is_available=lambda: False)
"""
ENGINES = Program(["engines"], ["torch", "gpus", "vllm"], {"gpus": 0, "cuda": None, "variables": []})


@dataclass
class Told:
    """The verdicts in the order in which they came."""

    verdicts: list[dict[str, Any]] = field(default_factory=list)

    def __getitem__(self, name: str) -> dict[str, Any]:
        (found,) = [verdict for verdict in self.verdicts if verdict["name"] == name]
        return found

    def status(self, name: str) -> str:
        return str(self[name]["status"])

    def said(self, name: str) -> str:
        detail = self[name]["detail"]
        return english(detail)


def tree(folder: Path, **packages: str) -> Path:
    """A folder with a package for each name, with this `__init__.py`."""
    for name, text in packages.items():
        place = folder / name
        place.mkdir(parents=True)
        (place / "__init__.py").write_text(text)
    return folder


def told(root: Path, *programs: Program, budget: float = 20.0, python: str = sys.executable, **env: str) -> Told:
    """Run the programs on the packages in `root`."""
    scratch = root / "scratch"
    scratch.mkdir(exist_ok=True)
    found = Told()
    launch = Launch(python, str(root), environment(python, str(root), env), str(scratch))
    run_programs(list(programs), launch, budget, found.verdicts.append)
    return found


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
