"""The values that jobs are told in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from patcher.i18n import Phrase, Phrases
from patcher.logs.milestones import Phase, Telling

State: TypeAlias = Literal["starting", "running", "ended", "stopped", "lost"]
"""`lost`: gone, and nobody has noted how it ended."""
Kind: TypeAlias = Literal["ok", "failed", "stopped", "lost", "running"]
"""How a job was judged; `running` where it was not waited for to the end."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job as its host tells it. `started` is seconds since 1970 on its clock, `seconds` its age or duration."""

    id: str
    state: State
    profile: str | None
    script: str
    started: float
    seconds: float
    folder: str
    """On the host."""
    user: str = ""
    pid: int | None = None
    code: int | None = None
    """The exit code, negative for a signal; None where it runs, or is lost."""
    size: int = 0
    """Bytes of log."""
    tmux: bool = False
    """Whether a tmux of its own shows the log; its socket is `tmux` in the folder, and named from there."""
    elsewhere: str | None = None
    """The machine that it runs on, where that is not the one that was asked."""
    watched: bool = True
    """Whether its end will be noted."""
    free: int | None = None
    """Bytes free on the disk of its log."""
    steps: int | None = None

    @property
    def over(self) -> bool:
        return self.state not in ("starting", "running")

    @property
    def log(self) -> str:
        return f"{self.folder}/log"


@dataclass(frozen=True, slots=True)
class Usage:
    """What a job uses now: its processes, and the GPUs of its host with their use in percent and bytes."""

    processes: Sequence[Mapping[str, Any]] = ()
    gpus: Sequence[Mapping[str, Any]] = ()

    @property
    def cpu(self) -> float:
        """Percent of one core."""
        return sum(float(process["cpu"]) for process in self.processes)

    @property
    def memory(self) -> int:
        return sum(int(process["memory"]) for process in self.processes)


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a job ended, or how far it had come when it was left alone."""

    kind: Kind
    job: Job
    detail: Phrase | Phrases
    lines: tuple[Phrase | Phrases | str, ...] = ()
    """What tells why, each ready to be shown."""
    phase: Phase | None = None
    spans: Mapping[Phase, float] = field(default_factory=dict)
    """Seconds of each phase that was reached."""
    step: int | None = None
    steps: int | None = None
    telling: Telling | None = None
    dashboard: str | None = None
    offset: int = 0
    """How many bytes of the log it rests on."""

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.job.id,
            "verdict": self.kind,
            "seconds": round(self.job.seconds, 1),
            "code": self.job.code,
            "phase": self.phase,
            "phases": {name: round(seconds, 1) for name, seconds in self.spans.items()},
            "step": self.step,
            "steps": self.steps,
            "detail": str(self.detail),
            "line": None if self.telling is None else {"number": self.telling.number, "text": self.telling.text},
            "log": self.job.log,
            "dashboard": self.dashboard,
        }


def job_of(told: Mapping[str, Any]) -> Job:
    """The agent's answer, typed."""
    process, end = told.get("process"), told.get("end")
    return Job(
        id=told["id"],
        state=told["state"],
        profile=told.get("profile"),
        script=told.get("script", ""),
        started=told.get("started", told.get("ordered", 0.0)),
        seconds=told["now"],
        folder=told["folder"],
        user=told.get("user", ""),
        pid=process["pid"] if process else None,
        code=end["code"] if end else None,
        size=told["size"],
        tmux=told.get("tmux", False),
        elsewhere=told.get("elsewhere"),
        watched=told.get("watched", True),
        free=told.get("free"),
        steps=told.get("steps"),
    )
