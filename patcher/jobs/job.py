"""The types of a job, what it uses and how it is judged; and the function that makes the verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from patcher.diagnose.ended import how_ended
from patcher.i18n import Phrase, Phrases, phrase
from patcher.i18n.codec import decode
from patcher.logs.milestones import NumberedLine, Phase, phase_name
from patcher.remote.slurm import Queue, queue_of

if TYPE_CHECKING:
    from patcher.logs.milestones import Milestones
    from patcher.secrets.redacting import Redactor

State: TypeAlias = Literal["queued", "starting", "running", "ended", "stopped", "lost"]
"""`queued`: waits in Slurm's queue; `stopped`: ended after it was told to; `lost`: gone, and nobody noted its end."""
Kind: TypeAlias = Literal["ok", "failed", "stopped", "lost", "running"]
"""How a job was judged; `running` where it has not ended."""


FULL = 1 << 20
"""Free bytes below which a disk counts as full. A guess: a log may grow by more within a minute."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job as its host tells it. `started` is seconds since 1970 on the host's clock; `seconds` is the job's age, or
    how long it took.
    """

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
    """Whether the program that notes its end runs (`patcher.jobs.agent.runner`)."""
    free: int | None = None
    """Bytes free on the disk of its log."""
    steps: int | None = None
    """How many training steps it was asked to make, where that is known."""
    queue: Queue | None = None
    """Of a job that Slurm starts."""
    no_gpu: Phrase | Phrases | str = ""
    """Why it was not started on its node: no GPU is visible there. Empty where it was."""

    @property
    def over(self) -> bool:
        """Whether it has ended, one way or another."""
        return self.state not in ("queued", "starting", "running")

    @property
    def log(self) -> str:
        return f"{self.folder}/log"

    @property
    def full_disk(self) -> tuple[Phrase, ...]:
        """That the disk of its log is full, where it is: a job fails for that, and one that did not has a log that may
        lack its end."""
        if self.free is None or self.free >= FULL:
            return ()
        return (phrase("the disk of {folder} is full, so its log may be cut short", folder=self.folder),)


@dataclass(frozen=True, slots=True)
class Usage:
    """What a job uses now: its processes (`cpu` in percent of one core, `memory` in bytes), and all GPUs of its host
    (`use` in percent, `used` in bytes).
    """

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
    """Lines to show below it, which tell why."""
    phase: Phase | None = None
    """The phase that it ended in, or is in."""
    spans: Mapping[Phase, float] = field(default_factory=dict)
    """Seconds of each phase that was reached."""
    step: int | None = None
    """The last step that was made."""
    steps: int | None = None
    """How many are to be made."""
    telling: NumberedLine | None = None
    """The line of the log that tells why it failed."""
    dashboard: str | None = None
    offset: int = 0
    """How many bytes of the log it rests on."""

    def as_json(self) -> dict[str, Any]:
        """The verdict as `--json` prints it, always in English."""
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


def job_of(state: Mapping[str, Any]) -> Job:
    """The state that the agent's `jobs.agent.folder.look` tells, typed."""
    process, end = state.get("process"), state.get("end")
    return Job(
        id=state["id"],
        state=state["state"],
        profile=state.get("profile"),
        script=state.get("script", ""),
        started=state.get("started", state.get("ordered", 0.0)),
        seconds=state["now"],
        folder=state["folder"],
        user=state.get("user", ""),
        pid=process["pid"] if process else None,
        code=end["code"] if end else None,
        size=state["size"],
        tmux=state.get("tmux", False),
        elsewhere=state.get("elsewhere"),
        watched=state.get("watched", True),
        free=state.get("free"),
        steps=state.get("steps"),
        queue=queue_of(state["queue"]) if "queue" in state else None,
        no_gpu=decode(state["no_gpu"]) if "no_gpu" in state else "",
    )


def verdict_of(job: Job, milestones: Milestones, offset: int, redactor: Redactor) -> Verdict:
    """Judge a job by how it ended and by the milestones in the first `offset` bytes of its log.

    `redactor` takes secrets out of the line that tells why it failed.
    """
    kind, detail = _kind_and_detail(job, milestones)
    telling = milestones.telling if kind in ("failed", "lost") else None
    lines: list[Phrase] = []
    if telling is not None:
        telling = replace(telling, text=redactor.text(telling.text))
        lines.append(phrase("log line {number}: {text}", number=telling.number, text=telling.text))
    if job.no_gpu:
        lines.append(phrase("Ask for GPUs with gres in the host's table, or start it all the same with --force."))
    if job.over:
        lines += job.full_disk
    return Verdict(
        kind,
        job,
        detail,
        tuple(lines),
        phase=milestones.phase,
        spans=milestones.spans(),
        step=milestones.step,
        steps=milestones.steps or job.steps,
        telling=telling,
        dashboard=milestones.dashboard,
        offset=offset,
    )


def _kind_and_detail(job: Job, milestones: Milestones) -> tuple[Kind, Phrase]:
    """An exit code of 0 alone is no success: a job whose log shows fewer steps than it was to make has failed."""
    seconds = f"{job.seconds:.0f}"
    phase = phrase("in phase {phase}", phase=phase_name(milestones.phase))
    if job.state == "queued" and job.queue is not None:
        return "running", job.queue.sentence
    if not job.over:
        return "running", phrase("running since {seconds} s, {phase}", seconds=seconds, phase=phase)
    if job.state == "stopped":
        return "stopped", phrase("stopped after {seconds} s, {phase}", seconds=seconds, phase=phase)
    if job.no_gpu:
        return "failed", phrase("not started, no GPU is visible where the job would run: {reason}", reason=job.no_gpu)
    if job.queue is not None and (ended := _ended_by_slurm(job.queue)) is not None:
        return "failed", phrase("{seconds} s, {phase}: {how}", seconds=seconds, phase=phase, how=ended)
    wanted = milestones.steps or job.steps
    made = milestones.step or 0
    if job.state == "lost" or job.code is None:
        template = "lost: nobody noted how it ended; the log ends {phase}, after {made} {made:step|steps}"
        return "lost", phrase(template, phase=phase, made=made)
    if job.code == 0 and wanted and made < wanted and milestones.step is not None:
        template = "ended with 0 after {made} of {wanted} {wanted:step|steps}, {seconds} s"
        return "failed", phrase(template, made=made, wanted=wanted, seconds=seconds)
    if job.code == 0:
        if made:
            return "ok", phrase("{made} {made:step|steps} in {seconds} s", made=made, seconds=seconds)
        return "ok", phrase("ended well after {seconds} s", seconds=seconds)
    return "failed", phrase("{seconds} s, {phase}: {how}", seconds=seconds, phase=phase, how=how_ended(job.code))


def _ended_by_slurm(queue: Queue) -> Phrase | None:
    """Why Slurm ended the job; None where the job ended by itself."""
    match queue.state:
        case "TIMEOUT":
            return phrase("Slurm ended it: the time limit of {limit} was reached", limit=queue.limit)
        case "PREEMPTED":
            return phrase("Slurm ended it: preempted by another job")
        case "NODE_FAIL" | "BOOT_FAIL":
            return phrase("Slurm ended it: a node failed ({nodes})", nodes=queue.nodes or queue.state)
        case "OUT_OF_MEMORY":
            return phrase("Slurm ended it: it used more memory than it was given")
        case "DEADLINE":
            return phrase("Slurm ended it: its deadline has passed")
    return None
