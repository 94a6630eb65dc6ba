"""What a rebuilt log is told of, and how it is kept with its label."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bench.diagnosis.labels import FOLDER, PARTS, part_of

SYMPTOMS = FOLDER.parents[1] / "symptoms"
MARK = "\x00"
"""Stands in the lines that show the cause, until the log is written."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """One log; `text` marks the lines of the cause."""

    name: str
    text: Callable[[], str]
    verdict: str
    phase: str
    root: tuple[str, ...]
    made: str
    versions: Mapping[str, str]
    line_end: str


LOGS: dict[str, Rebuilt] = {}


def log(
    name: str,
    *root: str,
    made: str,
    verdict: str = "failed",
    phase: str = "loop",
    line_end: str = "\n",
    versions: str = "",
) -> Callable[[Callable[[], str]], Callable[[], str]]:
    """Enter the log that the function writes; `root` are the symptoms that name its cause, `versions` is `verl=0.7.0 torch=2.8.0`."""

    def enter(text: Callable[[], str]) -> Callable[[], str]:
        told = dict(each.split("=") for each in versions.split())
        assert name not in LOGS, name
        LOGS[name] = Rebuilt(f"rebuilt-{name}", text, verdict, phase, root, made, told, line_end)
        return text

    return enter


def keep(rebuilt: Rebuilt) -> None:
    """Write the log and its label into the part where its name belongs. Raises ValueError
    where nothing shows the cause, or no symptom is named so."""
    if strange := [name for name in rebuilt.root if name != "unknown" and not (SYMPTOMS / f"{name}.toml").exists()]:
        raise ValueError(f"{rebuilt.name}: there is no symptom {', '.join(strange)}")
    text = rebuilt.text()
    shown = [number for number, line in enumerate(text.split("\n"), 1) if MARK in line]
    if bool(shown) != bool(rebuilt.root):
        raise ValueError(f"{rebuilt.name}: lines of the cause {shown}, roots {rebuilt.root}")
    for part in PARTS:
        for kind in ("log", "toml"):
            (FOLDER / part / f"{rebuilt.name}.{kind}").unlink(missing_ok=True)
    folder = FOLDER / part_of(rebuilt.name)
    folder.mkdir(parents=True, exist_ok=True)
    written = text.replace(MARK, "").replace("\n", rebuilt.line_end)
    (folder / f"{rebuilt.name}.log").write_bytes(written.encode())
    (folder / f"{rebuilt.name}.toml").write_text(label(rebuilt, shown), encoding="utf-8")


def label(rebuilt: Rebuilt, lines: list[int]) -> str:
    """The label in TOML; `lines` count from 1."""
    told = {
        "verdict": rebuilt.verdict,
        "phase": rebuilt.phase,
        "root": list(rebuilt.root),
        "lines": lines,
        "origin": "rebuilt",
        "made": rebuilt.made,
    }
    rows = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in told.items()]
    held = ", ".join(f"{json.dumps(name)} = {json.dumps(version)}" for name, version in rebuilt.versions.items())
    return "\n".join([*rows, f"versions = {{ {held} }}" if held else "versions = {}", ""])
