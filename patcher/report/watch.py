"""The report and exit code of `watch`: state of the run, groups of processes by stack with the odd one, locks,
diagnosis.

Exit code 1 where the run failed, stalls or is gone without a sign of a good end, 130 where an interrupt left it
running, else 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from patcher.errors import ExitCode
from patcher.i18n import NOTHING, Phrase, Phrases, language, phrase, show
from patcher.logs.duration import duration
from patcher.logs.milestones import Phase, phase_name
from patcher.report.diagnose import lines
from patcher.terminal.document import Json, Lines, Output, Part
from patcher.terminal.sequences import style
from patcher.watch.result import Snapshot, WatchResult
from patcher.watch.run_state import Activity, Reason, RunStatus
from patcher.watch.stacks.grouping import Group
from patcher.watch.stacks.processes import Process, Role

_STYLES = {"ok": "green", "failed": "red", "stalled": "red", "running": "cyan", "lost": "red"}
_BAD = ("failed", "stalled", "lost")
_REASONS: dict[Reason, Phrase] = {
    "limit": phrase("longer than this phase ever should, and silent"),
    "bar": phrase("its progress bar does not move, and nothing is read"),
    "still": phrase("none of its processes does anything"),
    "given": phrase("silent for longer than --limit"),
}


def watch_report(report: WatchResult, output: Output) -> Iterator[Part]:
    """The state of the run, the stacks of its processes, and what is known of both."""
    if output == "json":
        yield Json(report.as_json())
        return
    tongue = language()
    if report.left:
        yield Lines(phrase("the job goes on"))
        return
    word = style(show(report.verdict, tongue), fg=_STYLES[report.verdict], bold=True)
    yield Lines(f"{word}  {show(phase_line(report.status, report.phase), tongue)}")
    if report.verdict == "stalled" and report.status.reason is not None:
        yield Lines(f"  {show(_REASONS[report.status.reason], tongue)}")
    if report.detail:
        yield Lines(f"  {show(report.detail, tongue)}")
    if report.verdict in ("stalled", "running") and (activity := activity_line(report.activity)):
        yield Lines(f"  {show(activity, tongue)}")
    if report.snapshot is not None:
        if report.snapshot.phase not in (None, report.phase):
            phase = phase_name(report.snapshot.phase)
            yield Lines(f"  {show(phrase('its frames are of the phase {phase}', phase=phase), tongue)}")
        for line in stack_lines(report.snapshot):
            yield Lines(f"  {show(line, tongue)}")
    below = lines(report.diagnosis, "", tongue)[1:]
    if below and (report.diagnosis.findings or report.verdict in _BAD):
        yield Lines(*below)


def exit_code(report: WatchResult) -> int:
    """0 for a run that ended well or goes on, 1 for one that did not, 130 after an interrupt."""
    if report.left:
        return 130
    return ExitCode.FINDINGS if report.verdict in _BAD else ExitCode.CLEAN


def phase_line(status: RunStatus, phase: Phase | None) -> Phrase:
    """`rollout, 4 min 10 s (usual for this profile: 30–90 s; no new log line for 2 min 05 s)`."""
    low, high = (f"{seconds:.3g}" if seconds < 100 else f"{seconds:.0f}" for seconds in status.usual)
    spans = {"low": low, "high": high, "silent": duration(status.silent)}
    usual_time = phrase("usual for this profile: {low}–{high} s; no new log line for {silent}", **spans)
    if phase == "loop" and status.usual[1] < 1:
        usual_time = phrase("usual: less than 1 s; no new log line for {silent}", **spans)
    elif phase == "loop":
        usual_time = phrase("usual: {low}–{high} s; no new log line for {silent}", **spans)
    fields = {"phase": phase_name(phase), "seconds": duration(status.seconds), "usual": usual_time}
    if phase == "loop":
        return phrase("{phase}, {seconds} since the last step ({usual})", **fields)
    return phrase("{phase}, {seconds} ({usual})", **fields)


def activity_line(activity: Activity) -> Phrases | None:
    """What the job uses now, in short; nothing where it is not known."""
    if not activity.seconds or not activity.processes:
        return None
    parts: list[Phrase] = [
        phrase(
            "{count} {count:process|processes}, {busy} of them busy, processor {cpu} %, memory {memory} GiB, "
            "disk {disk} MB/s",
            count=activity.processes,
            busy=len(activity.busy),
            cpu=f"{sum(activity.cpu.values()):.0f}",
            memory=f"{activity.memory / 2**30:.1f}",
            disk=f"{activity.disk / 1e6:.1f}",
        )
    ]
    parts += [
        phrase(
            "GPU {index}: {use} %, {used} of {all} GiB",
            index=gpu["index"],
            use=gpu["use"] or 0,
            used=f"{(gpu['used'] or 0) / 2**30:.1f}",
            all=f"{(gpu['memory'] or 0) / 2**30:.0f}",
        )
        for gpu in activity.gpus
    ]
    return Phrases(tuple(parts))


_ROLES: dict[Role, tuple[Phrase, Phrase]] = {
    "driver": (phrase("driver"), phrase("drivers")),
    "rank": (phrase("rank"), phrase("ranks")),
    "engine": (phrase("engine process"), phrase("engine processes")),
    "loader": (phrase("data loader"), phrase("data loaders")),
    "worker": (phrase("other process"), phrase("other processes")),
    "helper": (phrase("program"), phrase("programs")),
    "system": (phrase("process of Ray"), phrase("processes of Ray")),
}
_CLOSED: dict[str, tuple[Phrase, Phrase]] = {
    "user": (
        phrase("they belong to another user"),
        phrase("Run uky-patch watch as that user, or as root."),
    ),
    "capabilities": (
        phrase("they may do more than this command may"),
        phrase("Run uky-patch watch as root, or give its container SYS_PTRACE."),
    ),
    "yama": (
        phrase("kernel.yama.ptrace_scope forbids it"),
        phrase("Run uky-patch watch as root, or once: sysctl kernel.yama.ptrace_scope=0"),
    ),
    "closed": (
        phrase("they have closed themselves to others"),
        phrase("Run uky-patch watch as root."),
    ),
    "": (
        phrase("py-spy is not there"),
        phrase("Install it beside the job's interpreter: pip install py-spy. Jobs that uky-patch starts need none."),
    ),
}
_SHOWN = 12
_PIDS = 2
"""Groups of processes that are shown, and processes that are named in each. Set by hand."""


def stack_lines(snapshot: Snapshot) -> list[Phrase | Phrases | str]:
    """Groups, odd ones marked, ranks that are absent, locks, and what could not be looked into."""
    shown = [group for group in snapshot.grouped.groups if group.role not in ("helper", "system") or group.odd]
    shown.sort(key=lambda group: not group.odd)
    lines: list[Phrase | Phrases | str] = [_group(group) for group in shown[:_SHOWN]]
    if snapshot.grouped.absent:
        absent = ", ".join(map(str, snapshot.grouped.absent))
        lines.append(phrase("rank {ranks} of {size} is not there", ranks=absent, size=snapshot.grouped.size))
    lines += _locks(snapshot)
    lines += _unread(snapshot.processes)
    if not snapshot.processes:
        lines.append(phrase("no process of it is seen here"))
    hosts = [one.host for one in snapshot.taken]
    if len(hosts) > 1 or any("ray" in process.title for process in snapshot.processes if process.role == "system"):
        lines.append(phrase("looked at: {hosts}; no other node", hosts=", ".join(hosts)))
    return lines


def _group(group: Group) -> Phrase:
    count = len(group.processes)
    hosts = sorted({process.host for process in group.processes})
    where = phrase(" on {hosts}", hosts=", ".join(hosts)) if hosts != ["here"] else ""
    fields = {"role": _ROLES[group.role][count > 1], "ranks": _ranks(group), "hosts": where}
    who = (
        phrase("{count} {role}{ranks}{hosts}", count=count, **fields)
        if count > 1
        else phrase("{role}{ranks}{hosts}", **fields)
    )
    path = " < ".join(f"{one.place}:{one.line}" if one.line else one.place for one in group.frames[:3])
    detail = Phrases(tuple(part for part in (path, group.action) if part), ", ") or phrase("cannot be looked into")
    if group.odd:
        return phrase("odd: {who}: {action}; {why}", who=who, action=detail, why=group.odd)
    return phrase("{who}: {action}", who=who, action=detail)


def _ranks(group: Group) -> Phrase:
    pids = ", ".join(map(str, group.pids[:_PIDS]))
    if not group.ranks:
        return phrase(" (pid {pids})", pids=pids)
    if group.role == "loader":
        return phrase(" of rank {ranks} (pid {pids})", ranks=_runs(group.ranks), pids=pids)
    if len(group.pids) > _PIDS:
        return phrase(" {ranks}", ranks=_runs(group.ranks))
    return phrase(" {ranks} (pid {pids})", ranks=_runs(group.ranks), pids=pids)


def _runs(numbers: Sequence[int]) -> str:
    """`0–4, 6`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs)


