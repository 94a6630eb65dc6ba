"""The table of figures, for `check` and for other tools on the same labels."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from bench.accuracy.figures import Score, scores
from bench.accuracy.labels import PACKAGES
from bench.accuracy.ours import Judged, judged_all, pairs
from patcher.check.rules.members import JUDGED_WHOLE


def report(*, as_json: bool, baselines: bool, wrong: bool, processes: int) -> int:
    """Print the figures. Exit code 1 where `check` misses a goal."""
    from bench.accuracy.baselines import PAIRS, kept, run

    started = time.monotonic()
    judged = judged_all(processes)
    seconds = time.monotonic() - started
    others = run() if baselines else kept()
    ours = {package: scores(each for each in judged if each.label.package == package) for package in PACKAGES}
    theirs = {name: scores(each) for name, each in others.items()}
    if theirs:
        same = (each for each in judged if (each.label.verl, each.label.package, each.label.version) in PAIRS)
        theirs = {"check, on the pairs of the tools": scores(same), **theirs}
    if as_json:
        tools = {**{f"check, {package}": found for package, found in ours.items()}, **theirs}
        shown = {tool: {kind: figures(score) for kind, score in by_kind.items()} for tool, by_kind in tools.items()}
        print(json.dumps({"labels": sizes(judged), "seconds": round(seconds, 1), "tools": shown}))
    else:
        for line in table({**{f"check, {package}": found for package, found in ours.items()}, **theirs}):
            print(line)
        print(f"\n{sizes(judged)}\n{len(pairs())} pairs in {seconds:.0f} s")
        for line in disagreements(judged) if wrong else ():
            print(line)
    totals = {package: found["total"] for package, found in ours.items()}
    right = all(total.precision >= 0.97 and total.recall >= 0.97 for total in totals.values())
    return 0 if right and all(totals[package].unresolved <= 0.05 for package in JUDGED_WHOLE) else 1


def figures(score: Score) -> dict[str, float]:
    return {
        "labels": score.labels,
        "broken": score.found + score.missed,
        "precision": round(score.precision, 4),
        "recall": round(score.recall, 4),
        "unresolved": round(score.unresolved, 4),
    }


def table(tools: Mapping[str, Mapping[str, Score]]) -> list[str]:
    """A Markdown table, one row a tool and kind."""
    lines = [
        "| tool | use | labels | broken | precision | recall | unresolved |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for tool, by_kind in tools.items():
        for kind, score in by_kind.items():
            if score.labels:
                measures = f"{score.precision:.3f} | {score.recall:.3f} | {score.unresolved:.1%}"
                lines.append(f"| {tool} | {kind} | {score.labels} | {score.found + score.missed} | {measures} |")
    return lines


def sizes(judged: Sequence[Judged]) -> dict[str, Any]:
    """How many labels there are, by state."""
    count = Counter("asked" if each.label.asked else each.label.state for each in judged)
    return {state: count[state] for state in ("holds", "broken", "unknown", "asked")}


def disagreements(judged: Sequence[Judged]) -> list[str]:
    """What `check` gets wrong or leaves open, each use once with the releases that show it."""
    found: dict[tuple[str, ...], list[str]] = {}
    for each in judged:
        label = each.label
        agreed = each.said == ("broken" if label.state == "broken" else "silent")
        if label.state == "unknown" or label.asked or agreed:
            continue
        place = f"verl {label.verl} {label.file}:{label.lines[0]}"
        key = (place, label.kind, label.symbol, label.package, f"expected {label.state}, got {each.said}", label.why)
        found.setdefault(key, []).append(label.version)
    return [" | ".join((*key, " ".join(versions))) for key, versions in sorted(found.items())]
