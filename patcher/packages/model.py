"""What is installed under an interpreter, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from patcher.packages.agent.installed.model import MODULES, Installed, Origin

if TYPE_CHECKING:
    from patcher.i18n import Phrase

__all__ = ["MODULES", "NAMES", "ChosenBy", "Environment", "Installed", "NamedPython", "Origin"]
NAMES: tuple[str, ...] = (*MODULES, "python", "cuda")
"""Every name that a version can be known or assumed for."""


ChosenBy = Literal["option", "settings", "activation", "default"]
"""What an interpreter was chosen by: --python, uky-patch.toml, an activated environment, or nothing at all."""


@dataclass(frozen=True, slots=True)
class NamedPython:
    """The interpreter that the uky-patch.toml of the tree at `root` names."""

    path: Path
    place: str
    """`uky-patch.toml:3`, the line that names it."""
    root: Path


@dataclass(frozen=True, slots=True)
class Environment:
    """What is installed under `python`; a name that is not in `packages` is not installed."""

    python: Path | None
    packages: Mapping[str, Installed]
    problems: tuple[Phrase, ...] = ()
    """What was odd, in sentences: two installs, leftovers, versions that are not PEP 440."""
    notes: tuple[Phrase, ...] = ()
    """Where was looked, where that may surprise."""
    chosen_by: ChosenBy = "option"
    known: bool = True
    """Whether this is the environment that trains: somebody has named it or a version, or it has vllm or torch."""

    def version(self, name: str) -> str | None:
        """The version of one of `NAMES`, or None if it is not installed."""
        found = self.packages.get(name)
        return found.version if found else None
