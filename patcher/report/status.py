"""The report of `status`: each record's outcome on this tree, edits that no record covers, and the next command; and of
`trust`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from patcher.check.known_breaks import known_breaks
from patcher.i18n import Language, language, phrase, show
from patcher.patching.next_step import after_status
from patcher.report.commands import step_command
from patcher.report.header import (
    about_pre_images,
    about_version,
    after_untried,
    environment_json,
    header,
    problems,
    unknown_environment,
    untried_json,
)
from patcher.report.outcomes import as_json, nearest_lines, rows, tally
from patcher.session.session import NAME_IT
from patcher.terminal.document import Json, Lines, Output, Part, Table

if TYPE_CHECKING:
    from pathlib import Path

    from patcher.check.untried import Untried
    from patcher.patching.next_step import NextStep
    from patcher.patching.status import RecordsStatus
    from patcher.session.session import Session


def status_report(
    status: RecordsStatus, beyond: Untried | None, session: Session, *, everything: bool
) -> Iterator[Part]:
    """Print the contract's JSON, or a table with one row a record."""
    if session.output == "json":
        yield Json(status_json(status, beyond, session))
        return
    tongue = language()
    version = [] if status.from_note else about_version(session, tongue)
    notes = [*problems(session, tongue), *version, *about_pre_images(status.pre_images, tongue)]
    yield Lines(*unknown_environment(session, tongue), header(session, tongue), *notes, "")
    shown = [one for one in status.outcomes if everything or one.skipped or one.kind != "not-needed"]
    yield Table(rows(shown, tongue))
    for line in nearest_lines(status.outcomes, tongue):
        yield Lines(f"  {line}")
    if status.unrecorded:
        places = ", ".join(f"{mark.file}:{mark.line}" for mark in status.unrecorded[:5])
        more = len(status.unrecorded) - 5
        text = phrase(
            'marked "# {word}" and covered by no record: {places}',
            word=session.config.marker,
            places=places + (f" (+{more})" if more > 0 else ""),
        )
        yield Lines(f"  {len(status.unrecorded)} {text.render(tongue)}")
    if beyond is not None:
        yield Lines("", beyond.message)
    step = after_status(session, status)
    if step is not None and step.about:
        yield Lines(f"  {show(step.about, tongue)}")
    yield Lines("", f"{tally(status.outcomes, tongue)}{_ending(step, status, beyond, session, tongue)}")


def status_json(status: RecordsStatus, beyond: Untried | None, session: Session) -> dict[str, Any]:
    """The JSON of `status`; `unrecorded` are marked lines that no record covers."""
    step = after_status(session, status)
    merged = None if status.from_note else session.merged_verl
    return {
        "root": str(session.tree.root),
        "environment": environment_json(session),
        "versions": session.versions,
        "records": [as_json(outcome) for outcome in status.outcomes],
        "written": [],
        "unrecorded": [{"file": mark.file, "line": mark.line} for mark in status.unrecorded],
        "skipped": [outcome.id for outcome in status.outcomes if outcome.skipped],
        "ledger": status.pre_images.as_json(),
        "untried": untried_json(beyond),
        "merged_verl": merged.version if merged is not None else "",
        "next": step_command(step, session),
    }


def _ending(
    step: NextStep | None, status: RecordsStatus, beyond: Untried | None, session: Session, tongue: Language
) -> str:
    if not session.environment.known:
        return phrase(". Next: {step}", step=NAME_IT).render(tongue)
    if step is not None:
        return phrase(". Next: {command}", command=step.instead or step_command(step, session)).render(tongue)
    if status.pre_images:
        return ""
    if beyond is not None and not beyond.clean:
        return after_untried(beyond, session).render(tongue)
    if beyond is None and session.environment.version("vllm") is not None and known_breaks(session) is None:
        # The records are tried on releases; what the fork has written itself only a check reads.
        return show(". Nothing to do for the records; uky-patch check judges the fork's own code", tongue)
    return show(". Nothing to do", tongue)


def trust_report(root: Path, output: Output, *, trusted: bool) -> Iterator[Part]:
    """Whether a tree is trusted."""
    if output == "json":
        yield Json({"root": str(root), "trusted": trusted})
    elif trusted:
        message = phrase("{root}: trusted; what it names as its interpreter may be started", root=root)
        yield Lines(message)
    else:
        yield Lines(phrase("{root}: not trusted; no program that it names is started", root=root))
