"""What `diagnose` says of every log of the corpus as JSON, and of a quarter of them as text in both languages."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.golden import doors
from tests.golden.entries import Entry, as_text
from tests.golden.machine import REPOSITORY, settled

_CORPUS = REPOSITORY / "tests/corpus"
_AT_ONCE = 12
_SAMPLES = {"frozen/verl-drift-060", "frozen/rebuilt-drift-lora-models"}


def tasks() -> Sequence[tuple[str, ...]]:
    logs = sorted(str(path.relative_to(_CORPUS)) for path in _CORPUS.glob("*/*.log"))
    return [tuple(logs[start : start + _AT_ONCE]) for start in range(0, len(logs), _AT_ONCE)]


def prepare(place: Path) -> None:
    """Each log lies alone in a folder: what is said of a log without a run names those beside it."""
    for log in _CORPUS.glob("*/*.log"):
        alone = place / "corpus" / log.parent.name / log.stem
        alone.mkdir(parents=True)
        shutil.copyfile(log, alone / "train.log")


def entries(logs: Sequence[str], place: Path) -> Iterator[Entry]:
    os.chdir(place)
    for log in logs:
        key = log.removesuffix(".log")
        answer = doors.answer("diagnose", f"corpus/{key}/train.log", "--format", "json")
        value = json.loads(settled(answer.out, place))
        roots = [f"{one['id']}:{one['line']}" for one in value.get("symptoms", ()) if one["role"] == "root"]
        texts = {}
        languages = (("en", "C.UTF-8"), ("zh", "zh_CN.UTF-8")) if log.startswith("frozen/") else ()
        for name, language in languages:
            os.environ["LC_ALL"] = language
            shown = doors.answer("diagnose", f"corpus/{key}/train.log")
            texts[name] = settled(f"{shown.out}--- stderr\n{shown.err}", place)
        os.environ["LC_ALL"] = "C.UTF-8"
        yield Entry(
            key,
            {"json": as_text(value), **texts},
            " ".join([f"exit:{answer.code}", value.get("verdict", "error"), *roots]),
            frozenset({"json", "en", "zh"} if key in _SAMPLES else ()),
        )
