"""What a plan says of each record: one outcome of a closed set, with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

from patcher.i18n import NOTHING, Phrase, Phrases
from patcher.i18n.codec import decode, encode

if TYPE_CHECKING:
    from patcher.rewrite.outcome import Candidate, Unparseable

Kind = Literal[
    "applied",
    "pending",
    "not-needed",
    "resolved",
    "adopted",
    "drifted",
    "ambiguous",
    "conflict",
    "tampered",
    "unparseable",
    "missing-file",
]

SETTLED: frozenset[Kind] = frozenset({"applied", "not-needed", "resolved", "adopted"})
"""Nothing to do: the record's edits stand already, by uky-patch or by hand, or are not needed."""
FAILED: frozenset[Kind] = frozenset({"drifted", "ambiguous", "conflict", "tampered", "unparseable", "missing-file"})
"""The record cannot be applied as it stands: one of these in a plan ends `apply`, exit code 3, before it writes."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in a file. `line` counts from 1, in the text as it is now."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Remaining:
    """A place that still has what a record repairs, and the symbol that is not there."""

    spot: Spot
    symbol: str
    breaks: bool = True
    """Whether verl's plain training job, without options, runs into it."""


@dataclass(frozen=True, slots=True)
class RecordOutcome:
    """Where one record stands on one tree."""

    id: str
    kind: Kind
    detail: Phrase | Phrases
    """One sentence: why this outcome."""
    files: tuple[str, ...] = ()
    """The files that the outcome is about: of `pending` and `applied` those that its edits change or have changed, of
    `adopted`, and of `resolved` by places that were found, the files of these, else all that the record names."""
    spots: tuple[Spot, ...] = ()
    title: str = ""
    title_zh: str = ""
    note: Phrase | Phrases = NOTHING
    """What deserves saying beside the title of a record that holds or is about to."""
    nearest: tuple[tuple[str, Candidate], ...] = ()
    """For a record that found no anchor: the nearest place, by file."""
    skipped: bool = False
    """The versions call for it, and it is left out all the same, as the user asked."""
    since: tuple[str, ...] = ()
    """Its files that were changed by hand or laid out anew since it was applied, and still hold what it made."""

    def packed(self) -> dict[str, Any]:
        """As the ledger's note keeps it, in JSON; without `nearest`, which only failed records have."""
        return {
            "id": self.id,
            "kind": self.kind,
            "detail": encode(self.detail),
            "files": list(self.files),
            "spots": [[spot.file, spot.line] for spot in self.spots],
            "title": self.title,
            "title_zh": self.title_zh,
            "note": encode(self.note),
            "skipped": self.skipped,
            "since": list(self.since),
        }

    @classmethod
    def unpacked(cls, kept: Mapping[str, Any]) -> RecordOutcome:
        """Raises KeyError, TypeError or ValueError for what `packed` did not make."""
        return cls(
            id=kept["id"],
            kind=kept["kind"],
            detail=decode(kept["detail"]),
            files=tuple(kept["files"]),
            spots=tuple(Spot(file, line) for file, line in kept["spots"]),
            title=kept["title"],
            title_zh=kept["title_zh"],
            note=decode(kept["note"]) or NOTHING,
            skipped=bool(kept["skipped"]),
            since=tuple(kept["since"]),
        )


FIELDS = tuple(one.name for one in fields(RecordOutcome))
"""A note that was made with other fields is not read."""


@dataclass(frozen=True, slots=True)
class FileState:
    """A file as the tree holds it. `base` is its text without any record: the pre-image, or the file itself."""

    path: str
    base: str | None
    """None where the file is missing, a record has made it or, with a `problem`, it is no text."""
    current: str | None
    tampered: bool = False
    """The ledger knows the file, and it no longer holds what the records made. It is not written, and `base` is its
    pre-image."""
    problem: Unparseable | None = None
    since: bool = False
    """It was changed since the records were applied, and still holds what they made."""
    made: str = ""
    """The digest of what the records made of `base`, where `current` says the same in another layout, or has a hand's
    words beside their markers; "" where that is not known of the file."""


@dataclass(frozen=True, slots=True)
class Applied:
    """What the ledger knows of a record: its TOML text as applied, the verl version then, and the files it changed."""

    id: str
    source: str
    verl: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FilePlan:
    """A file's text as it should be, and the ids of the records whose edits are in it, in order."""

    path: str
    text: str | None
    """None: the file is not to be there."""
    records: tuple[str, ...]
    made: str = ""
    """The digest of what the records make, where `text` says the same in the layout of the file that is there."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One outcome for each record, and the files that would change."""

    outcomes: tuple[RecordOutcome, ...]
    files: Mapping[str, FilePlan] = field(default_factory=dict)
    """Every file that a planned record edits or a withdrawn one edited, changed or not."""
    steps: tuple[tuple[str, Mapping[str, str]], ...] = ()
    """The planned records in order, each with its files' texts right after it."""

    @property
    def texts(self) -> dict[str, str]:
        """The planned texts, by path, of the files that are to be there."""
        return {path: file.text for path, file in self.files.items() if file.text is not None}

    @property
    def failed(self) -> tuple[RecordOutcome, ...]:
        return tuple(outcome for outcome in self.outcomes if outcome.kind in FAILED)

    @property
    def pending(self) -> tuple[RecordOutcome, ...]:
        return tuple(outcome for outcome in self.outcomes if outcome.kind == "pending")
