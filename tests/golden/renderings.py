"""git_ignore.py and the run scripts as fixed hosts get them, and the documents that are made from records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.golden import doors
from tests.golden.entries import Entry
from tests.golden.machine import REPOSITORY, settled

_DOCUMENTS = ("MIGRATION.md", "MIGRATION.zh-CN.md", "docs/symptoms.md", "docs/quick-fixes.md")
_RELEASES = ("0.6.1", "0.7.0", "0.9.1")
_SAMPLES = {"0.7.0 run_debug.sh", "0.7.0 git_ignore.py"}


def tasks() -> Sequence[str]:
    return (*_RELEASES, "documents")


def prepare(place: Path) -> None:
    for verl in _RELEASES:
        if not (place / "trees" / f"verl-{verl}").exists():
            doors.tree_of(verl, place / "trees")


def entries(task: str, place: Path) -> Iterator[Entry]:
    if task == "documents":
        for name in _DOCUMENTS:
            yield Entry(f"document {name}", {"text": (REPOSITORY / name).read_text("utf-8")})
        return
    for settings, files in doors.rendered(place / "trees" / f"verl-{task}", task).items():
        for name, text in files.items():
            full = settings == "plain" and f"{task} {name}" in _SAMPLES
            texts = {"text": settled(text, place)}
            yield Entry(f"verl {task} {settings} {name}", texts, "", frozenset({"text"} if full else ()))
