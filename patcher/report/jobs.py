"""The reports of `run` and `job`: start, status, usage of CPU and GPU, log, verdict, stop; and the exit code of a job.

With `--format json` standard output gets one object, and all else goes to standard error.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from patcher.errors import ExitCode
from patcher.i18n import Language, Phrase, language, listed, phrase, show
from patcher.logs.milestones import phase_name
from patcher.report.diagnose import root_lines
from patcher.terminal.document import Json, Lines, Output, Part
from patcher.terminal.live import clock
from patcher.terminal.printing import terminal_columns
from patcher.terminal.sequences import style

if TYPE_CHECKING:
    from patcher.diagnose.diagnosis import Diagnosis
    from patcher.jobs import Job, Stopped, Usage, Verdict
    from patcher.jobs.follow_log import Status
    from patcher.remote.host import Host

_STYLES = {"ok": "green", "failed": "red", "stopped": "yellow", "lost": "red", "running": "cyan"}
_OTHERS = 5
"""Other jobs that are shown, the newest. Set by hand."""


def log_report(host: Host, job: Job, text: str, verdict: Verdict | None, *, cut: bool) -> Iterator[Part]:
    """The log's last lines for a program; with how the job ended where it was followed. `cut`: not all of them."""
    fields = verdict.as_json() if verdict is not None else job_json(job)
    yield Json({"host": host.name, "job": fields, "text": text, "cut": cut})


def cut_report(text: str) -> Iterator[Part]:
    """That not all of the lines are there that were asked for."""
    size = len(text.encode("utf-8", "replace")) >> 20
    yield Lines(phrase("these are the last {size} MiB alone: the lines are long", size=size), err=True)


def unset_report(host: Host) -> Iterator[Part]:
    """Tell on standard error which secrets the job goes without."""
    if host.unset:
        message = phrase(
            "named as secrets and not set here, so the job goes without: {names}", names=", ".join(host.unset)
        )
        yield Lines(message, err=True)


def started_report(host: Host, job: Job) -> Iterator[Part]:
    """That the job is there, and how to come back to it."""
    tongue = language()
    lines = [show(phrase("job {id}: {script}", id=job.id, script=job.script), tongue)]
    if job.queue is not None:
        lines.append(show(phrase("in Slurm: {job}", job=job.queue.words), tongue))
    if job.tmux:
        lines.append(show(phrase("its log in tmux: {command}", command=_tmux(host, job)), tongue))
    yield Lines(*lines, err=True)


def job_report(host: Host, job: Job, output: Output) -> Iterator[Part]:
    """A job that was started and left."""
    if output == "json":
        yield Json({"host": host.name, "job": job_json(job)})
    else:
        yield Lines(*_back(host, job))


def verdict_report(host: Host, verdict: Verdict, output: Output, why: Diagnosis | None = None) -> Iterator[Part]:
    """How it ended, and what tells why; of one that was left running, how to come back. `why`: of one that failed."""
    if output == "json":
        yield Json(
            {"host": host.name, "job": verdict.as_json(), "diagnosis": why.as_json() if why is not None else None}
        )
        return
    tongue = language()
    if verdict.kind == "running":
        yield Lines(phrase("the job goes on"))
        yield Lines(*_back(host, verdict.job))
        return
    yield Lines(f"{_word(verdict, tongue)}  {show(verdict.detail, tongue)}")
    for line in verdict.lines:
        yield Lines(f"  {show(line, tongue)}")
    if verdict.kind != "ok":
        yield Lines("  " + show(phrase("its log: {command}", command=_command(host, "logs", verdict.job)), tongue))
    if why is not None and why.root is not None:
        yield Lines("", *root_lines(why, tongue, terminal_columns()))


def followed_report(host: Host, verdict: Verdict) -> Iterator[Part]:
    """How a job ended whose log was shown."""
    message = phrase("the job goes on") if verdict.kind == "running" else verdict.detail
    yield Lines(f"{host.name}: {show(message, language())}", err=True)


def job_status_report(host: Host, status: Status, output: Output) -> Iterator[Part]:
    """One job in full, the others in a line each."""
    if output == "json":
        yield Json(_status_json(host, status))
        return
    tongue = language()
    verdict, job = status.verdict, status.verdict.job
    yield Lines(f"{job.id}  {_word(verdict, tongue)}  {show(verdict.detail, tongue)}")
    rows: list[tuple[Phrase, str]] = [(phrase("script"), job.script)]
    if job.queue is not None:
        rows.append((phrase("Slurm"), job.queue.words))
    if verdict.spans:
        spans = " ▸ ".join(f"{show(phase_name(phase), tongue)} {took:.0f} s" for phase, took in verdict.spans.items())
        rows.append((phrase("phases"), spans))
    if verdict.step is not None:
        rows.append((phrase("steps"), f"{verdict.step} / {verdict.steps}" if verdict.steps else str(verdict.step)))
    rows += _usage_rows(status.usage)
    if verdict.dashboard is not None:
        rows.append((phrase("Ray dashboard"), verdict.dashboard))
    rows.append((phrase("log"), f"{job.log} ({job.size} B)"))
    if job.tmux and not job.over:
        rows.append((phrase("tmux"), _tmux(host, job)))
    if not job.watched:
        rows.append((phrase("note"), show(phrase("what watched it is gone: how it ends will not be noted"), tongue)))
    rows += [(phrase("log"), show(line, tongue)) for line in verdict.lines]
    if status.working is not None:
        rows.append((phrase("worked last"), f"{status.working['path']} ({status.working['job']})"))
    width = max(len(show(title, tongue)) for title, _ in rows)
    for title, text in rows:
        yield Lines(f"  {show(title, tongue):<{width}}  {text}")
    for other in status.others[: -_OTHERS - 1 : -1]:
        yield Lines(f"{other.id}  {show(other.state, tongue)}  {clock(other.seconds)}  {other.script}")


