"""The labels: what each log of the corpus is the log of, known from what was broken and not from what was printed."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from patcher.diagnose.diagnosis import Verdict
from patcher.logs.milestones import PHASES
from patcher.tables.toml import decode

FOLDER = Path(__file__).parents[2] / "tests" / "corpus"
Part: TypeAlias = Literal["tuning", "frozen"]
PARTS: tuple[Part, ...] = get_args(Part)
Origin: TypeAlias = Literal["real", "rebuilt", "document"]
"""`real`: a program printed it; `rebuilt`: from a program's own format strings; `document`: as a document quotes it."""
KEYS = frozenset({"verdict", "phase", "root", "lines", "origin", "made", "versions", "assume"})


@dataclass(frozen=True, slots=True)
class Label:
    """What is true of one log."""

    name: str
    part: Part
    verdict: Verdict
    phase: str
    """The phase that the run was in; empty where it has none, as `pip install`, and then it is not asked for."""
    root: tuple[str, ...]
    """Symptoms that name the cause, any of them; `unknown` where no record should know it; none where all is well."""
    lines: tuple[int, ...]
    """Where the cause is to be seen, any of them."""
    origin: Origin
    made: str
    versions: Mapping[str, str] = field(default_factory=dict)
    assume: Mapping[str, str] = field(default_factory=dict)
    """Versions that are told to `diagnose`, as with `--assume`."""

    @property
    def healthy(self) -> bool:
        return not self.root and self.verdict in ("ok", "running")

    @property
    def log(self) -> Path:
        return FOLDER / self.part / f"{self.name}.log"


def part_of(name: str) -> Part:
    """Where a log belongs, by its name alone."""
    return "frozen" if zlib.crc32(name.encode()) % 4 == 0 else "tuning"


def load() -> list[Label]:
    """All labels, by name. Raises ValueError with all that is wrong in them."""
    labels: list[Label] = []
    wrong: list[str] = []
    for part in PARTS:
        for path in sorted((FOLDER / part).glob("*.toml")):
            read = parse(path.read_text(encoding="utf-8"), path, part)
            if isinstance(read, Label):
                labels.append(read)
            else:
                wrong += read
    if wrong:
        raise ValueError("\n".join(wrong))
    return sorted(labels, key=lambda label: label.name)


def parse(text: str, path: Path, part: Part) -> Label | list[str]:
    """A label from its TOML, or what is wrong with it."""
    table = decode(text, path)
    if not isinstance(table, dict):
        return [f"{path}: {table}"]
    wrong = [f"{path}: {fault}" for fault in _faults(table)]
    if wrong:
        return wrong
    return Label(
        path.stem,
        part,
        **{name: table[name] for name in ("verdict", "phase", "origin", "made")},
        root=tuple(table["root"]),
        lines=tuple(table["lines"]),
        versions=table.get("versions", {}),
        assume=table.get("assume", {}),
    )


def _faults(table: Mapping[str, Any]) -> Iterable[str]:
    if unknown := sorted(table.keys() - KEYS):
        yield f"has keys that no label has: {', '.join(unknown)}"
    if missing := sorted(KEYS - {"versions", "assume"} - table.keys()):
        yield f"lacks {', '.join(missing)}"
        return
    if table["verdict"] not in get_args(Verdict):
        yield f"{table['verdict']!r} is no verdict"
    if table["phase"] not in ("", *PHASES):
        yield f"{table['phase']!r} is no phase"
    if table["origin"] not in get_args(Origin):
        yield f"{table['origin']!r} is no origin"
    if not (isinstance(table["made"], str) and table["made"].endswith(".")):
        yield "made is no sentence"
    if bool(table["root"]) != bool(table["lines"]):
        yield "has a root without lines, or lines without a root"
    if table["verdict"] in ("failed", "stalled") and not table["root"]:
        yield f"is {table['verdict']} and names no root"
    for name in ("versions", "assume"):
        held = table.get(name, {})
        if not (isinstance(held, dict) and all(isinstance(version, str) for version in held.values())):
            yield f"{name} is no table of versions"
