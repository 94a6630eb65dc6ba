"""A rendered file for people and for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from patcher.i18n import language, phrase, show
from patcher.report.diffs import show_diff, unified
from patcher.terminal.printing import say, show_exactly

if TYPE_CHECKING:
    from patcher.migrate.rendering import Shown

_SAID = {
    "written": "{path}: written",
    "updated": "{path}: updated",
    "unchanged": "{path}: unchanged",
    "kept": "{path}: edited by hand since it was rendered, kept",
    "foreign": "{path}: not made by this tool, kept",
}


def diff_of(shown: Shown) -> str:
    """From what is there to what is rendered; empty where they are the same."""
    there = shown.put.there
    if there is None and shown.put.how == "unchanged":
        return ""
    return unified(shown.file.path, there or "", shown.file.text)


def as_json(shown: Shown, *, wrote: bool) -> dict[str, Any]:
    return {
        "host": shown.host,
        "file": shown.file.path,
        "mode": f"{shown.file.mode:o}",
        "state": shown.put.how,
        "written": [shown.file.path] if wrote and shown.put.how in ("written", "updated") else [],
        "notes": [str(note) for note in shown.file.notes],
        "diff": diff_of(shown),
        "text": shown.file.text,
    }


def show_text(shown: Shown) -> None:
    """The file itself to standard output, notes to standard error."""
    _notes(shown)
    show_exactly(shown.file.text)


def show_difference(shown: Shown) -> None:
    """What would change in the file that is there."""
    _notes(shown)
    show_diff(diff_of(shown))


def show_written(shown: Shown) -> None:
    """How writing ended; a file that stays is shown with what it differs in."""
    _notes(shown)
    tongue = language()
    say(show(phrase(_SAID[shown.put.how], path=shown.file.path), tongue))
    if shown.put.how in ("kept", "foreign"):
        show_diff(diff_of(shown))


def _notes(shown: Shown) -> None:
    tongue = language()
    for note in shown.file.notes:
        say(f"{show('note', tongue)}: {show(note, tongue)}", err=True)
