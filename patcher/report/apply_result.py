"""The report and the exit code of `apply`, `revert` and `adopt`.

Exit code 3 where a record cannot be applied (then nothing was written), 1 where a dry run would change something or
`check` finds breaks that no record was made for, else 0. Where records are in the way, each is shown with the nearest
place in its file, and the next command may leave it out with --skip.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from patcher.errors import ExitCode
from patcher.i18n import Language, Phrase, language, phrase, show
from patcher.plan.outcome import FAILED, Kind
from patcher.report.commands import command_line, next_lines, step_command
from patcher.report.header import (
    about_pre_images,
    about_version,
    after_untried,
    environment_json,
    header,
    problems,
    untried_json,
)
from patcher.report.outcomes import as_json, label, nearest_lines, rows
from patcher.report.records import text_of
from patcher.session.config import NAME
from patcher.terminal.document import Diff, Json, Lines, Part, Table, unified

if TYPE_CHECKING:
    from patcher.patching.applying import Order
    from patcher.patching.next_step import NextStep
    from patcher.patching.result import ApplyResult
    from patcher.recording.adopting import Adopted
    from patcher.session.session import Session


_SHOWN: frozenset[Kind] = FAILED | {"pending", "applied", "adopted"}


def apply_report(
    done: ApplyResult,
    session: Session,
    *,
    verb: Literal["apply", "revert", "adopt"],
    diff: bool,
    dry_run: bool,
    order: Order | None = None,
    ids: Sequence[str] = (),
) -> Iterator[Part]:
    """What was done, or would be. `order` is what an apply was asked for, `ids` are what a revert was asked for."""
    step = _next(done, session, order, ids, dry_run=dry_run)
    if session.output == "json":
        records = [as_json(outcome) for outcome in done.plan.outcomes]
        report: dict[str, Any] = {"root": str(session.tree.root), "versions": session.versions, "records": records}
        report |= {"written": list(done.written), "commits": list(done.commits)}
        report |= {"environment": environment_json(session), "untried": untried_json(done.untried)}
        report["skipped"] = [outcome.id for outcome in done.plan.outcomes if outcome.skipped]
        report["next"] = step_command(step, session)
        report["not_in_ledger"] = list(done.not_in_ledger)
        yield Json({**report, "ledger": done.pre_images.as_json(), "aside": done.aside})
    else:
        yield from _text(done, session, verb, diff, step, dry_run=dry_run)


def apply_exit_code(done: ApplyResult, *, dry_run: bool) -> int:
    """Of the contract: 3 where records cannot be applied, 1 where something would change or `check` finds more."""
    if done.failed:
        return ExitCode.NOT_APPLIED
    beyond = done.untried is not None and not done.untried.clean
    would_change = bool(done.would_change) and not done.written
    would_change |= dry_run and (_changes_settings(done) or _changes_ledger(done))
    return ExitCode.FINDINGS if beyond or would_change or done.not_in_ledger else ExitCode.CLEAN


def _next(
    done: ApplyResult, session: Session, order: Order | None, ids: Sequence[str], *, dry_run: bool
) -> NextStep | None:
    from patcher.patching.next_step import (
        adopting,
        after_failed_revert,
        after_failure,
        after_git,
        after_preview,
    )

    if order is None:
        if not done.failed and done.not_in_ledger:
            return adopting(done.not_in_ledger)
        if not any(outcome.kind == "tampered" for outcome in done.plan.failed):
            return None
        return after_git(session, done.plan.failed) or after_failed_revert(session, ids)
    if done.failed:
        return after_failure(session, order, done.plan.outcomes)
    return after_preview(session, order, done) if dry_run else None


def _changes_settings(done: ApplyResult) -> bool:
    return bool(done.settings) and done.settings[0] != done.settings[1]


def _changes_ledger(done: ApplyResult) -> bool:
    """Whether the ledger is, or would be, another, though perhaps no file."""
    return bool(done.changed or done.taken_over or done.pre_images.stale)


def _text(
    done: ApplyResult, session: Session, verb: str, diff: bool, step: NextStep | None, *, dry_run: bool
) -> Iterator[Part]:
    tongue = language()
    version = about_version(session, tongue) if verb != "revert" else []
    lines = [*problems(session, tongue), *version, *about_pre_images(done.pre_images, tongue)]
    yield Lines(header(session, tongue), *lines, "")
    outcomes = done.plan.outcomes
    shown = [one for one in outcomes if one.kind in _SHOWN or one.skipped or one.id in done.changed]
    yield Table(rows(shown, tongue))
    if diff and not done.failed:
        for path in done.would_change:
            yield Lines("")
            yield Diff(unified(path, done.before[path], done.plan.files[path].text or ""))
    for commit in done.commits:
        yield Lines(f"  {show('committed', tongue)} {commit}")
    if done.failed:
        yield from _failures(done, session, verb, step, tongue)
        return
    if _changes_settings(done):
        yield Lines("")
        yield Diff(unified(NAME, *done.settings))
    for path in done.taken_over:
        yield Lines(f"  {show('what was changed by hand stays', tongue)}: {path}")
    for path in done.kept:
        yield Lines(f"  {show('kept what was changed by hand', tongue)}: {path}")
    for path in done.pre_images.replaced.left:
        yield Lines(f"  {show('left as it is, with what records made in it', tongue)}: {path}")
    if done.aside:
        yield Lines(f"  {show('kept the pre-images of the other release', tongue)}: {done.aside}")
    sentence = _sentence(done, session, verb, dry_run=dry_run).render(tongue)
    if done.untried is not None:
        yield Lines("", done.untried.message)
        if step is None and not done.untried.clean:
            sentence += after_untried(done.untried, session).render(tongue)
    yield Lines("", sentence, *next_lines(step, session, tongue))


def _failures(
    done: ApplyResult, session: Session, verb: str, step: NextStep | None, tongue: Language
) -> Iterator[Part]:
    """Each record that is in the way, why, what is nearest to it, and the command that goes on."""
    title = phrase("nothing was written: {count} of the records cannot be applied", count=len(done.plan.failed))
    lines: list[Phrase | str] = ["", title]
    for outcome in done.plan.failed:
        lines.append(f"  {outcome.id}: {label(outcome.kind, tongue)}; {show(outcome.detail, tongue)}")
        lines += [f"    {line.partition(': ')[2]}" for line in nearest_lines([outcome], tongue)]
        if verb == "apply" and outcome.kind != "tampered":
            why = phrase("See why: {command}", command=command_line(session, "explain", outcome.id))
            lines.append(f"    {why.render(tongue)}")
    yield Lines(*lines, *next_lines(step, session, tongue), err=True)
    if step is not None and "--skip" in step.words and "--remember" not in step.words:
        yield Lines(phrase("With --remember they are left out from now on: it notes them in uky-patch.toml."), err=True)


def _sentence(done: ApplyResult, session: Session, verb: str, *, dry_run: bool) -> Phrase:
    if not done.would_change:
        if done.not_in_ledger:
            return phrase("nothing was put back: {names}", names=", ".join(done.not_in_ledger))
        if _changes_ledger(done):
            if dry_run:
                return phrase("no file would change, and the ledger would; nothing was written")
            holding = sum(outcome.kind == "applied" for outcome in done.plan.outcomes)
            if verb == "revert" or not holding:
                return phrase("the ledger was written, and no file had to change")
            text = (
                "{count} {count:record|records} {count:holds|hold}; the ledger was written, and no file had to change"
            )
            return phrase(text, count=holding)
        if verb == "adopt":
            return phrase("nothing to adopt: no record's edits were made by hand here")
        return phrase("nothing to do") if done.untried is None or done.untried.clean else phrase("nothing to apply")
    fields = {"files": len(done.would_change), "seconds": f"{done.seconds:.1f}"}
    if dry_run or not done.written:
        return phrase("{files} {files:file|files} would change; nothing was written", **fields)
    if verb == "revert":
        return phrase("{files} {files:file|files} put back ({seconds} s)", **fields)
    count = sum(outcome.kind == "applied" for outcome in done.plan.outcomes)
    if not count:
        return phrase("{files} {files:file|files} put back ({seconds} s)", **fields)
    return phrase(
        "{count} {count:record|records} {count:holds|hold} in {files} changed {files:file|files} ({seconds} s). "
        "Undo: {command}",
        count=count,
        command=command_line(session, "revert"),
        **fields,
    )


def adopted_report(found: Adopted, session: Session, *, diff: bool, dry_run: bool) -> Iterator[Part]:
    """The report of the apply that it is, what could not be taken over, and what a record warns of."""
    taken = [record.id for record in found.records]
    parts = apply_report(found.done, session, verb="adopt", diff=diff, dry_run=dry_run)
    if session.output == "json":
        for part in parts:
            if isinstance(part, Json):
                refused = [{"id": name, "why": str(why)} for name, why in found.refused]
                extra = {"base": str(found.base), "adopted": taken, "refused": refused, "kept": list(found.kept)}
                yield Json({**part.report, **extra})
        return
    yield from parts
    tongue = language()
    lines: list[str] = []
    for record in found.records:
        # A record that is off is one that does harm, or that few need: whoever has it by hand should know why.
        if not record.enabled:
            text = phrase("{id} is off by default: {reason}", id=record.id, reason=text_of(record, tongue).reason)
            lines.append(text.render(tongue))
    if found.refused:
        lines.append(show(phrase("not adopted:"), tongue))
        lines += [f"  {name}: {show(why, tongue)}" for name, why in found.refused]
    for path in found.kept:
        lines.append(f"  {show('kept what was changed by hand', tongue)}: {path}")
    if lines:
        yield Lines("", *lines)
