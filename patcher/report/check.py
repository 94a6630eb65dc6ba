"""The report of `check`, as text and as JSON: findings with severity, grouped by file or by cause (`--by`).

    verl 0.7.0 against vllm 0.24.0: 67 uses, 64 decided, 3 not decidable

    verl/workers/rollout/vllm_rollout/utils.py
      break          18  vllm.lora.models.LoRAModel  symbol removed, since 0.11.1
                         repaired by vllm-lora-model-moved

Findings that a version test or a `try` guards, and uses that cannot be decided, are shown with `--all` only. Which
severity a finding has is decided in `patcher.analysis.severity`; which of them are accepted, or are in the baseline, in
`patcher.check`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from patcher.i18n import Language, Phrase, Phrases, language, phrase, show
from patcher.packages.agent.folders import distribution_of
from patcher.report.commands import command_line
from patcher.terminal.document import Json, Lines, Part
from patcher.terminal.layout import NARROW, width, wrapped
from patcher.terminal.sequences import style

if TYPE_CHECKING:
    from patcher.analysis.findings import Finding, Report, Severity
    from patcher.check.drafts.drafting import Drafted
    from patcher.check.result import Check
    from patcher.session.session import Session

By = Literal["file", "cause"]
_COLUMNS = 100
_INDENT = 20
_INDENT_NARROW = 6
"""The widest line of a finding; where its sentences begin, and where on a narrow terminal. Set by hand."""
_STYLES: dict[Severity, str] = {"break": "red", "optional": "yellow", "inert": "cyan", "guarded": "green"}


def check_report(
    done: Check, *, by: By, everything: bool, of_tree: bool = True, page: Path | None = None, columns: int = 0
) -> Iterator[Part]:
    """Print the contract's JSON, or what was found as text; what to do next where it is `of_tree`.

    `page`: where its page was written. `columns`: those of the terminal that it goes to, 0 for a file.
    """
    if done.session.output == "json":
        yield Json({**check_json(done), **page_json(page)})
        return
    tongue = language()
    shown = [one for one in done.report.findings if everything or one.severity != "guarded"]
    lines = [heading(done, tongue)]
    for name, findings in _groups(shown, by):
        lines += [
            "",
            _shortened(name, _COLUMNS),
            *(line for one in findings for line in _finding(one, by, done, tongue, columns)),
        ]
    lines += ["", *_rest(done, everything, tongue, columns)]
    if of_tree and (steps := Phrases(tuple(_steps(done)))):
        lines[-1] += f"{'' if tongue == 'zh' else ' '}{show(steps, tongue)}"
    lines += page_lines(page, tongue)
    yield Lines(*lines)


def page_json(page: Path | None) -> dict[str, Any]:
    """The place of the page that was written with --html, as a part of a JSON report."""
    return {} if page is None else {"html": str(page)}


def page_lines(page: Path | None, tongue: Language) -> list[str]:
    """The line that tells where the page is; none where none was written."""
    return [] if page is None else [phrase("The page is written: {path}", path=page).render(tongue)]


def check_json(done: Check) -> dict[str, Any]:
    """The contract's JSON, and beside it what is left after `apply`, what is accepted, and what could not be read."""
    report = done.report
    return {
        "verl": report.verl,
        "against": dict(report.against),
        "uses": report.uses,
        "unresolved": len(report.unresolved),
        "findings": [finding_json(one) for one in report.findings],
        "root": str(done.session.tree.root),
        "after": [finding_json(one) for one in done.after.findings],
        "standing": [finding_json(one) for one in done.in_baseline],
        "accepted": [{**finding_json(one.finding), "reason": one.reason} for one in done.accepted],
        "undecided": [
            {"file": one.file, "line": one.line, "symbol": one.symbol, "reason": one.reason}
            for one in report.unresolved
        ],
        "unreadable": [{"file": one.file, "line": one.line, "detail": one.why} for one in done.unreadable],
        "off_by_default": sorted(done.repaired.off_by_default),
        "drafts": [
            {"id": one.id, "repairs": [{"file": f.file, "line": f.line, "symbol": f.symbol} for f in one.repairs]}
            for one in (done.drafted.drafts if done.drafted is not None else ())
        ],
        "after_drafts": None if done.drafted is None else [finding_json(one) for one in done.drafted.left.findings],
        "notes": [str(note) for note in done.notes],
    }


