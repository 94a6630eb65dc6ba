"""What `apply` would write and what becomes of each record, for every verl release on every vLLM release."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.golden import doors
from tests.golden.entries import Entry, as_text
from tests.golden.releases import VERL, VLLM

SAMPLES = {("0.6.1", "0.20.2", "default"), ("0.8.0", "0.12.0", "default"), ("0.9.1", "0.33.0", "default")}


def tasks() -> Sequence[str]:
    """The vLLM releases; the newest first, as they take longest."""
    return VLLM[::-1]


def prepare(place: Path) -> None:
    for verl in VERL:
        doors.tree_of(verl, place / "trees")


def entries(vllm: str, place: Path) -> Iterator[Entry]:
    for verl in VERL:
        for name, planned in doors.plans(place / "trees" / f"verl-{verl}", vllm).items():
            texts = "".join(f"=== {path}\n{text}" for path, text in planned.texts.items())
            kinds = Counter(str(outcome["kind"]) for outcome in planned.outcomes)
            yield Entry(
                f"verl {verl} vllm {vllm} {name}",
                {"texts": texts, "outcomes": as_text(planned.outcomes)},
                " ".join(f"{kind}:{count}" for kind, count in sorted(kinds.items())),
                frozenset({"outcomes"} if (verl, vllm, name) in SAMPLES else ()),
            )
