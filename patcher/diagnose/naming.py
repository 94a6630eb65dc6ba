"""What the phases are called."""

from __future__ import annotations

from patcher.i18n import Phrase, phrase
from patcher.records.milestones import Phase

_NAMES: dict[Phase, Phrase] = {
    "config": phrase("config"),
    "dataset": phrase("dataset"),
    "resource-pool": phrase("resource pool"),
    "actor": phrase("actor"),
    "rollout": phrase("rollout"),
    "weight-sync": phrase("weight sync"),
    "loop": phrase("loop"),
}


def name(phase: Phase | None) -> Phrase:
    """The name of a phase, as people read it."""
    return _NAMES[phase] if phase is not None else phrase("none")