def finding_json(finding: Finding) -> dict[str, Any]:
    """A finding as the JSON of `check`, `pins` and the matrix has it; `since` is the first release that shows it."""
    return {
        "file": finding.file,
        "line": finding.line,
        "symbol": finding.symbol,
        "kind": finding.kind,
        "severity": finding.severity,
        "since": finding.since,
        "repaired_by": finding.repaired_by,
        "suggestion": None if finding.suggestion is None else str(finding.suggestion),
        "detail": str(finding.detail),
        "moved_to": finding.moved_to or None,
        "function": finding.function or None,
        **({"entry": finding.entry} if finding.entry else {}),
    }


def heading(done: Check, tongue: Language) -> str:
    """`verl 0.7.0 against vllm 0.24.0: 67 uses, 64 decided, 3 not decidable`."""
    report = done.report
    against = ", ".join(f"{name} {version}" for name, version in report.against.items())
    text = phrase(
        "verl {verl} against {against}: {uses} {uses:use|uses}, {decided} decided, {unresolved} not decidable",
        verl=report.verl or show("of unknown version", tongue),
        against=against,
        uses=report.uses,
        decided=report.uses - len(report.unresolved),
        unresolved=len(report.unresolved),
    )
    return text.render(tongue)


def tally(report: Report, tongue: Language) -> str:
    """`2 break, 1 optional`; guarded ones do not count."""
    counts = Counter(one.severity for one in report.findings)
    parts = [f"{counts[name]} {show(name, tongue)}" for name in _STYLES if name != "guarded" and counts[name]]
    return ("，" if tongue == "zh" else ", ").join(parts) or show("nothing", tongue)


def _groups(findings: Iterable[Finding], by: By) -> Iterator[tuple[str, list[Finding]]]:
    """By file in the order of lines, or by the symbol that changed, the one with most findings first.

    A module that refuses the release comes before all else: nothing behind that line runs.
    """
    findings = tuple(findings)
    refusals = {one.file if by == "file" else one.symbol for one in findings if one.kind == "import-raises"}
    groups: dict[str, list[Finding]] = {}
    for one in findings:
        groups.setdefault(one.file if by == "file" else one.symbol, []).append(one)
    if by == "file":
        files = sorted(groups, key=lambda file: (file not in refusals, file))
        yield from ((file, sorted(groups[file], key=lambda one: one.line)) for file in files)
    else:
        yield from sorted(groups.items(), key=lambda item: (item[0] not in refusals, -len(item[1]), item[0]))


def _finding(one: Finding, by: By, done: Check, tongue: Language, columns: int) -> Iterator[str]:
    """One finding: what it is in one line, and what to do about it in further ones."""
    label = show(one.severity, tongue)
    label = style(label, fg=_STYLES[one.severity]) + " " * (8 - width(label))
    kind = show(one.kind.replace("-", " "), tongue)
    since = phrase(", since {version}", version=one.since).render(tongue) if one.since else ""
    if by == "file":
        symbol = _shortened(one.symbol, _COLUMNS - _INDENT - width(kind) - width(since) - 2)
        yield f"  {label}  {one.line:>6}  {symbol}  {kind}{since}"
    else:
        yield f"  {label}  {_shortened(f'{one.file}:{one.line}', 60)}  {kind}{since}"
    for text in _answers(one, done, tongue):
        yield from _wrapped(text, columns)


def _answers(one: Finding, done: Check, tongue: Language) -> Iterator[str]:
    if one.entry:
        yield phrase("run by {program}", program=one.entry).render(tongue)
    if one.repaired_by is None:
        yield show(one.detail, tongue)
        if one.suggestion is not None:
            yield show(one.suggestion, tongue)
    elif one.repaired_by in done.repaired.off_by_default:
        text = phrase("repaired by {id}, which is off by default: uky-patch apply {id}", id=one.repaired_by)
        yield text.render(tongue)
    else:
        yield phrase("repaired by {id}", id=one.repaired_by).render(tongue)


