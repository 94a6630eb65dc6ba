"""The HTML page of `diagnose --html` and `watch --html`: verdict, phases, root cause, fixes, stacks, metrics of the
last steps.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from patcher.diagnose.diagnosis import Diagnosis, Finding
from patcher.i18n import Language, Phrase, phrase
from patcher.logs.milestones import phase_name
from patcher.report.diagnose import root_lines
from patcher.report.page import Both, both, render_page

_METRIC = re.compile(r"(?P<name>[\w/.@-]+):(?:[\w.]+\()?(?P<value>-?(?:nan|inf|\d[\d.]*(?:e[+-]?\d+)?))", re.IGNORECASE)
_VERDICTS: Mapping[str, str] = {"failed": "break", "stalled": "break", "ok": "guarded", "running": "inert"}
"""The class of the style sheet that a verdict has."""
_WIDE = 200
"""Columns of the lines about the root: the page breaks them itself."""


def _heading(found: Diagnosis) -> Phrase:
    if found.verdict == "running" and not found.live:
        return phrase("One run: no end seen")
    return phrase("One run: {verdict}", verdict=found.verdict)


def run_page(found: Diagnosis, *, log: str, command: str, date: str, stacks: Sequence[Mapping[str, Any]] = ()) -> str:
    """`stacks`: where the processes of a live run stand, as `watch` has them in its JSON."""
    steps, metrics = _metrics(found.step_lines)
    return render_page(
        "run",
        heading=both(_heading(found)),
        command=command,
        date=date,
        log=log,
        kind=_VERDICTS[found.verdict],
        lead=both(phrase("{lines} lines of {log}", lines=f"{found.lines:,}", log=log)),
        reached=_reached(found),
        phases=_phases(found),
        root=_texts(found),
        cascade=[_titled(one) for one in found.findings if one.role == "cascade"],
        stacks=[_stack(one) for one in stacks],
        steps=steps,
        metrics=metrics,
        telling=[{"number": one.number or "", "text": one.text} for one in found.telling],
        versions=sorted(found.versions.items()),
    )


def _reached(found: Diagnosis) -> Both:
    phase = phase_name(found.phase)
    if found.step is None:
        return both(phrase("in phase {phase}", phase=phase))
    steps = found.steps if found.steps is not None else "?"
    return both(phrase("in phase {phase}, after step {step} of {steps}", phase=phase, step=found.step, steps=steps))


def _phases(found: Diagnosis) -> list[dict[str, Any]]:
    """Each phase with its seconds, and how many of a hundred parts of the whole they are."""
    whole = sum(found.spans.values()) or 1.0
    return [
        {"name": both(phase_name(name)), "seconds": f"{seconds:.0f}", "share": round(100 * seconds / whole)}
        for name, seconds in found.spans.items()
    ]


def _texts(found: Diagnosis) -> dict[str, str]:
    """What the command says of the root, in both languages."""
    tongues: tuple[Language, ...] = ("en", "zh")
    return {tongue: re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(root_lines(found, tongue, _WIDE))) for tongue in tongues}


def _titled(one: Finding) -> dict[str, Any]:
    symptom = one.symptom
    title = (symptom.title, symptom.zh.title) if symptom is not None else (one.place.text, one.place.text)
    return {"title": title, "number": one.place.number, "text": one.place.text}


def _stack(one: Mapping[str, Any]) -> dict[str, Any]:
    ranks = ", ".join(map(str, one["ranks"])) or ", ".join(f"pid {pid}" for pid in one["pids"])
    return {"count": one["count"], "role": one["role"], "ranks": ranks, "frames": one["frames"], "odd": one["odd"]}


def _metrics(lines: Sequence[str]) -> tuple[list[str], list[dict[str, Any]]]:
    """The numbers of the steps, and of each metric its value in each; a metric is shown as the last step orders it."""
    read = [{one["name"]: one["value"] for one in _METRIC.finditer(line)} for line in lines]
    names = list(read[-1]) if read else []
    rows = [{"name": name, "values": [step.get(name, "") for step in read]} for name in names if name != "step"]
    return [step.get("step", "") for step in read], rows
