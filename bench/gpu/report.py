"""`python -m bench.gpu.report [RESULTS.json…]`: the tables of docs/gpu-runs.md anew.

Results are given the oldest first, and of a command that ran more than once in a scene the last run counts. What the
tables need of them is kept in kept.json, so that they can be made again without a GPU.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

KEPT = Path(__file__).with_name("kept.json")
DOCUMENT = Path(__file__).parents[2] / "docs" / "gpu-runs.md"
_PHASES = ("config", "dataset", "resource-pool", "actor", "rollout", "loop")


def reduced(ran: Mapping[str, Any]) -> dict[str, Any]:
    """A command with only that part of its JSON which a table shows."""
    told = ran["told"]
    found: dict[str, Any] = {}
    if "job" in told:
        job = told["job"]
        found["job"] = {name: job.get(name) for name in ("verdict", "phase", "phases", "step", "seconds", "milestones")}
    if "timings" in told:
        names = ("step", "save_checkpoint")
        steps = (one for one in told["timings"] if "step" in one)
        found["timings"] = [{name: round(one[name], 1) for name in names if name in one} for one in steps]
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


def known() -> list[dict[str, Any]]:
    """What is kept of the runs on a GPU."""
    ran: list[dict[str, Any]] = json.loads(KEPT.read_text(encoding="utf-8"))["ran"]
    return ran


def latest(ran: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Each command of each scene as it ran last, reduced."""
    return list({(one["scene"], one["verl"], one["command"]): reduced(one) for one in ran}.values())


def tables(ran: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Markdown, a table a kind of scene, by the name that it has in the document."""
    return {
        "released": _released(ran),
        "trained": _trained(ran),
        "verified": _verified(ran),
        "stalled": _stalled(ran),
        "timed": _timed(ran),
    }


def rendered(text: str, made: Mapping[str, str]) -> str:
    """A document with its tables anew: each stands between `<!-- name -->` and `<!-- end -->`."""
    for name, table in made.items():
        before, mark, rest = text.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition("<!-- end -->\n")
        if not end:
            raise SystemExit(f"the document has no place for the table {name}")
        text = before + mark + table + end + after
    return text


def _rows(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines) + "\n"


def _of(ran: Sequence[Mapping[str, Any]], scene: str, part: str) -> Iterator[Mapping[str, Any]]:
    return (one for one in ran if one["scene"].startswith(scene) and part in one["told"])


def _released(ran: Sequence[Mapping[str, Any]]) -> str:
    """The release as it is: what ended it, by which record it is repaired, and whether `check` had told it."""
    rows = []
    checked = {one["verl"]: one["told"]["breaks"] for one in _of(ran, "check", "breaks")}
    for one in sorted(_of(ran, "untouched", "symptoms"), key=_verl):
        diagnosis = one["told"]
        root = next((symptom for symptom in diagnosis["symptoms"] if symptom["role"] == "root"), None)
        breaks = checked[one["verl"]]
        records = root["records"] if root else []
        told = sum(found["repaired_by"] in records for found in breaks)
        text = f"`{root['text'].rpartition('error: ')[2]}`" if root else ""
        rows.append(
            (
                one["verl"],
                diagnosis["phase"],
                text,
                root["id"] if root else "",
                ", ".join(records),
                f"{told} of {len(breaks)}",
            )
        )
    return _rows(
        ("verl", "ends in", "with", "`diagnose` says", "record", "breaks of `check` that this record repairs"), rows
    )


def _verl(one: Mapping[str, Any]) -> str:
    return str(one["verl"])


def _spans(job: Mapping[str, Any]) -> list[str]:
    return [f"{job['phases'][name]:.0f} s" if name in job["phases"] else "–" for name in _PHASES]


def _trained(ran: Sequence[Mapping[str, Any]]) -> str:
    rows = []
    for one in sorted(_of(ran, "trained on", "job"), key=lambda one: (one["verl"], one["scene"])):
        job = one["told"]["job"]
        made = next(other["told"] for other in _of(ran, "trained", "applied") if other["verl"] == one["verl"])
        records = f"{made['applied']} in {made['files']} files"
        end = f"{job['verdict']}, {job['step']} steps in {job['seconds']:.0f} s"
        rows.append((one["verl"], one["scene"].removeprefix("trained on "), records, end, *_spans(job)))
    return _rows(("verl", "data", "records that apply made", "verdict", *_PHASES), rows)


def _timed(ran: Sequence[Mapping[str, Any]]) -> str:
    """Two steps of each profile, the slowest last, and apart from its step what the checkpoint took."""
    rows = []
    jobs = [(one["scene"].removeprefix("timed "), one["told"]) for one in _of(ran, "timed ", "job")]
    whole = {profile: told["job"]["seconds"] for profile, told in jobs}
    for profile, told in sorted(jobs, key=lambda one: whole[one[0]]):
        steps: list[Mapping[str, float]] = [*told.get("timings", ()), {}, {}]
        first, second = steps[:2]
        saved = second.get("save_checkpoint", 0)
        rows.append(
            (
                profile,
                told["job"]["verdict"],
                *_spans(told["job"]),
                f"{first['step']:.1f} s" if first else "not made",
                f"{second['step'] - saved:.1f} s" if second else "not made",
                f"{saved:.1f} s" if saved else "none",
                f"{whole[profile]:.0f} s",
                f"{whole[profile] / whole['standard']:.2f}" if "standard" in whole else "not run",
            )
        )
    head = ("profile", "verdict", *_PHASES, "first step", "second step", "its checkpoint", "whole", "of standard")
    return _rows(head, rows)


def _verified(ran: Sequence[Mapping[str, Any]]) -> str:
    """The checks that a level adds, and of those below it the ones that took a second or more."""
    rows = []
    for one in _of(ran, "verified", "checks"):
        level = one["command"].split("--level ")[1].split()[0]
        rows += [
            (level, check["level"], check["name"], check["status"], f"{check['seconds']:.1f} s", check["detail"])
            for check in one["told"]["checks"]
            if check["level"] == level or (level == "engine" and check["seconds"] >= 1)
        ]
    return _rows(("asked for", "level", "check", "status", "took", "says"), rows)


def _stalled(ran: Sequence[Mapping[str, Any]]) -> str:
    rows = []
    for one in _of(ran, "stalled", "odd"):
        told = one["told"]
        odd = "; ".join(f"{', '.join(group['titles'])}: {group['doing']}" for group in told["odd"])
        rows.append((one["scene"].removeprefix("stalled "), one["verl"], told["phase"], f"{told['silent']:.0f} s", odd))
    return _rows(("what was stopped", "verl", "phase that `watch` names", "silent", "the odd process"), rows)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.gpu.report", description=__doc__)
    parser.add_argument("results", type=Path, nargs="*")
    given = parser.parse_args()
    if given.results:
        read = [json.loads(path.read_text(encoding="utf-8")) for path in given.results]
        on_gpu = next(found["versions"] for found in read if found["versions"]["gpu"])
        ran = latest(one for found in read for one in found["ran"])
        kept = {"date": max(found["date"] for found in read), "versions": on_gpu, "ran": ran}
        KEPT.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    DOCUMENT.write_text(rendered(DOCUMENT.read_text(encoding="utf-8"), tables(known())), encoding="utf-8")


if __name__ == "__main__":
    main()
