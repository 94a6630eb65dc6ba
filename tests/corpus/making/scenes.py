"""What a scene is, and the list of them all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Scene:
    """One run and what is true of it. `command` is for bash, in a folder of its own; it finds there `$PYTHON`, the
    runtime environment's interpreter, `$MODEL` and `$DATA`, a tiny model and data set, and `files`, written before.
    """

    name: str
    made: str
    command: str
    verdict: str = "failed"
    root: Sequence[str] = ()
    phase: str = ""
    signs: Sequence[str] = ()
    """Patterns of lines that show the cause."""
    all_signs: bool = False
    """Whether every line that a pattern is found in counts, else each pattern's first."""
    files: Mapping[str, str] = field(default_factory=dict)
    prepare: Callable[[Path], None] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 120
    """After so long it is ended. For a stall that is when the log is cut."""
    until: str = ""
    """Text after which it is ended, once the log holds it as often as `times`."""
    times: int = 1
    linger: float = 3
    """Seconds after `until`."""
    memory: int = 0
    """Megabytes that its control group may use; 0 for as much as there is."""
    network: bool = False
    """Whether it may see other machines."""
    versions: Sequence[str] = ("torch",)
    assume: Mapping[str, str] = field(default_factory=dict)
    size: int = 36_000
    """Bytes of the log that are kept at most; what is beyond is cut out of its middle."""


SCENES: dict[str, Scene] = {}


def scene(name: str, **told: object) -> Scene:
    """List a scene by its name."""
    assert name not in SCENES, name
    SCENES[name] = Scene(name, **told)  # type: ignore[arg-type]
    return SCENES[name]
