"""The page of one check: a verdict, what to do next, and the findings with the edits that repair them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patcher.analysis.findings import Finding, Severity
from patcher.git.head import head
from patcher.i18n import Phrase, phrase
from patcher.plan.outcome import FAILED
from patcher.report import page
from patcher.report.check import heading
from patcher.report.commands import assumed, check_command, on_fork
from patcher.report.header import header
from patcher.report.page import Both, both, diff_lines
from patcher.report.records import conditions, text_of

if TYPE_CHECKING:
    from patcher.check.result import Check, CheckRequest
    from patcher.records.model import Record
    from patcher.session.session import Session

_MEANINGS: Mapping[Severity, Phrase] = {
    "break": phrase("runs on import, or in the plain job"),
    "optional": phrase("runs inside a feature"),
    "inert": phrase("is silently ignored"),
    "guarded": phrase("a version test or a try covers it on this release"),
}
_TITLES: Mapping[Severity, Phrase] = {
    "break": phrase("Breaks"),
    "optional": phrase("Inside features"),
    "inert": phrase("Silently ignored"),
    "guarded": phrase("Guarded"),
}
_MOST_OPEN = 30
"""Findings that are shown unfolded at first; with more of them the page is read from its file names."""


def check_page(done: Check, session: Session, order: CheckRequest, place: Path, *, date: str) -> str:
    """The page's text. It reads its templates, and the tree's git branch."""
    report = done.report
    groups = [one for severity in _MEANINGS if (one := _group(done, severity)) is not None]
    records, drafts = _records(done), _drafts(done)
    commands, undecided = _commands(done, session, order, place), _undecided(done)
    against = ", ".join(f"{name} {version}" for name, version in report.against.items())
    title = both(
        phrase("verl {verl} against {against}", verl=report.verl or phrase("of unknown version"), against=against)
    )
    contents: list[tuple[str, Both, int | None]] = [("next", both("Next"), None)] if commands else []
    contents += [(one["name"], one["title"], one["count"]) for one in groups]
    contents += [("records", both("Records"), len(records))] if records else []
    contents += [("drafts", both("Drafts"), len(drafts))] if drafts is not None else []
    contents += [("open", both("Not decided"), None)] if undecided else []
    found, left = (Counter(one.severity for one in which.findings) for which in (report, done.after))
    return page.render_page(
        "check",
        heading=title,
        command=check_command(session, order, place, drafts=order.drafts),
        date=date,
        tree=_tree(done, order),
        verdict=_verdict(done, undecided),
        severities=[
            {"name": name, "word": both(name), "meaning": both(meaning), "found": found[name], "left": left[name]}
            for name, meaning in _MEANINGS.items()
        ],
        contents=[{"id": name, "title": words, "count": count} for name, words, count in contents],
        commands=commands,
        groups=groups,
        records=records,
        drafts=drafts,
        open_questions=undecided,
        uses=(heading(done, "en"), heading(done, "zh")),
        versions=(header(done.session, "en"), header(done.session, "zh")),
    )


def _tree(done: Check, order: CheckRequest) -> Both:
    if order.verl:
        return both(phrase("the release of verl, as it was published"))
    root = done.session.tree.root
    where = head(root)
    text = f"{root} · {where.branch or '–'}@{where.short}" if where is not None else str(root)
    return text, text


def _verdict(done: Check, undecided: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What comes first: whether anything breaks, and what `apply` would do about it."""
    found, left = len(done.report.of("break")), len(done.after.of("break"))
    plan = done.repaired.plan
    failed = [outcome.id for outcome in plan.failed]
    made = [outcome for outcome in plan.outcomes if outcome.kind == "pending"]
    lines = []
    if left:
        kind, title = "break", phrase("Breaks left after apply: {left}, of {found}", left=left, found=found)
    elif found:
        kind, title = "repairable", phrase("apply repairs every break that was found: {found}", found=found)
    else:
        kind, title = "clean", phrase("No break was found")
    if failed:
        kind = "break"
        text = "These records cannot be applied here, and apply changes nothing while one of them is asked for: {ids}."
        lines.append(phrase(text, ids=", ".join(failed)))
    if made:
        count = len({file for outcome in made for file in outcome.files})
        lines.append(
            phrase("apply makes the edits of {records} records in {files} files.", records=len(made), files=count)
        )
    elif not failed and done.report.of("break", "optional", "inert"):
        lines.append(phrase("apply has nothing to do here: no record is needed and missing."))
    if done.repaired.off_by_default:
        ids = ", ".join(sorted(done.repaired.off_by_default))
        lines.append(phrase("Off by default, and made only when asked for by name: {ids}.", ids=ids))
    if done.drafted is not None and done.drafted.drafts:
        lines.append(phrase("Drafted for what no record repairs: {count} records.", count=len(done.drafted.drafts)))
    if done.empty is not None:
        kind = "break"
        lines.append(done.empty)
    if done.unreadable:
        kind = "break" if kind == "clean" else kind
        lines.append(phrase("Not read, so nothing is known of them: {count} files.", count=len(done.unreadable)))
    if undecided:
        lines.append(phrase("What could not be decided is at the end of the page."))
    return {"kind": kind, "title": both(title), "lines": [both(line) for line in lines]}


