"""Commands of this tool, as they can be pasted."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from patcher.i18n import Language, phrase, show

if TYPE_CHECKING:
    from patcher.patching.next_step import NextStep
    from patcher.session.session import Session

_told_above: ContextVar[bool] = ContextVar("_told_above", default=False)


def command_line(session: Session, *words: str) -> str:
    """`uky-patch` with these words and the shared options of this call: `uky-patch apply --root fork --assume …`."""
    return shlex.join(["uky-patch", *words]) if _told_above.get() else session.command(*words)


@contextmanager
def options_told_above() -> Iterator[None]:
    """Leave the shared options out of commands, where one line has told them for all."""
    token = _told_above.set(True)
    try:
        yield
    finally:
        _told_above.reset(token)


def next_lines(step: NextStep | None, session: Session, language: Language) -> list[str]:
    """What the next command does, where that needs saying, and the command at the end of a line of its own."""
    if step is None:
        return []
    about = [show(step.about, language)] if step.about else []
    return [*about, phrase("Next: {command}", command=command_line(session, *step.words)).render(language)]
