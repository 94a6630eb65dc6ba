"""A rendered file for people and for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from patcher.i18n import language, phrase, show
from patcher.report.diffs import show_diff, unified
from patcher.terminal.printing import say, show_exactly

if TYPE_CHECKING:
    from patcher.profiles.rendering import RenderedOnHost

_SAID = {
    "written": "{path}: written",
    "updated": "{path}: updated",
    "unchanged": "{path}: unchanged",
    "kept": "{path}: edited by hand since it was rendered, kept",
    "foreign": "{path}: not made by this tool, kept",
}


def diff_of(shown: RenderedOnHost) -> str:
    """From what is there to what is rendered; empty where they are the same."""
    there = shown.written.there
    if there is None and shown.written.outcome == "unchanged":
        return ""
    return unified(shown.file.path, there or "", shown.file.text)


def as_json(shown: RenderedOnHost, *, wrote: bool) -> dict[str, Any]:
    return {
        "host": shown.host,
        "file": shown.file.path,
        "mode": f"{shown.file.mode:o}",
        "state": shown.written.outcome,
        "written": [shown.file.path] if wrote and shown.written.outcome in ("written", "updated") else [],
        "notes": [str(note) for note in shown.file.notes],
        "diff": diff_of(shown),
        "text": shown.file.text,
    }


def show_text(shown: RenderedOnHost) -> None:
    """The file itself to standard output, notes to standard error."""
    _notes(shown)
    show_exactly(shown.file.text)


def show_difference(shown: RenderedOnHost) -> None:
    """What would change in the file that is there."""
    _notes(shown)
    show_diff(diff_of(shown))


def show_written(shown: RenderedOnHost) -> None:
    """How writing ended; a file that stays is shown with what it differs in."""
    _notes(shown)
    tongue = language()
    say(show(phrase(_SAID[shown.written.outcome], path=shown.file.path), tongue))
    if shown.written.outcome in ("kept", "foreign"):
        show_diff(diff_of(shown))


def _notes(shown: RenderedOnHost) -> None:
    tongue = language()
    for note in shown.file.notes:
        say(f"{show('note', tongue)}: {show(note, tongue)}", err=True)
