"""Tables of what the scenes came to: `python -m bench.gpu.report RESULTS.json…` prints them.

`--keep FILE` writes what the tables need, so that the document can be rendered without a GPU.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

KEPT = Path(__file__).with_name("kept.json")
_PHASES = ("config", "dataset", "resource-pool", "actor", "rollout", "weight-sync")


def reduced(ran: Mapping[str, Any]) -> dict[str, Any]:
    """A command with only that part of its JSON which a table shows."""
    told = ran["told"]
    found: dict[str, Any] = {}
    if "job" in told:
        job = told["job"]
        found["job"] = {name: job.get(name) for name in ("verdict", "phase", "phases", "step", "seconds", "milestones")}
    if "symptoms" in told:
        found["symptoms"] = [
            {name: one[name] for name in ("id", "role", "records", "text")} for one in told["symptoms"]
        ]
        found["verdict"], found["phase"] = told["verdict"], told["phase"]
    if "stacks" in told:
        groups = told["stacks"]["groups"]
        odd = [
            {name: group[name] for name in ("titles", "role", "doing", "why", "how")}
            for group in groups
            if group["odd"]
        ]
        found |= {"silent": told["silent"], "limit": told["limit"], "odd": odd}
    if "checks" in told:
        found["checks"] = [
            {name: one[name] for name in ("name", "level", "status", "seconds", "detail")}
            for one in told["checks"]
            if one["level"] != "markers"
        ]
    if "records" in told and "written" in told:
        applied = sum(one["outcome"] == "applied" for one in told["records"])
        found |= {"applied": applied, "files": len(told["written"])}
    if "findings" in told:
        found["breaks"] = [
            {name: one[name] for name in ("symbol", "repaired_by", "file", "line")}
            for one in told["findings"]
            if one["severity"] == "break"
        ]
    return {**{name: ran[name] for name in ("scene", "verl", "command", "code", "seconds")}, "told": found}


def tables(ran: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Markdown, a table a kind of scene."""
    yield _released(ran)
    yield _trained(ran)
    yield _timed(ran)
    yield _verified(ran)
    yield _stalled(ran)


def _rows(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines) + "\n"


def _of(ran: Sequence[Mapping[str, Any]], scene: str, part: str) -> Iterator[Mapping[str, Any]]:
    return (one for one in ran if one["scene"].startswith(scene) and part in one["told"])


def _released(ran: Sequence[Mapping[str, Any]]) -> str:
    """The release as it is: what ended it, by which record it is repaired, and whether `check` had told it."""
    rows = []
    for one in _of(ran, "untouched", "symptoms"):
        told = one["told"]
        root = next((symptom for symptom in told["symptoms"] if symptom["role"] == "root"), None)
        breaks: list[Mapping[str, Any]] = next(
            (other["told"]["breaks"] for other in _of(ran, "check", "breaks") if other["verl"] == one["verl"]), []
        )
        records = root["records"] if root else []
        known = sum(found["repaired_by"] in records for found in breaks)
        text = f"`{root['text'][-90:]}`" if root else ""
        rows.append(
            (
                one["verl"],
                told["phase"],
                text,
                root["id"] if root else "",
                ", ".join(records),
                f"{known} of {len(breaks)}",
            )
        )
    return _rows(
        ("verl", "ends in", "with", "`diagnose` says", "record", "breaks of `check` that this record repairs"), rows
    )


def _spans(job: Mapping[str, Any]) -> list[str]:
    return [f"{job['phases'][name]:.0f} s" if name in job["phases"] else "–" for name in _PHASES[:5]]


def _trained(ran: Sequence[Mapping[str, Any]]) -> str:
    rows = []
    for one in _of(ran, "trained on", "job"):
        job = one["told"]["job"]
        made = next(other["told"] for other in _of(ran, "trained", "applied") if other["verl"] == one["verl"])
        records = f"{made['applied']} in {made['files']} files"
        end = f"{job['verdict']}, {job['step']} steps in {job['seconds']:.0f} s"
        rows.append((one["verl"], one["scene"].removeprefix("trained on "), records, end, *_spans(job)))
    return _rows(("verl", "data", "records that apply made", "verdict", *_PHASES[:5]), rows)


def _timed(ran: Sequence[Mapping[str, Any]]) -> str:
    rows = []
    whole = {one["scene"]: one["told"]["job"]["seconds"] for one in _of(ran, "timed", "job")}
    for one in _of(ran, "timed ", "job"):
        job = one["told"]["job"]
        ratio = job["seconds"] / whole["timed standard"] if "timed standard" in whole else float("nan")
        rows.append(
            (
                one["scene"].removeprefix("timed "),
                job["verdict"],
                *_spans(job),
                f"{job['seconds']:.0f} s",
                f"{ratio:.2f}",
            )
        )
    return _rows(("profile", "verdict", *_PHASES[:5], "two steps, whole", "of standard"), rows)


def _verified(ran: Sequence[Mapping[str, Any]]) -> str:
    rows = []
    for one in _of(ran, "verified", "checks"):
        level = one["command"].split("--level ")[1].split()[0]
        rows += [
            (level, check["name"], check["status"], f"{check['seconds']:.1f} s", check["detail"])
            for check in one["told"]["checks"]
            if check["level"] == level or level == "engine"
        ]
    return _rows(("asked", "check", "status", "took", "says"), rows)


def _stalled(ran: Sequence[Mapping[str, Any]]) -> str:
    rows = []
    for one in _of(ran, "stalled", "odd"):
        told = one["told"]
        odd = "; ".join(f"{', '.join(group['titles'])}: {group['doing']}" for group in told["odd"])
        rows.append((one["scene"].removeprefix("stalled "), one["verl"], told["phase"], f"{told['silent']:.0f} s", odd))
    return _rows(("what was stopped", "verl", "phase that `watch` names", "silent", "the odd process"), rows)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.gpu.report", description=__doc__)
    parser.add_argument("results", type=Path, nargs="*", default=[KEPT])
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    read = [json.loads(path.read_text(encoding="utf-8")) for path in given.results]
    ran = [reduced(one) for found in read for one in found["ran"]]
    if given.keep:
        kept = {"date": max(found["date"] for found in read), "versions": read[0]["versions"], "ran": ran}
        given.keep.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print("\n".join(tables(ran)))


if __name__ == "__main__":
    main()
