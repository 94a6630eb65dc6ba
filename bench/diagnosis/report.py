"""The table of figures, the misses, and whether the goals are met."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import get_args

from bench.diagnosis.answers import BASELINES, Answer, ours
from bench.diagnosis.figures import Score, score
from bench.diagnosis.labels import PARTS, Label, Origin, Part

GOAL = 0.95
"""Of the frozen logs that have a cause, those whose root is named."""


def report(labels: Sequence[Label], *, as_json: bool, show_frozen: bool, goals: bool) -> int:
    """Print the figures. Exit code 1 where a goal is asked for and missed."""
    started = time.monotonic()
    answers = ours(labels)
    seconds = time.monotonic() - started
    tools = {"diagnose": answers, **{name: [read(label) for label in labels] for name, read in BASELINES.items()}}
    scores = {name: {part: score(of_part(said, part)) for part in PARTS} for name, said in tools.items()}
    shown = [each for each in answers if show_frozen or each.label.part == "tuning"]
    if as_json:
        told = {name: {part: each.as_json() for part, each in parts.items()} for name, parts in scores.items()}
        print(
            json.dumps({"seconds": round(seconds, 1), "tools": told, "misses": [_miss(each) for each in wrong(shown)]})
        )
    else:
        for line in (*table(scores), "", *by_kind(answers), "", *misses(shown)):
            print(line)
        print(f"\n{len(labels)} logs in {seconds:.1f} s")
    return 0 if not goals or met(scores["diagnose"]) else 1


def met(scores: Mapping[Part, Score]) -> bool:
    """Whether the frozen logs' roots are named, and nothing healthy is called ill."""
    return scores["frozen"].root.value >= GOAL and not any(each.alarms.right for each in scores.values())


def of_part(answers: Sequence[Answer], part: Part) -> list[Answer]:
    return [each for each in answers if each.label.part == part]


def wrong(answers: Sequence[Answer]) -> list[Answer]:
    """Answers that are wrong in anything that is asked."""
    return [each for each in answers if _faults(each)]


def table(scores: Mapping[str, Mapping[Part, Score]]) -> Iterator[str]:
    """A Markdown table, one row a reader and part. A baseline names no symptom and no phase."""
    yield "| reader | logs | | root cause | line | verdict | phase | false alarms |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for name, parts in scores.items():
        for part, each in parts.items():
            root, phase = (str(each.root), str(each.phase)) if name == "diagnose" else ("", "")
            alarms = f"{each.alarms.right} of {each.alarms.of}"
            yield f"| {name} | {part} | {each.logs} | {root} | {each.line} | {each.verdict} | {phase} | {alarms} |"


CODE = re.compile(r"drift|removed|moved|renamed|missing-name|unexpected|api|import|circular|module|undefined|version")
"""Roots that are about versions and code; all others are about settings, data and the machine."""


def by_kind(answers: Sequence[Answer]) -> Iterator[str]:
    """A Markdown table: roots of the logs of each class and origin, as one figure for all hides the weaker one."""
    yield "| logs | part | | root cause | line |"
    yield "| --- | --- | --- | --- | --- |"
    for kind, chosen in _kinds(answers).items():
        for part in PARTS:
            each = score(of_part(chosen, part))
            yield f"| {kind} | {part} | {each.root.of} | {each.root} | {each.line} |"


def _kinds(answers: Sequence[Answer]) -> Mapping[str, list[Answer]]:
    sick = [each for each in answers if each.label.root]
    code = [each for each in sick if any(CODE.search(root) for root in each.label.root)]
    kinds = {"versions and code": code, "settings, data, machine": [each for each in sick if each not in code]}
    return kinds | {origin: [each for each in sick if each.label.origin == origin] for origin in get_args(Origin)}


def misses(answers: Sequence[Answer]) -> Iterator[str]:
    """A Markdown table, one row a log that is told wrongly: what was expected, and what was said."""
    found = wrong(answers)
    if not found:
        return
    yield "| log | wrong | expected | said |"
    yield "| --- | --- | --- | --- |"
    for each in found:
        label = each.label
        expected = (
            f"{label.verdict}, {label.phase or 'no phase'}, {' or '.join(label.root) or 'nothing'}{_at(label.lines)}"
        )
        said = f"{each.verdict}, {each.phase or 'no phase'}, {each.root or 'nothing'}{_at((each.line,))}"
        yield f"| {label.name} | {', '.join(_faults(each))} | {expected} | {said} {_cut(each.text)} |"


def _faults(answer: Answer) -> list[str]:
    label = answer.label
    faults = []
    if label.healthy and answer.alarm:
        faults.append("alarm")
    if label.root and not answer.root_right:
        faults.append("root")
    if label.root and not answer.line_right:
        faults.append("line")
    if not answer.verdict_right:
        faults.append("verdict")
    if label.phase and not answer.phase_right:
        faults.append("phase")
    return faults


def _at(lines: Sequence[int]) -> str:
    told = [str(number) for number in lines[:4] if number]
    return f" at {', '.join(told)}{' …' if len(lines) > 4 else ''}" if told else ""


def _cut(text: str) -> str:
    return text[:80].replace("|", "/")


def _miss(answer: Answer) -> dict[str, object]:
    label = answer.label
    return {
        "log": label.name,
        "wrong": _faults(answer),
        "expected": {"verdict": label.verdict, "phase": label.phase, "root": label.root, "lines": label.lines},
        "said": {"verdict": answer.verdict, "phase": answer.phase, "root": answer.root, "line": answer.line},
        "cascade": answer.cascade,
    }
