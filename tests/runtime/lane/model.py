"""What the lane finds out, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

RELEASES = ("0.6.0", "0.6.1", "0.7.0", "0.7.1", "0.8.0", "0.9.0", "0.9.1")
"""verl's releases that the records are for."""
ENTRIES = (
    "verl.workers.rollout.vllm_rollout.vllm_async_server",
    "verl.utils.vllm",
    "verl.trainer.main_ppo",
    "verl.workers.fsdp_workers",
    "verl.workers.engine_workers",
)
"""Modules that are looked at one by one, each imported in a process of its own; what a release lacks is passed over."""
State = Literal["as it comes", "named", "applied"]
"""The release untouched; untouched, with metadata that answers to `vllm`; and with the records applied, without it."""
STATES: tuple[State, ...] = ("as it comes", "named", "applied")


@dataclass(frozen=True, slots=True)
class Pair:
    """A release of verl on a build of vLLM for the CPU."""

    verl: str
    build: str

    @property
    def name(self) -> str:
        return f"{self.verl}-{self.build}"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a module cannot be imported. `place`: file and line of the innermost frame in the tree, "" without one."""

    kind: str
    message: str
    place: str

    @property
    def text(self) -> str:
        return f"{self.kind}: {self.message}" if self.kind else self.message


@dataclass(frozen=True, slots=True)
class Claim:
    """A finding of `check`, and what came of executing it: `state` is broken where the finding is true."""

    file: str
    line: int
    kind: str
    symbol: str
    severity: str
    on_import: bool
    """Whether the use runs when its module is imported."""
    state: Literal["broken", "holds", "unknown"]
    why: str


@dataclass(frozen=True, slots=True)
class Result:
    """One pair. Modules map to their failure, None for those that import."""

    pair: Pair
    entries: Mapping[State, Mapping[str, Failure | None]]
    modules: Mapping[State, Mapping[str, Failure | None]]
    """Of the plain path."""
    claims: tuple[Claim, ...]
    left: int
    """Findings of severity break that stay once the records are applied."""
    records: tuple[str, ...] = ()
    """The records that hold."""
    seconds: float = field(default=0, compare=False)
