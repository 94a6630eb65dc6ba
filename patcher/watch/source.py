"""What is watched, as far as its log and its end go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol

from patcher.watch.run_state import RunState


@dataclass(frozen=True, slots=True)
class End:
    """That it is over: the exit code where somebody noted it, and whether the job was told to stop."""

    code: int | None = None
    stopped: bool = False
    lost: bool = False
    """It is gone, and nobody noted how it ended."""
    unseen: bool = False
    """Nobody was seen to write its log: it had ended before, or nobody ever did."""


class Source(Protocol):
    """A log and the job that writes it."""

    name: str

    @property
    def unwritten(self) -> bool:
        """Whether no process is seen that writes the log, and none was."""

    def begin(self, state: RunState) -> None:
        """Tell what there is already."""

    def read(self, state: RunState, seconds: float) -> None:
        """Tell what comes, for so long."""

    def now(self) -> float:
        """Seconds since the job's start."""

    def update_members(self, look: Mapping[str, Any]) -> None:
        """Take the processes that were seen, as `UsageMeter.look` tells them."""

    def end(self) -> End | None:
        """How it ended; None as long as it runs, as far as can be told."""

    def content(self) -> list[tuple[str, BinaryIO]]:
        """The log, opened to be read from its beginning, or as much of its end as is kept; by name."""