def _rest(done: Check, everything: bool, tongue: Language, columns: int) -> Iterator[str]:
    """What is not among the findings, and the last sentence."""
    guarded = len(done.report.of("guarded"))
    if everything:
        for one in done.report.unresolved:
            yield f"  {show('undecided', tongue)}  {one.file}:{one.line}  {_shortened(one.symbol, 50)}"
            yield from _wrapped(one.reason, columns)
    elif guarded or done.report.unresolved:
        text = "{guarded} guarded and {unresolved} not decidable: shown with --all"
        yield phrase(text, guarded=guarded, unresolved=len(done.report.unresolved)).render(tongue)
    yield from unread_lines(done, tongue)
    if done.in_baseline:
        yield phrase("{count} more that the baseline shows already", count=len(done.in_baseline)).render(tongue)
    for accepted in done.accepted:
        place = f"{accepted.finding.file}:{accepted.finding.line}"
        yield phrase("{place}: accepted: {why}", place=place, why=accepted.reason).render(tongue)
    for note in done.notes:
        yield f"{show('note', tongue)}: {note.render(tongue)}"
    if done.drafted is not None:
        yield from _about_drafts(done.drafted, tongue)
    text = "Found: {before}. After apply: {after}."
    counts = {"before": tally(done.report, tongue), "after": tally(done.after, tongue)}
    if done.drafted is not None and done.drafted.drafts:
        text = "Found: {before}. After apply: {after}. With the drafts too: {left}."
        counts["left"] = tally(done.drafted.left, tongue)
    yield phrase(text, **counts).render(tongue)


def unread_lines(done: Check, tongue: Language) -> Iterator[str]:
    """The files that are no Python, and what that means for what is counted."""
    for one in done.unreadable:
        place = f"{one.file}:{one.line}"
        yield style(phrase("{place}: not read: {why}", place=place, why=one.why).render(tongue), fg="red")
    if done.unread_records:
        text = "what breaks there is not counted, and {count} {count:record|records} cannot be applied there"
        yield phrase(text, count=len(done.unread_records)).render(tongue)
    elif done.unreadable:
        yield show("what breaks there is not counted", tongue)


def _steps(done: Check) -> Iterator[Phrase]:
    """What to do about the findings, where the records or drafts of records can do something."""
    known = done.session.versions
    installed = all(known.get(name) == version for name, version in done.report.against.items())
    left = [one for one in done.after.of("break") if one.is_in_tree]
    # Of a file that is there and differs, the drafts hold what it says; one that is no record would end apply.
    files, drafts = (done.drafted.files, done.drafted.drafts) if done.drafted is not None else (None, ())
    drafted = (*files.written, *files.unchanged, *files.differing) if files is not None else ()
    drafted = drafted if len(drafts) == len(drafted) else ()
    # All or none: with one of these asked for, apply would write nothing.
    without = [part for outcome in done.repaired.plan.failed for part in ("--skip", outcome.id)]
    if done.unreadable:
        places = ", ".join(f"{one.file}:{one.line}" for one in done.unreadable)
        yield phrase("First mend {places}, and check again.", places=places)
    # To skip the records of such a file would leave it without them for good.
    if done.unread_records:
        return
    command = None
    session = _without_replaced(done)
    if drafted:
        patches = ("--diff", "--patches", str(Path(drafted[0]).parent))
        command = command_line(session, "apply", *patches, *without)
    elif len(done.after.of("break")) < len(done.report.of("break")):
        command = command_line(session, "apply", *without)
    if command is not None:
        next_ = "Next: {command}" if installed else "Once this is installed: {command}"
        yield phrase(next_, command=command)
    if left and done.drafted is None:
        yield phrase("Drafts of records for what is left: the same command with --draft drafts")


def _without_replaced(done: Check) -> Session:
    """The session without what was assumed of packages that were checked in another version.

    `--assume vllm==0.19.0` does not hold any more once the release that was checked against is installed.
    """
    against = {distribution_of(module): version for module, version in done.report.against.items()}
    session = done.session
    return replace(session, assume={n: v for n, v in session.assume.items() if against.get(n, v) == v})


def _about_drafts(drafted: Drafted, tongue: Language) -> Iterator[str]:
    files = drafted.files
    if not drafted.drafts and not files.differing:
        yield show("No record could be drafted.", tongue)
    for path in (*files.written, *files.unchanged):
        yield phrase("drafted: {path}; review it and move it to the fork's records", path=path).render(tongue)
    for path in files.differing:
        yield phrase("{path} is there already and differs from the draft: left as it is", path=path).render(tongue)


def _shortened(text: str, most: int) -> str:
    """The end of a dotted name or path, from a part's beginning."""
    if len(text) <= most:
        return text
    end = text[-(most - 1) :]
    cut = next((at for at, char in enumerate(end) if char in "./"), 0)
    return f"…{end[cut:]}"


def _wrapped(text: str, columns: int) -> list[str]:
    """Indented below a finding; what goes to a terminal is broken when it is printed."""
    if columns:
        return [" " * (_INDENT if columns >= NARROW else _INDENT_NARROW) + text]
    return wrapped(" " * _INDENT + text, _COLUMNS)
