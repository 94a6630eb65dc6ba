"""The result of a diagnosis: verdict, findings with their fixes, and its JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from patcher.diagnose.evidence import LogLine
from patcher.diagnose.exception_message import MessageParts
from patcher.diagnose.frame import Frame
from patcher.diagnose.known_issues import KnownIssue
from patcher.i18n import NOTHING, Phrase, Phrases
from patcher.logs.milestones import Phase
from patcher.records.symptoms import Symptom

Verdict: TypeAlias = Literal["ok", "failed", "stalled", "running"]
Role: TypeAlias = Literal["root", "cascade"]
UNKNOWN = "unknown"
"""The id of a finding that no record covers."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A fix that counts here: what to do, and the commands to copy, ready."""

    text: str
    zh: str
    commands: tuple[str, ...] = ()
    patch: str | None = None
    setting: str | None = None
    note: Phrase | Phrases = NOTHING
    """Where the patch record stands on the tree at hand, if there is one."""


@dataclass(frozen=True, slots=True)
class Direction:
    """What the releases of a package say of a name that one of them lacks."""

    distribution: str
    symbol: str
    removed_in: str = ""
    """The first release of those that lack it up to the one at hand."""
    added_in: str = ""
    """The first later release that has it; the first of all, where the release at hand is not known."""
    moved_to: str = ""
    """Where the version at hand has it instead."""
    unknown: Phrase | Phrases | str = NOTHING
    """Why nothing can be said."""
    against: tuple[str, ...] = ()
    """What is installed and refuses the release that has it: `vllm 0.20.2: transformers>=4.56,<5`."""
    asker: str = ""
    """The installed package that asks for it."""
    asks_until: str = ""
    """Its first release that asks for it no more."""
    against_asker: tuple[str, ...] = ()
    """What is installed and refuses that release."""

    @property
    def requirement(self) -> str:
        """What to install, as pip takes it; "" where nothing is known to have the name."""
        bounds = [f">={self.added_in}"] if self.added_in else []
        bounds += [f"<{self.removed_in}"] if self.removed_in else []
        return f"{self.distribution}{','.join(bounds)}" if bounds else ""

    @property
    def asker_requirement(self) -> str:
        """The other way to bring the two together; "" where none is known."""
        return f"{self.asker}>={self.asks_until}" if self.asks_until else ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """What the failure itself says, where no record covers it."""

    sentence: Phrase
    parts: MessageParts | None = None
    """The parts of the message, where it is of a known shape."""
    at: Frame | None = None
    """The innermost frame that is not of Python's own library, else the innermost one."""
    own: str = ""
    """The innermost frame outside of installed packages."""
    remedy: str = ""
    """The sentence of the message that says what to do."""
    direction: Direction | None = None
    nearest: tuple[str, ...] = ()
    """Keys of the tree's configuration that the missing one may have meant."""
    search: str = ""
    """A link that searches public threads for the message."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A symptom in the log. `symptom` is None for a failure that no record covers."""

    symptom: Symptom | None
    role: Role
    place: LogLine
    count: int = 1
    fixes: tuple[Offer, ...] = ()
    explanation: Explanation | None = None
    threads: tuple[KnownIssue, ...] = ()
    """Public threads about a root, the nearest first."""

    @property
    def id(self) -> str:
        return self.symptom.id if self.symptom is not None else UNKNOWN

    @property
    def needs_more(self) -> bool:
        """Whether no record tells its cause, or only one of many causes does."""
        return self.symptom is None or self.symptom.generic


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A log's verdict. Findings come root first, then in the order of the log."""

    verdict: Verdict
    phase: Phase | None
    findings: tuple[Finding, ...] = ()
    telling: tuple[LogLine, ...] = ()
    """The most telling lines, where the failure is unknown or there is none."""
    step: int | None = None
    steps: int | None = None
    step_lines: tuple[str, ...] = ()
    """The last steps with their metrics, as printed."""
    spans: Mapping[Phase, float] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    missing: Sequence[LogLine] = ()
    """Lines of a good run's log, in its order, that this one never came to; where one was given."""
    added: Sequence[LogLine] = ()
    """Lines that the good run's log has not."""
    lines: int = 0
    size: int = 0
    notes: tuple[Phrase, ...] = ()
    """What of the symptoms could not be looked for."""
    blank: bool = False
    """Whether nothing that was read is of a training run."""
    logs: tuple[str, ...] = ()
    """Of a folder, the files that were read: those of its newest run."""
    earlier: tuple[str, ...] = ()
    """Of a folder, the logs of earlier runs, the newest first; they were left aside."""

    @property
    def root(self) -> Finding | None:
        return next((finding for finding in self.findings if finding.role == "root"), None)

    @property
    def clean(self) -> bool:
        """Whether there is nothing to act on."""
        return self.verdict in ("ok", "running") and not self.findings

    def as_json(self) -> dict[str, Any]:
        return {
            "phase": self.phase,
            "verdict": self.verdict,
            "symptoms": [_finding(finding) for finding in self.findings],
            "step": self.step,
            "steps": self.steps,
            "phases": {name: round(seconds, 1) for name, seconds in self.spans.items()},
            "versions": dict(self.versions),
            "telling": _lines(self.telling),
            "missing": _lines(self.missing),
            "added": _lines(self.added),
            "lines": self.lines,
            "bytes": self.size,
            "notes": [str(note) for note in self.notes],
            "logs": list(self.logs),
            "earlier": list(self.earlier),
        }


def _lines(places: Sequence[LogLine]) -> list[dict[str, Any]]:
    return [{"file": place.file, "line": place.number, "text": place.text} for place in places]


def _finding(finding: Finding) -> dict[str, Any]:
    symptom = finding.symptom
    return {
        "id": finding.id,
        "line": finding.place.number,
        "file": finding.place.file,
        "text": finding.place.text,
        "title": symptom.title if symptom is not None else None,
        "cause": symptom.cause if symptom is not None else None,
        "fix": ["\n".join((offer.text, *offer.commands)) for offer in finding.fixes],
        "records": [name for offer in finding.fixes for name in (offer.patch, offer.setting) if name],
        "role": finding.role,
        "count": finding.count,
        "kind": symptom.kind if symptom is not None else "failure",
        "topic": symptom.topic if symptom is not None else None,
        "notes": [str(offer.note) for offer in finding.fixes if offer.note],
        "explanation": _explanation(finding.explanation) if finding.explanation is not None else None,
        "threads": [{"url": one.url, "fixed_in": one.fixed_in, "about": one.about} for one in finding.threads],
    }


def _explanation(one: Explanation) -> dict[str, Any]:
    direction = one.direction
    return {
        "sentence": str(one.sentence),
        "raised_at": one.at.shown if one.at is not None else "",
        "own": one.own,
        "remedy": one.remedy,
        "direction": None
        if direction is None
        else {
            "package": direction.distribution,
            "symbol": direction.symbol,
            "removed_in": direction.removed_in,
            "added_in": direction.added_in,
            "moved_to": direction.moved_to,
            "requirement": direction.requirement,
            "refused_by": list(direction.against),
            "asker": direction.asker,
            "asks_until": direction.asks_until,
            "asker_requirement": direction.asker_requirement,
            "asker_refused_by": list(direction.against_asker),
            "unknown": str(direction.unknown),
        },
        "nearest": list(one.nearest),
        "search": one.search,
    }
