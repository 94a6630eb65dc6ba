"""How far the migration of a tree to a host has come: one small file for the pair, in the user's state folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from patcher.errors import TreeError, message_of
from patcher.homes import state_folder
from patcher.i18n import phrase
from patcher.migrate.order import Step, StepName
from patcher.secrets.redacting import Redactor
from patcher.terminal.report_file import write_whole
from patcher.worktree import files
from patcher.worktree.json_text import parse_json
from patcher.worktree.ledger import now

FORMAT = 1
"""The form of the file; an entry of another one is not read."""


@dataclass(frozen=True, slots=True)
class Proven:
    """An environment that passed the checks: a digest of what it consists of, when, and what was found."""

    key: str
    at: str
    found: str


@dataclass(frozen=True, slots=True)
class Entry:
    """What the last run came to. `job` is the id of a job that was started and not followed to its end."""

    at: str
    done: tuple[StepName, ...]
    stopped: StepName | None
    why: str = ""
    job: str | None = None
    proven: Proven | None = None
    steps: Sequence[Mapping[str, Any]] = field(default_factory=tuple)


def entry(steps: Sequence[Step], job: str | None, proven: Proven | None) -> Entry:
    """The entry for a run that has come so far."""
    failed = next((step for step in steps if step.status == "fail"), None)
    rows = [(step.name, step.status, round(step.seconds, 3), str(step.detail)) for step in steps]
    return Entry(
        at=now(),
        done=tuple(step.name for step in steps if step.status in ("ok", "warn")),
        stopped=failed.name if failed else None,
        why=str(failed.detail) if failed else "",
        job=job,
        proven=proven,
        steps=tuple(dict(zip(("name", "status", "seconds", "detail"), row, strict=True)) for row in rows),
    )


@dataclass(frozen=True, slots=True)
class Journal:
    """The file for one tree and one host."""

    file: Path

    def read(self) -> Entry | None:
        """The last run; None where there was none, or its entry cannot be read."""
        try:
            data = parse_json(files.read(self.file, files.SETTINGS_BYTES))
            if data.pop("format") != FORMAT:
                return None
            proven = Proven(**data.pop("proven")) if data["proven"] else data.pop("proven")
            return Entry(done=tuple(data.pop("done")), proven=proven, **data)
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return None

    def write(self, entry: Entry, redactor: Redactor) -> None:
        """Replace the entry, without secrets. Raises TreeError."""
        text = json.dumps(redactor.value({"format": FORMAT, **asdict(entry)}), indent=1)
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TreeError(phrase("{path}: cannot be written", path=self.file), cause=message_of(error)) from error
        write_whole(self.file, f"{text}\n")


def journal_for(root: Path, host: str) -> Journal:
    """The journal of the tree at `root` on its way to `host`."""
    key = hashlib.sha256(f"{root}\0{host}".encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return Journal(state_folder() / "migrations" / f"{key}.json")
