"""The result of a diagnosis: verdict, findings with their fixes, and the JSON of it."""

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
"""The id of a finding that no symptom record covers."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A fix that applies to the versions at hand: what to do, in English and Chinese, and commands ready to copy."""

    text: str
    zh: str
    commands: tuple[str, ...] = ()
    patch: str | None = None
    setting: str | None = None
    note: Phrase | Phrases = NOTHING
    """The status of the patch record on the tree at hand; empty without a tree."""


@dataclass(frozen=True, slots=True)
class Direction:
    """What the releases of a package show about a name that is missing: which of them have it.

    A field is empty where nothing is known.
    """

    distribution: str
    symbol: str
    removed_in: str = ""
    """The first release without the name, where the installed release lacks it and an earlier one had it."""
    added_in: str = ""
    """The first release with the name, where that is later than the installed one. Where the installed release is
    unknown, the first release that ever had it."""
    again: bool = False
    """Whether a release before `added_in` had the name too, and lost it in between."""
    moved_to: str = ""
    """The dotted name under which the installed release has it instead."""
    unknown: Phrase | Phrases | str = NOTHING
    """Why the releases do not answer the question."""
    against: tuple[str, ...] = ()
    """Installed packages whose requirements exclude the releases with the name: `vllm 0.20.2: transformers>=4.56,<5`.
    """
    asker: str = ""
    """The installed package whose code uses the missing name."""
    asks_until: str = ""
    """The first release of `asker` that no longer uses it."""
    asks_since: str = ""
    """The first release of `asker` that uses it, where the name came later than the installed release of what is asked.
    """
    against_asker: tuple[str, ...] = ()
    """Installed packages whose requirements exclude that release of `asker`."""

    @property
    def requirement(self) -> str:
        """What to install to have the name, as pip takes it; "" where no release is known to have it."""
        bounds = [f">={self.added_in}"] if self.added_in else []
        bounds += [f"<{self.removed_in}"] if self.removed_in else []
        return f"{self.distribution}{','.join(bounds)}" if bounds else ""

    @property
    def asker_requirement(self) -> str:
        """The alternative: the release of `asker` to install, as pip takes it; "" where none is known."""
        if self.asks_since:
            return f"{self.asker}<{self.asks_since}"
        return f"{self.asker}>={self.asks_until}" if self.asks_until else ""


@dataclass(frozen=True, slots=True)
class FailedLine:
    """The line of a package's code that failed, and a newer release without it."""

    distribution: str
    release: str
    """The installed release; "" where it is not known."""
    changed_in: str
    """The first release whose file no longer holds the line."""


@dataclass(frozen=True, slots=True)
class RaiseCondition:
    """Under which condition a package's code raises the message."""

    test: str
    """The condition, as code."""
    distribution: str
    release: str
    """The release whose code was read: the one that ran, or where that is not known one that has the message."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """What the failure itself says. It is made for a root cause that no specific record covers."""

    sentence: Phrase
    parts: MessageParts | None = None
    """The parsed message; None where its form is not known."""
    at: Frame | None = None
    """The frame that the explanation names: the innermost one outside of Python's standard library, else the innermost
    one."""
    own: str = ""
    """The innermost frame outside of installed packages, as `path:line`; "" where it is the same as `at`."""
    remedy: str = ""
    """The sentence of the message that says what to do."""
    line: str = ""
    """The line of code of `at`, where nothing that it called in its own package has failed instead."""
    direction: Direction | None = None
    failed_line: FailedLine | None = None
    """Where a newer release has another line in place of the one that failed."""
    raised_where: RaiseCondition | None = None
    caller: Frame | None = None
    """The innermost frame of another package that called what raised the exception; None where the sentence, or `own`,
    names it."""
    calls: str = ""
    """The line of code of `caller`."""
    often: Phrase | None = None
    """What mostly causes failures of this form."""
    nearest: tuple[str, ...] = ()
    """Keys of the tree's configuration that the missing key may have meant."""
    search: str = ""
    """A link to a search of public issues for the message."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A symptom in the log. `symptom` is None for a failure that no record covers.

    The role `root` marks the cause of the failure, `cascade` what followed from it.
    """

    symptom: Symptom | None
    role: Role
    place: LogLine
    count: int = 1
    fixes: tuple[Offer, ...] = ()
    explanation: Explanation | None = None
    threads: tuple[KnownIssue, ...] = ()
    """Public issues about a root cause, the best match first."""

    @property
    def id(self) -> str:
        return self.symptom.id if self.symptom is not None else UNKNOWN

    @property
    def needs_more(self) -> bool:
        """Whether no record names the cause: there is no record, or it covers many causes of one form."""
        return self.symptom is None or self.symptom.generic


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The verdict on a log. Findings come root first, then in the order of the log."""

    verdict: Verdict
    phase: Phase | None
    findings: tuple[Finding, ...] = ()
    telling: tuple[LogLine, ...] = ()
    """The lines that show the root cause; without one, the last lines that say where the run stands."""
    step: int | None = None
    steps: int | None = None
    step_lines: tuple[str, ...] = ()
    """The last steps with their metrics, as printed."""
    spans: Mapping[Phase, float] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    missing: Sequence[LogLine] = ()
    """Lines of the good run's log, in its order, that this log lacks; empty where no good run was named."""
    added: Sequence[LogLine] = ()
    """Lines of this log that the good run's log lacks."""
    lines: int = 0
    size: int = 0
    notes: tuple[Phrase, ...] = ()
    """Patterns of symptoms that were left out because they took too long on this log."""
    blank: bool = False
    """Whether the input shows no trace of a training run."""
    logs: tuple[str, ...] = ()
    """Where the input was a folder: the files that were read, those of its newest run."""
    earlier: tuple[str, ...] = ()
    """Where the input was a folder: the logs of earlier runs, the newest first. They were not read."""
    live: bool = True
    """Whether the run may go on: its log may still be written. `running` without it says only that no end is seen."""

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
            "live": self.live,
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
        "called_at": one.caller.shown if one.caller is not None else "",
        "often": str(one.often) if one.often is not None else "",
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
            "asks_since": direction.asks_since,
            "asker_requirement": direction.asker_requirement,
            "asker_refused_by": list(direction.against_asker),
            "unknown": str(direction.unknown),
        },
        "failed_line": None
        if one.failed_line is None
        else {
            "package": one.failed_line.distribution,
            "release": one.failed_line.release,
            "changed_in": one.failed_line.changed_in,
        },
        "raised_where": None
        if one.raised_where is None
        else {
            "test": one.raised_where.test,
            "package": one.raised_where.distribution,
            "release": one.raised_where.release,
        },
        "nearest": list(one.nearest),
        "search": one.search,
    }