def _commands(done: Check, session: Session, order: CheckRequest, place: Path) -> list[dict[str, Any]]:
    """What to paste next, each with why."""
    found: list[tuple[Phrase, str]] = []
    assume, plan = assumed(session, order), done.repaired.plan

    def on_tree(why: Phrase, *words: str) -> None:
        """A command for the tree itself; of a release that was fetched, for whoever has a checkout of it."""
        if assume is not None:
            where = phrase("{what}, in a checkout of verl {verl}", what=why, verl=order.verl)
            found.append((where if order.verl else why, on_fork(session, *words, assume=assume, rooted=not order.verl)))

    for outcome in plan.failed[:3]:
        on_tree(phrase("See why {id} cannot be applied", id=outcome.id), "explain", outcome.id)
    if not plan.failed:
        if plan.pending:
            on_tree(phrase("Make the edits, all or none"), "apply")
        for name in sorted(done.repaired.off_by_default):
            on_tree(phrase("Make the edits of {id}, which is off by default", id=name), "apply", name)
    unrepaired = [one for one in done.report.of("break", "optional") if one.repaired_by is None]
    if done.drafted is not None and done.drafted.drafts:
        why = phrase("See what is left with the drafts as records")
        found.append((why, check_command(session, order, place, drafts=order.drafts, with_drafts=True)))
    elif done.drafted is None and unrepaired:
        why = phrase("Have records drafted for what no record repairs, where a repair is sound")
        found.append((why, check_command(session, order, place, drafts=place.parent / "drafts")))
    return [{"why": both(why), "text": command} for why, command in found]


def _group(done: Check, severity: Severity) -> dict[str, Any] | None:
    """The findings of one severity, by file; those that say the same are one, with several lines."""
    findings = done.report.of(severity)
    if not findings:
        return None
    by_file: dict[str, list[Finding]] = {}
    for one in sorted(findings, key=lambda one: (one.file, one.line)):
        by_file.setdefault(one.file, []).append(one)
    files: list[dict[str, Any]] = []
    shown = 0
    for file, inside in by_file.items():
        entries = list(_entries(inside, done))
        opened = severity == "break" and (not files or shown + len(entries) <= _MOST_OPEN)
        shown += len(entries)
        files.append({"path": file, "count": len(inside), "findings": entries, "open": opened})
    return {
        "name": severity,
        "title": both(_TITLES[severity]),
        "meaning": both(_MEANINGS[severity]),
        "count": len(findings),
        "files": files,
    }


def _entries(findings: Iterable[Finding], done: Check) -> Iterator[dict[str, Any]]:
    alike: dict[tuple[object, ...], list[Finding]] = {}
    drafted = {
        one: draft.id for draft in (done.drafted.drafts if done.drafted else ()) for one in map(_spot, draft.repairs)
    }
    for one in findings:
        draft = drafted.get(_spot(one), "")
        same_text = (one.symbol, one.kind, one.since, str(one.detail), str(one.suggestion), one.repaired_by, draft)
        alike.setdefault(same_text, []).append(one)
    titles = {record.id: _texts(record)["title"] for record in done.session.records}
    for (*_, draft_id), same in alike.items():
        one = same[0]
        folder, slash, file = one.file.rpartition("/")
        lines = ", ".join(str(line) for line in dict.fromkeys(other.line for other in same))
        repair: dict[str, Any] | None = None
        if one.repaired_by is not None:
            off = one.repaired_by in done.repaired.off_by_default
            words = both("repaired by a record that is off by default:" if off else "repaired by")
            name = one.repaired_by
            repair = {"words": words, "id": name, "at": f"record-{name}", "title": titles.get(name)}
        elif draft_id:
            repair = {"words": both("repaired by the draft"), "id": draft_id, "at": f"draft-{draft_id}", "title": None}
        kind = both(one.kind.replace("-", " "))
        since = both(phrase(", since {version}", version=one.since)) if one.since else ("", "")
        yield {
            "symbol": one.symbol,
            "change": (kind[0] + since[0], kind[1] + since[1]),
            "places": [{"folder": folder + slash, "name": f"{file}:{lines}"}],
            "detail": both(one.detail),
            "suggestion": both(one.suggestion) if one.suggestion is not None and repair is None else None,
            "repair": repair,
        }