def _locks(snapshot: Snapshot) -> list[Phrase]:
    found = []
    for taken in snapshot.taken:
        for lock in taken.locks:
            if lock.waiters:
                holders = ", ".join(f"{pid} ({name})" for pid, name in lock.holders.items())
                waiters = ", ".join(map(str, lock.waiters))
                template = "file lock {path}: held by process {holders}, waited for by {waiters}"
                found.append(phrase(template, waiters=waiters, path=lock.path or "?", holders=holders))
    return found


def _unread(processes: Sequence[Process]) -> list[Phrase]:
    """Why some could not be looked into, and what would help."""
    python = [one for one in processes if one.role not in ("helper", "system") and not one.threads and not one.stopped]
    found = []
    for why, count in Counter(one.closed for one in python).items():
        reason, help_ = _CLOSED[why]
        detail = next((text for one in python if one.closed == why for _, text in one.failed), "")
        # Nothing forbids it, and py-spy is there but failed: its own words say more than advice to install it.
        if why == "" and detail:
            reason, help_ = phrase("py-spy answered: {text}", text=detail), NOTHING  # type: ignore[assignment]
        template = "{count} {count:process|processes} known from the kernel alone: {reason}. {help}"
        found.append(phrase(template, count=count, reason=reason, help=help_))
    return found
