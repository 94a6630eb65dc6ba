"""How much a broken use matters: by what it takes for it to run."""

from __future__ import annotations

from patcher.compat.meaning import Universe
from patcher.compat.model import Problem, Severity, Use


def severity_of(use: Use, problem: Problem, universe: Universe) -> Severity:  # noqa: ARG001
    """break, optional, guarded or inert."""
    return "optional" if use.context.function else "break"