def stopping_report(processes: Sequence[Mapping[str, Any]]) -> Iterator[Part]:
    """What is about to be stopped."""
    if processes:
        listing = ", ".join(f"{process['pid']} {process['name']}" for process in processes)
        yield Lines(phrase("stopping {processes}", processes=listing), err=True)


def stopped_report(host: Host, stopped: Stopped, output: Output, running: Sequence[Job] = ()) -> Iterator[Part]:
    """What a stop came to. `running`: jobs that still run, where the one that was meant by default had ended."""
    if output == "json":
        report = {"was": stopped.was, "stopped": list(stopped.processes), "left": list(stopped.left)}
        still = [one.id for one in running]
        yield Json({"host": host.name, "job": job_json(stopped.job), **report, "running": still})
        return
    language()
    job, killed = stopped.job, sum(process["how"] == "KILL" for process in stopped.processes)
    for one in running:
        stop = _command(host, "stop", one)
        yield Lines(phrase("job {id} runs, and was left alone: {command}", id=one.id, command=stop))
    if stopped.had_ended:
        message = phrase("job {id} had ended already", id=job.id)
        if stopped.was != "ended":
            message = phrase("job {id} had ended already ({state})", id=job.id, state=listed(stopped.was))
        yield Lines(message)
        if not stopped.processes:
            return
    if job.queue is not None:
        yield Lines(phrase("job {id}: cancelled in Slurm, job {number}", id=job.id, number=job.queue.id))
        return
    message = phrase(
        "job {id}: {count} {count:process|processes} stopped, {killed} of them killed",
        id=job.id,
        count=len(stopped.processes),
        killed=killed,
    )
    yield Lines(message)
    for process in stopped.left:
        left = phrase("process {pid} ({name}) could not be stopped", pid=process["pid"], name=process["name"])
        yield Lines(left, err=True)


def exit_code(verdict: Verdict) -> int:
    """0 for a job that ended well, 1 for one that did not; 130 for one that was left running by an interrupt."""
    return {"ok": 0, "running": 130}.get(verdict.kind, ExitCode.FINDINGS)


def job_json(job: Job) -> dict[str, Any]:
    """A job as JSON; `seconds` is its age, `size` the bytes of its log."""
    return {
        "id": job.id,
        "state": job.state,
        "profile": job.profile,
        "script": job.script,
        "started": job.started,
        "seconds": round(job.seconds, 1),
        "code": job.code,
        "pid": job.pid,
        "user": job.user,
        "log": job.log,
        "size": job.size,
        "tmux": job.tmux,
        "elsewhere": job.elsewhere,
        "watched": job.watched,
        "queue": job.queue.as_json() if job.queue is not None else None,
    }


def _status_json(host: Host, status: Status) -> dict[str, Any]:
    usage = status.usage
    return {
        "host": host.name,
        "job": {**job_json(status.verdict.job), **status.verdict.as_json()},
        "usage": {
            "cpu": round(usage.cpu, 1),
            "memory": usage.memory,
            "processes": list(usage.processes),
            "gpus": list(usage.gpus),
        },
        "others": [job_json(job) for job in status.others],
        "working": status.working,
    }


def _usage_rows(usage: Usage) -> list[tuple[Phrase, str]]:
    rows = []
    if usage.processes:
        value = f"{usage.cpu:.0f} %, {usage.memory / 2**30:.1f} GiB, {len(usage.processes)}"
        rows.append((phrase("processor, memory, processes"), value))
    for gpu in usage.gpus:
        mine = {process["pid"] for process in usage.processes}
        busy = sum(process["memory"] for process in gpu["busy"] if process["pid"] in mine)
        value = f"{gpu['use'] or 0} %, {(gpu['used'] or 0) / 2**30:.1f} / {(gpu['memory'] or 0) / 2**30:.0f} GiB"
        if busy:
            value += f" ({busy / 2**30:.1f})"
        rows.append((phrase("GPU {index}", index=gpu["index"]), value))
    return rows


def _word(verdict: Verdict, tongue: Language) -> str:
    return style(show(verdict.kind, tongue), fg=_STYLES[verdict.kind], bold=True)


def _back(host: Host, job: Job) -> list[str]:
    """How to come back to a job, and how to end it."""
    ways = [_command(host, "attach", job), f"{_command(host, 'logs', job)} -f", _command(host, "stop", job)]
    return [f"  {way}" for way in ways]


def _command(host: Host, verb: str, job: Job) -> str:
    return " ".join(("uky-patch", "job", verb, host.words, "--id", job.id))


def _tmux(host: Host, job: Job) -> str:
    inner = f"cd {shlex.quote(job.folder)} && tmux -S tmux attach"
    if host.here:
        return inner
    port = ["-p", str(host.port)] if host.port else []
    shell = ["ssh", *port, "-t", host.target] if host.target else []
    if not host.via:
        return shlex.join([*shell, inner])
    # `docker exec -i box sh` becomes `docker exec -it box sh -c …`: tmux needs a terminal.
    client = [*("-it" if word == "-i" else word for word in host.via), "sh", "-c", inner]
    return shlex.join([*shell, shlex.join(client)] if shell else client)
