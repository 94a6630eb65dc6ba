"""`docs --write`: the text of a fork's own MIGRATION.md in both languages, and whether each file was written, kept or
foreign.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from patcher.i18n import Language, Phrase, language, phrase, show
from patcher.patching.change_record import NAMES, ForkState, WriteOutcome, with_line
from patcher.report.commands import command_line
from patcher.report.documents import record_entry
from patcher.templating import environment
from patcher.terminal.document import Json, Lines, Part

if TYPE_CHECKING:
    from patcher.session.session import Session

_TEMPLATES: Mapping[str, tuple[str, Language]] = {
    NAMES[0]: ("fork.md.j2", "en"),
    NAMES[1]: ("fork.zh-CN.md.j2", "zh"),
}
_LINE = "<!-- line -->"


def fork_document(name: str, state: ForkState, session: Session) -> str:
    """The text of the document `name`. Pure but for reading its template."""
    template, tongue = _TEMPLATES[name]
    lines: dict[str, list[int]] = {}
    for mark in state.unrecorded:
        lines.setdefault(mark.file, []).append(mark.line)
    text = (
        environment()
        .get_template(template)
        .render(
            line=_LINE,
            verl=state.verl,
            pins=sorted(state.pins.items()),
            applied=list(state.applied.items()),
            marker=session.config.marker,
            package=session.config.package,
            own=[(record_entry(one.record, tongue), one.in_tree) for one in state.own],
            shipped=[record_entry(one.record, tongue) for one in state.shipped],
            unrecorded=list(lines.items()),
            hosts=state.hosts,
        )
    )
    return with_line(text, _LINE, state.basis)


def _outcome(name: str, outcome: WriteOutcome) -> Phrase:
    match outcome:
        case "written":
            return phrase("{name}: written", name=name)
        case "unchanged":
            return phrase("{name}: holds as it is", name=name)
        case "foreign":
            return phrase("{name} is there and was not written by uky-patch; it stays", name=name)
        case "edited":
            return phrase("{name} was edited by hand since it was written; it stays", name=name)


def fork_documents_report(written: Mapping[str, WriteOutcome], session: Session) -> Iterator[Part]:
    """What became of each file."""
    if session.output == "json":
        files = [{"file": name, "outcome": outcome} for name, outcome in written.items()]
        yield Json({"root": str(session.tree.root), "files": files})
        return
    tongue = language()
    for name, outcome in written.items():
        yield Lines(show(_outcome(name, outcome), tongue))
    if {"foreign", "edited"} & set(written.values()):
        command = command_line(session, "docs", "--write", "--force")
        text = phrase("Write it anew, and keep a copy of it in .uky-patch-kept: {command}", command=command)
        yield Lines(text)
