"""The result of `watch`, and its JSON: the state of the run, its processes grouped by stack, and the diagnosis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from patcher.diagnose.diagnosis import Diagnosis, Verdict
from patcher.i18n import NOTHING, Phrase, Phrases
from patcher.logs.milestones import Milestone, Phase
from patcher.watch.run_state import Activity, End, RunStatus
from patcher.watch.stacks.grouping import Group, ProcessGroups
from patcher.watch.stacks.processes import MachineStacks, Process

WatchVerdict: TypeAlias = Verdict | Literal["lost"]
"""`lost`: it is gone, nobody noted its exit code, and its log shows neither a failure nor a good end."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The processes of all machines at one time."""

    taken: Sequence[MachineStacks]
    grouped: ProcessGroups
    phase: Phase | None
    """The phase that the frames show."""

    @property
    def processes(self) -> tuple[Process, ...]:
        """The processes of all machines."""
        return tuple(process for one in self.taken for process in one.processes)


@dataclass(frozen=True, slots=True)
class WatchResult:
    """The state of the run when watching ended.

    `verdict` is `running` if only one look was asked for, and after an interrupt.
    """

    verdict: WatchVerdict
    status: RunStatus
    seconds: float
    """The age of the job."""
    milestones: Sequence[Milestone]
    activity: Activity
    snapshot: Snapshot | None
    diagnosis: Diagnosis
    end: End | None = None
    detail: Phrase | Phrases = NOTHING
    left: bool = False
    """Whether the user left the run with an interrupt."""

    @property
    def phase(self) -> Phase | None:
        """The phase from the log; without one there, from the frames."""
        return self.status.phase or (self.snapshot.phase if self.snapshot is not None else None)

    def as_json(self) -> dict[str, Any]:
        """The JSON of `watch`; times in seconds, sizes in bytes."""
        status = self.status
        return {
            "phase": self.phase,
            "verdict": self.verdict,
            "seconds": round(status.seconds, 1),
            "silent": round(status.silent, 1),
            "limit": round(status.limit, 1),
            "usual": list(status.usual),
            "pace": status.pace,
            "reason": status.reason,
            "age": round(self.seconds, 1),
            "milestones": [_milestone(one) for one in self.milestones],
            "activity": {
                "cpu": round(sum(self.activity.cpu.values()), 1),
                "busy": [{"host": host, "pid": pid} for host, pid in self.activity.busy],
                "memory": self.activity.memory,
                "disk": round(self.activity.disk),
                "gpus": list(self.activity.gpus),
            },
            "stacks": _snapshot(self.snapshot) if self.snapshot is not None else None,
            "symptoms": self._symptoms(),
            "detail": str(self.detail),
            "code": self.end.code if self.end is not None else None,
        }

    def _symptoms(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.diagnosis.as_json()["symptoms"]
        return [
            dict(one, line=None) if finding.place.offset < 0 else one
            for one, finding in zip(found, self.diagnosis.findings, strict=True)
        ]


def _milestone(one: Milestone) -> dict[str, Any]:
    fields: dict[str, Any] = {"phase": one.phase, "at": round(one.at, 1), "took": round(one.took, 1)}
    if one.step is not None:
        fields |= {"step": one.step, "steps": one.steps}
    elif one.before is not None:
        fields["before"] = one.before
    return fields


def _snapshot(snapshot: Snapshot) -> dict[str, Any]:
    return {
        "groups": [_group(group) for group in snapshot.grouped.groups],
        "absent": list(snapshot.grouped.absent),
        "size": snapshot.grouped.size,
        "phase": snapshot.phase,
        "places": [{"host": one.host, "processes": len(one.processes), "spy": one.spy} for one in snapshot.taken],
        "unread": [
            {"pid": process.pid, "host": process.host, "why": process.closed or "failed", "tried": list(process.failed)}
            for process in snapshot.processes
            if process.role not in ("helper", "system") and not process.threads
        ],
        "locks": [
            {"path": lock.path, "holders": dict(lock.holders), "waiters": list(lock.waiters), "host": one.host}
            for one in snapshot.taken
            for lock in one.locks
        ],
    }


def _group(group: Group) -> dict[str, Any]:
    first = group.processes[0]
    return {
        "count": len(group.processes),
        "role": group.role,
        "ranks": list(group.ranks),
        "pids": list(group.pids),
        "hosts": sorted({process.host for process in group.processes}),
        "titles": sorted({process.title for process in group.processes})[:4],
        "frames": [f"{frame.place}:{frame.line}" if frame.line else frame.place for frame in group.frames],
        "where": group.where,
        "doing": str(group.action) or None,
        "state": first.state,
        "how": first.how,
        "odd": bool(group.odd),
        "why": str(group.odd) or None,
    }
