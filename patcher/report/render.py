"""A rendered file for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from patcher.i18n import language, phrase, show
from patcher.terminal.document import Diff, Exact, Lines, Part, unified

if TYPE_CHECKING:
    from patcher.profiles.rendering import RenderedOnHost

_OUTCOMES = {
    "written": "{path}: written",
    "updated": "{path}: updated",
    "unchanged": "{path}: unchanged",
    "kept": "{path}: edited by hand since it was rendered, kept",
    "foreign": "{path}: not made by this tool, kept",
}


def diff_of(shown: RenderedOnHost) -> str:
    """From what is there to what is rendered; empty where they are the same."""
    if shown.written is None:
        return ""
    there = shown.written.there
    if there is None and shown.written.outcome == "unchanged":
        return ""
    return unified(shown.file.path, there or "", shown.file.text)


def as_json(shown: RenderedOnHost, *, wrote: bool) -> dict[str, Any]:
    """The JSON of `render`; `mode` is octal, `diff` empty where the file there is the same."""
    outcome = shown.written.outcome if shown.written is not None else None
    return {
        "host": shown.host,
        "file": shown.file.path,
        "mode": f"{shown.file.mode:o}",
        "state": outcome,
        "written": [shown.file.path] if wrote and outcome in ("written", "updated") else [],
        "notes": [str(note) for note in shown.file.notes],
        "diff": diff_of(shown),
        "text": shown.file.text,
    }


def text_report(shown: RenderedOnHost) -> Iterator[Part]:
    """The file itself to standard output, notes to standard error."""
    yield from _notes(shown)
    yield Exact(shown.file.text)


def difference_report(shown: RenderedOnHost) -> Iterator[Part]:
    """What would change in the file that is there."""
    yield from _notes(shown)
    yield Diff(diff_of(shown))


def written_report(shown: RenderedOnHost) -> Iterator[Part]:
    """How writing ended; a file that stays is shown with what it differs in."""
    assert shown.written is not None
    yield from _notes(shown)
    language()
    yield Lines(phrase(_OUTCOMES[shown.written.outcome], path=shown.file.path))
    if shown.written.outcome in ("kept", "foreign"):
        yield Diff(diff_of(shown))


def _notes(shown: RenderedOnHost) -> Iterator[Part]:
    tongue = language()
    for note in shown.file.notes:
        yield Lines(f"{show('note', tongue)}: {show(note, tongue)}", err=True)
