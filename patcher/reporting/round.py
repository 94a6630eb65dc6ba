"""What an apply or a revert came to, for people and for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from patcher.errors import ExitCode
from patcher.language import Language, Phrase, language, phrase, show
from patcher.planning.outcome import FAILED, Kind
from patcher.reporting.answers import show_json
from patcher.reporting.diffs import show_diff, unified
from patcher.reporting.header import about_pre_images, header, problems
from patcher.reporting.outcomes import as_json, nearest_lines, rows
from patcher.reporting.table import show_rows
from patcher.terminal import say

if TYPE_CHECKING:
    from patcher.operations.round import Round
    from patcher.session import Session


_TOLD: frozenset[Kind] = FAILED | {"pending", "applied", "adopted"}


def show_round(done: Round, session: Session, *, verb: Literal["apply", "revert"], diff: bool) -> int:
    """Print it and give the exit code of the contract."""
    if session.output == "json":
        records = [as_json(outcome) for outcome in done.plan.outcomes]
        report = {"root": str(session.tree.root), "versions": session.versions, "records": records}
        report |= {"written": list(done.written), "commits": list(done.commits)}
        show_json({**report, "ledger": done.pre_images.as_json(), "aside": done.aside})
    else:
        _show_text(done, session, verb, diff)
    if done.failed:
        return ExitCode.NOT_APPLIED
    return ExitCode.FINDINGS if done.would_change and not done.written else ExitCode.CLEAN


def _show_text(done: Round, session: Session, verb: str, diff: bool) -> None:
    tongue = language()
    lines = [*problems(session, tongue), *about_pre_images(done.pre_images, tongue)]
    say(header(session, tongue), *lines, "")
    told = [outcome for outcome in done.plan.outcomes if outcome.kind in _TOLD or outcome.id in done.changed]
    show_rows(rows(told, tongue))
    if diff and not done.failed:
        for path in done.would_change:
            say("")
            show_diff(unified(path, done.before[path], done.plan.files[path].text))
    for commit in done.commits:
        say(f"  {show('committed', tongue)} {commit}")
    if done.failed:
        _tell_failures(done, tongue)
        return
    for path in done.taken_over:
        say(f"  {show('what was changed by hand stays', tongue)}: {path}")
    for path in done.kept:
        say(f"  {show('kept what was changed by hand', tongue)}: {path}")
    if done.aside:
        say(f"  {show('kept the pre-images of the other release', tongue)}: {done.aside}")
    say("", f"{_sentence(done, verb).render(tongue)}")


def _tell_failures(done: Round, tongue: Language) -> None:
    lines = [f"  {line}" for line in nearest_lines(done.plan.outcomes, tongue)]
    text = phrase("nothing was written: {count} of the records cannot be applied", count=len(done.plan.failed))
    see = phrase("See why with: uky-patch explain {id}", id=done.plan.failed[0].id)
    lines += ["", text.render(tongue), see.render(tongue)]
    say(*lines, err=True)


def _sentence(done: Round, verb: str) -> Phrase:
    if not done.would_change:
        return phrase("nothing to do")
    fields = {"files": len(done.would_change), "seconds": f"{done.seconds:.1f}"}
    if not done.written:
        return phrase("{files} {files:file|files} would change; nothing was written", **fields)
    if verb == "revert":
        return phrase("{files} {files:file|files} put back ({seconds} s)", **fields)
    count = sum(outcome.kind == "applied" for outcome in done.plan.outcomes)
    if not count:
        return phrase("{files} {files:file|files} put back ({seconds} s)", **fields)
    return phrase(
        "{count} {count:record|records} {count:holds|hold} in {files} changed {files:file|files} "
        "({seconds} s). Undo: uky-patch revert",
        count=count,
        **fields,
    )
