"""What a job's end, or its log so far, means."""

from __future__ import annotations

import signal
from dataclasses import replace
from typing import TYPE_CHECKING

from patcher.i18n import Phrase, phrase
from patcher.jobs.model import Verdict
from patcher.logs.milestones import phase_name

if TYPE_CHECKING:
    from patcher.jobs.model import Job, Kind
    from patcher.logs.milestones import Milestones
    from patcher.secrets.redacting import Redactor

FULL = 1 << 20
"""Bytes below which a disk counts as full."""


def judge(job: Job, milestones: Milestones, offset: int, redactor: Redactor) -> Verdict:
    """The verdict on a job from how it ended and what the first `offset` bytes of its log say."""
    kind, detail = _judged(job, milestones)
    telling = milestones.telling if kind in ("failed", "lost") else None
    lines: list[Phrase] = []
    if telling is not None:
        telling = replace(telling, text=redactor.text(telling.text))
        lines.append(phrase("log line {number}: {text}", number=telling.number, text=telling.text))
    if kind in ("failed", "lost") and job.free is not None and job.free < FULL:
        lines.append(phrase("the disk of {folder} is full", folder=job.folder))
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


def _judged(job: Job, milestones: Milestones) -> tuple[Kind, Phrase]:
    seconds = f"{job.seconds:.0f}"
    phase = phrase("in phase {phase}", phase=phase_name(milestones.phase))
    if not job.over:
        return "running", phrase("running since {seconds} s, {phase}", seconds=seconds, phase=phase)
    if job.state == "stopped":
        return "stopped", phrase("stopped after {seconds} s, {phase}", seconds=seconds, phase=phase)
    wanted = milestones.steps or job.steps
    made = milestones.step or 0
    if job.state == "lost" or job.code is None:
        told = "lost: nobody noted how it ended; the log ends {phase}, after {made} {made:step|steps}"
        return "lost", phrase(told, phase=phase, made=made)
    if job.code == 0 and wanted and made < wanted and milestones.step is not None:
        told = "ended with 0 after {made} of {wanted} {wanted:step|steps}, {seconds} s"
        return "failed", phrase(told, made=made, wanted=wanted, seconds=seconds)
    if job.code == 0:
        if made:
            return "ok", phrase("{made} {made:step|steps} in {seconds} s", made=made, seconds=seconds)
        return "ok", phrase("ended well after {seconds} s", seconds=seconds)
    return "failed", phrase("{seconds} s, {phase}: {how}", seconds=seconds, phase=phase, how=_how(job.code))


def _how(code: int) -> Phrase:
    number = -code if code < 0 else code - 128
    try:
        ended_by = signal.Signals(number).name if number > 0 else ""
    except ValueError:
        ended_by = ""
    if ended_by == "SIGKILL":
        return phrase("killed (SIGKILL: often the kernel, out of memory)")
    if ended_by and (code < 0 or code > 128):
        return phrase("ended by {signal}", signal=ended_by)
    return phrase("exit code {code}", code=code)