def _spot(one: Finding) -> tuple[str, int, str]:
    return one.file, one.line, one.symbol


def _records(done: Check) -> list[dict[str, Any]]:
    """The records that apply would make, those that would repair something, and those that cannot be applied."""
    outcomes = {outcome.id: outcome for outcome in done.repaired.plan.outcomes}
    repaired = Counter(one.repaired_by for one in done.report.findings)
    diffs = _diffs(done)
    found = []
    for record in done.session.records:
        outcome = outcomes.get(record.id)
        kind = outcome.kind if outcome is not None else "not-needed"
        if not (kind == "pending" or kind in FAILED or repaired[record.id]):
            continue
        state = both("cannot be applied" if kind in FAILED else "apply makes it")
        if record.id in done.repaired.off_by_default:
            state = both("off by default")
        facts = [(both("needed for"), (conditions(record.when, "en"), conditions(record.when, "zh")))]
        facts += [(both("why not"), both(outcome.detail))] if outcome is not None and kind in FAILED else []
        facts += [(both("findings repaired"), (str(repaired[record.id]),) * 2)] if repaired[record.id] else []
        found.append(
            {
                "id": record.id,
                **_texts(record),
                "state": state,
                "facts": facts,
                "upstream": record.upstream or "",
                "link": (record.upstream or "").startswith(("https://", "http://")),
                "diffs": diffs.get(record.id, []),
            }
        )
    return found


def _texts(record: Record) -> dict[str, Both]:
    """The title and the reason of a record, each in both languages."""
    english, chinese = text_of(record, "en"), text_of(record, "zh")
    return {"title": (english.title, chinese.title), "reason": (english.reason, chinese.reason)}


def _diffs(done: Check) -> dict[str, list[dict[str, Any]]]:
    """By record, what its edits change in each file. Secrets may span lines: they go before texts are cut."""
    from patcher.secrets.redacting import here

    texts = {file: here().text(text) for file, text in done.repaired.base.items()}
    found: dict[str, list[dict[str, Any]]] = {}
    for record, changed in done.repaired.steps:
        shown = {file: here().text(text) for file, text in changed.items()}
        diffs = ({"path": file, "lines": diff_lines(file, texts.get(file, ""), text)} for file, text in shown.items())
        found[record] = [one for one in diffs if one["lines"]]
        texts.update(shown)
    return found


def _drafts(done: Check) -> list[dict[str, Any]] | None:
    if done.drafted is None:
        return None
    files = done.drafted.files
    places = {path.stem: (path, both("new")) for path in files.written}
    places |= {path.stem: (path, both("was there already")) for path in files.unchanged}
    places |= {path.stem: (path, both("another file has its name and was left as it is")) for path in files.differing}
    found = []
    for draft in done.drafted.drafts:
        path, state = places[draft.id]
        found.append(
            {
                "id": draft.id,
                **_texts(draft.record),
                "state": state,
                "path": str(path.resolve()),
                "repairs": [(one.symbol, f"{one.file}:{one.line}") for one in draft.repairs],
                "text": draft.text,
            }
        )
    return found


def _undecided(done: Check) -> list[dict[str, Any]]:
    """What could not be decided or read, what was left out and why, and notes."""
    parts = [
        (both("Files that were not read"), [_open(f"{one.file}:{one.line}", "", one.why) for one in done.unreadable]),
        (
            both("Uses that could not be decided"),
            [_open(f"{one.file}:{one.line}", one.symbol, one.reason) for one in done.report.unresolved],
        ),
        (both("Notes"), [_open("", "", note) for note in done.notes]),
        (
            both("Accepted by the fork's uky-patch.toml"),
            [_open(f"{one.finding.file}:{one.finding.line}", one.finding.symbol, one.reason) for one in done.accepted],
        ),
        (
            both("Shown by the baseline already"),
            [_open(f"{one.file}:{one.line}", one.symbol, one.detail) for one in done.in_baseline],
        ),
    ]
    return [{"title": title, "lines": lines, "open": len(lines) <= 5} for title, lines in parts if lines]


def _open(where: str, symbol: str, why: object) -> dict[str, Any]:
    return {"where": where, "symbol": symbol, "why": both(why)}
