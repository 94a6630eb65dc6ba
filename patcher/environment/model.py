"""What is installed under an interpreter, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from patcher.agent.installed.model import MODULES, Installed, Origin

if TYPE_CHECKING:
    from patcher.language import Phrase

__all__ = ["MODULES", "NAMES", "Environment", "Installed", "Origin"]
NAMES: tuple[str, ...] = (*MODULES, "python", "cuda")
"""Every name that a version can be known or assumed for."""


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
