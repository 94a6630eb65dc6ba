"""The report of `migrate`: a line for each step as it ends, what a dry run would send and change, the last line, and
the JSON.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from patcher.i18n import Language, Phrases, language, listed, phrase, show
from patcher.migrate.order import READ_ONLY_STEPS, STEPS, Step
from patcher.migrate.wording import printable, readable_size
from patcher.report.checks import STATUS_STYLES
from patcher.terminal.answers import Report
from patcher.terminal.document import Diff, Lines, Part, unified
from patcher.terminal.layout import width
from patcher.terminal.sequences import style

if TYPE_CHECKING:
    from patcher.migrate.migration import Migration
    from patcher.migrate.payload import Payload
    from patcher.secrets.redacting import Redactor

_LARGEST = 15
"""Files that are listed, the largest first. Set by hand: they fit a screen of 24 lines."""


def step_report(step: Step, redactor: Redactor) -> Iterator[Part]:
    """One line for the step, and its notes under it, without secrets."""
    tongue = language()
    names = max(width(show(name, tongue)) for name in STEPS)
    words = max(width(show(word, tongue)) for word in STATUS_STYLES)
    name, word = show(step.name, tongue), show(step.status, tongue)
    head = f"{name}{' ' * (names - width(name))}  {style(word, STATUS_STYLES[step.status])}"
    head += f"{' ' * (words - width(word))}  {step.seconds:6.1f} s  "
    indent = " " * (names + words + 14)
    lines = [redactor.text(show(note, tongue)) for note in step.notes if note]
    if step.fix:
        lines.append(f"-> {redactor.text(show(step.fix, tongue))}")
    yield Lines(head + redactor.text(show(step.detail, tongue)))
    for line in lines:
        yield Lines(*(indent + part for part in line.split("\n")))


def preview_report(migration: Migration) -> Iterator[Part]:
    """What a dry run found: files and bytes, largest first; what is left out; records; rendered files as diffs."""
    tongue = language()
    payload, difference = migration.findings.payload, migration.findings.difference
    if payload is None or difference is None:
        return
    if difference.send:
        yield Lines("", phrase("would be sent, largest first"))
        ordered = sorted(difference.send, key=lambda path: -payload.items[path].size)
        for path in ordered[:_LARGEST]:
            yield Lines(f"  {readable_size(payload.items[path].size):>9}  {printable(path)}")
        if len(ordered) > _LARGEST:
            rest = sum(payload.items[path].size for path in ordered[_LARGEST:])
            more = phrase("and {count} more", count=len(ordered) - _LARGEST)
            yield Lines(f"  {readable_size(rest):>9}  {show(more, tongue)}")
    for title, paths in (("would be moved aside", difference.retire), ("changed on the host", difference.overwritten)):
        if paths:
            yield Lines("", show(title, tongue))
            yield Lines(*(f"  {printable(path)}" for path in paths))
    yield from _left_out(payload, tongue)
    done = payload.result
    for path in done.would_change:
        yield Lines("")
        yield Diff(unified(path, done.before[path], done.plan.files[path].text or ""))
    for put in migration.findings.rendered:
        if put.rendered is not None and put.outcome != "unchanged":
            yield Lines("")
            yield Diff(unified(put.path, put.there or "", put.rendered.text))


def _left_out(payload: Payload, tongue: Language) -> Iterator[Part]:
    if not payload.listing.left_out:
        return
    yield Lines("", phrase("left out"))
    for item in payload.listing.left_out:
        amount = readable_size(item.size) if item.size is not None else ""
        yield Lines(f"  {amount:>9}  {printable(item.path)}  ({show(item.reason, tongue)})")


def migration_end(migration: Migration, *, dry: bool) -> Iterator[Part]:
    """The last line: ready, or where it stopped and how to go on."""
    tongue = language()
    failed = next((step for step in migration.steps if step.status == "fail"), None)
    if failed is not None:
        template = "{host} is not ready: {step} failed. Mend that, then run the same command again"
        text = phrase(template, host=migration.host, step=show(failed.name, tongue))
    elif dry:
        text = phrase("nothing was written, there or here")
    elif migration.job.get("verdict") == "running":
        text = phrase("the job on {host} goes on without us", host=migration.host)
    elif migration.steps[-1].name == "job":
        text = phrase("ready: {host}", host=migration.host)
    else:
        text = phrase("in order on {host}: {steps}", host=migration.host, steps=_names(migration))
    yield Lines("", text)


def _names(migration: Migration) -> Phrases:
    names = [step.name for step in migration.steps]
    return Phrases(
        tuple(listed(name) for name in names if name not in READ_ONLY_STEPS or set(names) <= READ_ONLY_STEPS), ", "
    )


def as_json(migration: Migration, redactor: Redactor) -> Report:
    """The object of the contract: host, steps, job; and what would be sent on a dry run."""
    report: dict[str, object] = {
        "host": migration.host,
        "steps": [
            {
                "name": step.name,
                "status": step.status,
                "seconds": round(step.seconds, 3),
                "detail": str(step.detail),
                "fix": str(step.fix),
                "notes": [str(note) for note in step.notes],
            }
            for step in migration.steps
        ],
        "job": dict(migration.job),
    }
    payload, difference = migration.findings.payload, migration.findings.difference
    if payload is not None:
        report["records"] = [
            {"id": outcome.id, "outcome": outcome.kind, "files": list(outcome.files), "detail": str(outcome.detail)}
            for outcome in payload.result.plan.outcomes
        ]
        report["left_out"] = [
            {"path": printable(item.path), "reason": str(item.reason), "size": item.size}
            for item in payload.listing.left_out
        ]
        if difference is not None:
            ordered = sorted(difference.send, key=lambda path: -payload.items[path].size)
            report["send"] = [{"path": printable(path), "size": payload.items[path].size} for path in ordered]
            report["retire"] = [printable(path) for path in difference.retire]
            report["overwritten"] = [printable(path) for path in difference.overwritten]
    found: Report = redactor.value(report)
    return found
