"""The record that `new` has begun."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from patcher.i18n import language, phrase
from patcher.report.commands import command_line
from patcher.terminal.document import Exact, Json, Lines, Part

if TYPE_CHECKING:
    from patcher.recording.saving import Saved
    from patcher.recording.skeleton import Skeleton
    from patcher.session.session import Session


def new_report(name: str, found: Skeleton, session: Session, saved: Saved | None) -> Iterator[Part]:
    """`saved`: None where nothing was written; then the record itself is shown."""
    path = saved.paths[0] if saved is not None else None
    if session.output == "json":
        place = {"file": found.file, "line": found.line, "statement": found.statement}
        yield Json({"id": name, "place": place, "text": found.text, "path": str(path) if path is not None else None})
        return
    if path is None:
        yield Exact(found.text)
        return
    language()
    shown = path.relative_to(session.tree.root).as_posix()
    yield Lines(phrase("{path} is begun: finish what is marked … in it", path=shown))
    yield Lines(phrase("Next: {command}", command=command_line(session, "explain", name)))
