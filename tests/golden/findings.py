"""What `check` finds, with severities, and what it drafts; a small matrix; what other pins would mean."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.golden import doors
from tests.golden.entries import Entry, as_text
from tests.golden.machine import settled
from tests.golden.releases import CHECKED, VERL

_PAIRS = [
    (verl, vllm)
    for row, verl in enumerate(VERL[:7])
    for column, vllm in enumerate(CHECKED)
    if (row + column) % 2 == 0 or vllm == "0.20.2"
]
"""Every second pair, as on a chess board: each release of one meets half of those of the other."""
_DRAFTS = (("0.6.1", "0.20.2"), ("0.7.0", "0.33.0"), ("0.9.1", "0.33.0"))
_SINCE = (("0.6.1", "0.12.0"), ("0.8.0", "0.20.2"))
_MATRICES = (("--verl", ">=0.6,<0.7.1", "--against", "vllm>=0.12,<0.14"),)
_PINS = {"0.6.1": "vllm==0.20.2", "0.8.0": "vllm==0.33.0"}
_SAMPLES = {"0.6.1 0.20.2"}

Task = tuple[str, ...]


def tasks() -> Sequence[Task]:
    return [
        *(("matrix", *words) for words in _MATRICES),
        *(("since", *pair) for pair in _SINCE),
        *(("draft", *pair) for pair in _DRAFTS),
        *(("pins", *pair) for pair in _PINS.items()),
        *(("check", *pair) for pair in _PAIRS),
    ]


def prepare(place: Path) -> None:
    for verl in _PINS:
        if not (place / "trees" / f"verl-{verl}").exists():
            doors.tree_of(verl, place / "trees")


def entries(task: Task, place: Path) -> Iterator[Entry]:
    what, *words = task
    if what == "matrix":
        yield _answered("check --matrix " + " ".join(words), place, "check", "--matrix", *words)
    elif what == "pins":
        verl, to = words
        tree = str(place / "trees" / f"verl-{verl}")
        key = f"pins --to {to} verl {verl}"
        yield _answered(key, place, "pins", "--to", to, "--root", tree, "--assume", "vllm==0.11.0")
    else:
        yield _checked(what, *words, place=place)


def _checked(what: str, verl: str, vllm: str, *, place: Path) -> Entry:
    words = ["check", "--verl", verl, "--against", f"vllm=={vllm}"]
    words += [] if what == "since" else ["--no-since"]
    drafts = place / "out" / f"drafts-{verl}-{vllm}"
    words += ["--draft", str(drafts)] if what == "draft" else []
    key = f"{' '.join(words[:5])}{'' if what == 'check' else f' --{what}'}"
    found = _answered(key, place, *words, full=what == "check" and f"{verl} {vllm}" in _SAMPLES)
    if what != "draft":
        return found
    written = sorted(path for path in drafts.rglob("*") if path.is_file())
    texts = "".join(f"=== {path.relative_to(drafts)}\n{path.read_text(encoding='utf-8')}" for path in written)
    shown = f"{found.shown} drafts:{len(written)}"
    return Entry(found.key, {**found.values, "drafts": settled(texts, place)}, shown, found.in_full)


def _answered(key: str, place: Path, *words: str, full: bool = False) -> Entry:
    # The matrix starts processes, which a process of a pool may not.
    ask = doors.answer_apart if "--matrix" in words else doors.answer
    answer = ask(*words, "--format", "json")
    value = json.loads(settled(answer.out, place))
    shown = f"exit:{answer.code}{_counts(value)}"
    return Entry(key, {"json": as_text(value)}, shown, frozenset({"json"} if full else ()))


def _counts(value: Any) -> str:
    findings = value.get("findings") if isinstance(value, dict) else None
    if not isinstance(findings, list):
        return ""
    severities = Counter(str(one["severity"]) for one in findings)
    kinds = Counter(str(one["kind"]) for one in findings)
    both = [*sorted(severities.items()), *sorted(kinds.items())]
    return "".join(f" {name}:{count}" for name, count in both)
