"""How long each phase of a job usually takes, by profile: seconds, from the documents' own figures.

The documents give for the whole start 30–60 min without and 2–5 min with fast loading, 2 min for a debug run's model
(1–2 min once the page cache is warm), 5–10 min for CUDA graphs, 10 s for data, and 2–5 min for a whole debug run. The
time up to the data set is mostly imports: 30 s on an H200 host with sixteen cores (docs/gpu-runs.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from patcher.logs.milestones import Phase
from patcher.remote.host import Profile

Span: TypeAlias = tuple[float, float]
"""The usual seconds, low and high. Up to the second a phase is normal; for `loop` they are those of one step."""

USUAL_SECONDS: Mapping[Profile, Mapping[Phase, Span]] = {
    "standard": {
        "config": (2, 60),
        "dataset": (5, 180),
        "resource-pool": (5, 60),
        "actor": (60, 1800),
        "rollout": (120, 1800),
        "weight-sync": (5, 120),
        "loop": (60, 900),
    },
    "debug": {
        "config": (2, 60),
        "dataset": (1, 30),
        "resource-pool": (5, 60),
        "actor": (10, 120),
        "rollout": (30, 90),
        "weight-sync": (1, 30),
        "loop": (5, 60),
    },
    "fast-load": {
        "config": (2, 60),
        "dataset": (1, 60),
        "resource-pool": (5, 60),
        "actor": (30, 180),
        "rollout": (30, 180),
        "weight-sync": (1, 60),
        "loop": (10, 300),
    },
}


def usual_seconds(profile: Profile, phase: Phase) -> Span:
    """The usual seconds of a phase, low and high."""
    return USUAL_SECONDS[profile][phase]
