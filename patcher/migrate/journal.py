"""How far the migration of a tree to a folder of a host has come: a small file for each, in the user's state folder.

~/.local/state/uky-patch/migrations/1a2b3c4d5e6f7a8b.json
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from patcher.errors import TreeError, message_of
from patcher.homes import state_folder
from patcher.i18n import phrase
from patcher.migrate.order import Step, StepName
from patcher.remote.host import Host
from patcher.secrets.redacting import Redactor
from patcher.worktree import files
from patcher.worktree.hashing import digest_of
from patcher.worktree.json_text import parse_json
from patcher.worktree.ledger import now

FORMAT = 1
"""The format of the file. A file of another format counts as missing."""


@dataclass(frozen=True, slots=True)
class Proven:
    """An environment that has passed the checks."""

    key: str
    """A digest of what the checks depend on (`fingerprint_of` of `patcher.migrate.steps`)."""
    at: str
    """The UTC time in ISO 8601."""
    found: str
    """The names of the checks that were fine."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The result of the last run."""

    at: str
    """The UTC time in ISO 8601."""
    done: tuple[StepName, ...]
    stopped: StepName | None
    """The step that failed."""
    why: str = ""
    """Why it failed."""
    job: str | None = None
    """The id of a job that was started and still ran."""
    proven: Proven | None = None
    steps: Sequence[Mapping[str, Any]] = field(default_factory=tuple)
    """Name, status, seconds and detail of each step."""


def entry(steps: Sequence[Step], job: str | None, proven: Proven | None) -> Entry:
    """The entry for a run whose steps so far are `steps`."""
    failed = next((step for step in steps if step.status == "fail"), None)
    return Entry(
        at=now(),
        done=tuple(step.name for step in steps if step.status in ("ok", "warn")),
        stopped=failed.name if failed else None,
        why=str(failed.detail) if failed else "",
        job=job,
        proven=proven,
        steps=tuple(
            {"name": step.name, "status": step.status, "seconds": round(step.seconds, 3), "detail": str(step.detail)}
            for step in steps
        ),
    )


@dataclass(frozen=True, slots=True)
class Journal:
    """The file for one tree and one folder of a host; it need not exist."""

    file: Path

    def read(self) -> Entry | None:
        """The entry for the last run; None if there was none, or it cannot be read."""
        try:
            data = parse_json(files.read(self.file, files.SETTINGS_BYTES))
            if data.pop("format") != FORMAT:
                return None
            proven = Proven(**data.pop("proven")) if data["proven"] else data.pop("proven")
            return Entry(done=tuple(data.pop("done")), proven=proven, **data)
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return None

    def write(self, entry: Entry, redactor: Redactor) -> None:
        """Write the entry, with secrets replaced. Raises TreeError."""
        text = json.dumps(redactor.value({"format": FORMAT, **asdict(entry)}), indent=1)
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            # Until the next write the disk may have the entry before: each step looks at what is there anyway.
            files.write_whole_file(self.file, f"{text}\n".encode(), durable=False)
        except OSError as error:
            raise TreeError(phrase("{path}: cannot be written", path=self.file), cause=message_of(error)) from error


def journal_for(root: Path, host: Host) -> Journal:
    """The journal for migrating the tree at `root` to this host, into the folder that is named for it."""
    pair = "\0".join(filter(None, (str(root), host.name, host.path)))
    key = digest_of(pair.encode("utf-8", "surrogateescape"))[:16]
    return Journal(state_folder() / "migrations" / f"{key}.json")
