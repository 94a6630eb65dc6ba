"""The report of `pins`: what other versions would mean, as text for one screen, as JSON, Markdown, and the page of its
check.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patcher import __version__
from patcher.check.pinning import check_request
from patcher.i18n import Language, language, phrase, show
from patcher.report.check import check_json, finding_json, page_json, page_lines, unread_lines
from patcher.report.check_page import check_page
from patcher.report.outcomes import as_json
from patcher.terminal.document import Json, Lines, Part, Table
from patcher.terminal.report_file import MARKDOWN
from patcher.terminal.table import Cell
from patcher.visible import visible

if TYPE_CHECKING:
    from patcher.check.pinning import Pins, PinsRequest
    from patcher.plan.outcome import RecordOutcome
    from patcher.preflight.importing import Imports
    from patcher.session.session import Session

_NAMED = 4
"""Names in one line; the others are an ellipsis. Set by hand."""


def pins_report(
    done: Pins, imports: Imports | None, session: Session, *, page: Path | None = None, markdown: Path | None = None
) -> Iterator[Part]:
    """Print JSON, or one screen. `page` and `markdown`: the files that were written."""
    if session.output == "json":
        files_json = {**page_json(page), **({"markdown": str(markdown)} if markdown else {})}
        yield Json({**pins_json(done, session), "imports": imports_json(imports), **files_json})
        return
    tongue = language()
    yield Table([_version_row(name, done, tongue) for name in done.proposed])
    rows = [
        *_record_rows("now needed", "yellow", done.needed, tongue),
        *_record_rows("no longer needed", "green", done.unneeded, tongue),
        *_record_rows("drifted", "red", done.drifted, tongue),
        *_break_rows(done, tongue),
        *_import_rows(imports, tongue),
    ]
    yield Lines("", *_about_packages(done, tongue), "")
    yield Table(rows)
    yield Lines(
        *[""] * bool(rows),
        *_drafted_lines(done, tongue),
        *_newest_verl(done, tongue),
        *_unread_lines(done, tongue),
        _sentence(done, tongue),
        *_import_lines(imports, tongue),
    )
    files = [phrase("The report is written: {path}", path=markdown).render(tongue)] if markdown is not None else []
    if page is not None or markdown is not None:
        yield Lines(*page_lines(page, tongue), *files)


def pins_page(done: Pins, session: Session, request: PinsRequest, place: Path, *, date: str) -> str:
    """The page of the check behind the comparison."""
    assert done.check is not None
    changed = {name: version for name, version in done.proposed.items() if name not in done.unchanged}
    return check_page(done.check, session, check_request(changed, request), place, date=date)


def pins_markdown(done: Pins, imports: Imports | None, *, date: str) -> str:
    """The comparison for an issue or a job's summary: versions, records, breaks, imports, and the drafts to review."""
    from patcher.secrets.redacting import here

    tongue = language()
    head = ("", show("now", tongue), show("proposed", tongue))
    versions = [(name, *_shown_versions(name, done, tongue)) for name in done.proposed]
    parts = [
        MARKDOWN,
        f"# {show('What other versions mean for this fork', tongue)}",
        *_markdown_table([head, *versions]),
    ]
    parts += ["", *_newest_verl(done, tongue), "", f"**{_sentence(done, tongue)}**", ""]
    if done.check is not None and done.check.unreadable:
        unread = [f"- `{one.file}:{one.line}` – {show(one.why, tongue)}" for one in done.check.unreadable]
        parts += [f"## {show('Not read: what breaks there is not counted', tongue)}", "", *unread, ""]
    groups = {"now needed": done.needed, "no longer needed": done.unneeded, "drifted": done.drifted}
    for label, outcomes in groups.items():
        about = [_about_record(label, one, tongue) for one in outcomes]
        parts += [f"- {show(label, tongue)}: `{one.id}` – {text}" for one, text in zip(outcomes, about, strict=True)]
    if done.breaks:
        names = tuple(show(word, tongue) for word in ("place", "what", "why"))
        rows = [(f"`{one.file}:{one.line}`", f"`{one.symbol}`", show(one.detail, tongue)) for one in done.breaks]
        parts += ["", f"## {show('Breaks left after apply', tongue)}", "", *_markdown_table([names, *rows])]
    if imports is not None:
        parts += ["", f"## {show('Imported on the proposed versions', tongue)}", "", *_import_lines(imports, tongue)]
    if imports is not None and imports.failed:
        head_row = (show("module", tongue), show("why", tongue))
        failed = [(f"`{one.name}`", show(one.detail, tongue)) for one in imports.failed]
        parts += ["", *_markdown_table([head_row, *failed])]
    drafts = done.check.drafted.drafts if done.check is not None and done.check.drafted is not None else ()
    if drafts:
        parts += ["", f"## {show('Drafts to review', tongue)}", "", *_drafted_lines(done, tongue)]
    for draft in drafts:
        parts += ["", f"### `{draft.id}`", "", "```toml", draft.text.rstrip("\n"), "```"]
    parts += ["", f"uky-patch {__version__} · {date}", ""]
    return here().text(visible("\n".join(parts)))


def _markdown_table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for at, row in enumerate(rows):
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"
        if at == 0:
            yield "| " + " | ".join("---" for _ in row) + " |"


def pins_json(done: Pins, session: Session) -> dict[str, Any]:
    """The JSON of `pins`; `from` and `to` are versions by package."""
    return {
        "root": str(session.tree.root),
        "from": dict(done.before),
        "to": dict(done.proposed),
        "ranges": {"from": dict(done.ranges_before), "to": dict(done.ranges_proposed)},
        "needed": [one.id for one in done.needed],
        "unneeded": [one.id for one in done.unneeded],
        "drifted": [as_json(one) for one in done.drifted],
        "breaks": [finding_json(one) for one in done.breaks],
        "check": check_json(done.check) if done.check is not None else None,
        "judged": {name: list(packages) for name, packages in done.judged._asdict().items()},
        "unchanged": list(done.unchanged),
        "untold": list(done.untold),
        "undrafted": [finding_json(one) for one in done.undrafted],
        "newest_verl": check_json(done.newest_verl) if done.newest_verl is not None else None,
        "left_out": list(done.left_out),
    }


def imports_json(imports: Imports | None) -> dict[str, Any] | None:
    """The JSON of `--import-with`: for both states of the tree the modules by outcome, with the reasons."""
    if imports is None:
        return None
    states = {"untouched": imports.untouched, "repaired": imports.repaired}
    by_outcome = {
        state: {
            "ok": [one.name for one in checks if one.status == "ok"],
            "left_out": {one.name: str(one.detail) for one in checks if one.status == "skip"},
            "failed": {one.name: str(one.detail) for one in checks if one.status in ("fail", "warn")},
        }
        for state, checks in states.items()
    }
    return {"python": str(imports.python), "versions": dict(imports.versions), **by_outcome}


def _about_packages(done: Pins, tongue: Language) -> Iterator[str]:
    """Which packages are judged and which are not, a line each; of those that nothing is about only the first few."""
    groups = {
        "every use is judged: {names}": done.judged.whole,
        "judged only where a name or an argument is gone: {names}": done.judged.arguments,
        "judged only where a name is gone: {names}": done.judged.names,
        "the same version, not judged: {names}": done.unchanged,
        "the file tells no version, not judged: {names}": done.untold,
    }
    for text, packages in groups.items():
        if packages:
            yield phrase(text, names=", ".join(packages)).render(tongue)
    if done.left_out:
        shown = ", ".join(done.left_out[:_NAMED]) + (", …" if len(done.left_out) > _NAMED else "")
        text = "left out, as neither records nor check are about them: {count} ({names})"
        yield phrase(text, count=len(done.left_out), names=shown).render(tongue)


def _version_row(name: str, done: Pins, tongue: Language) -> tuple[Cell, ...]:
    before, after = _shown_versions(name, done, tongue)
    return Cell(name), Cell(before), Cell("=" if name in done.unchanged else "->"), Cell(after)


def _shown_versions(name: str, done: Pins, tongue: Language) -> tuple[str, str]:
    """The version now and the proposed one; of one that nothing pins, which range it is the newest release of."""

    def shown(version: str, ranges: Mapping[str, str]) -> str:
        if name not in ranges:
            return version
        limits = ranges[name]
        text = phrase("newest of {range}", range=limits) if limits else phrase("the newest, not pinned")
        return f"{version} ({text.render(tongue)})"

    before = shown(done.before.get(name, show("unknown", tongue)), done.ranges_before)
    return before, shown(done.proposed[name], done.ranges_proposed)


def _record_rows(
    label: str, style: str, outcomes: Iterable[RecordOutcome], tongue: Language
) -> Iterator[tuple[Cell, ...]]:
    for one in outcomes:
        text = _about_record(label, one, tongue)
        yield (
            Cell(show(label, tongue), style),
            Cell(one.id),
            Cell("", reason=text) if label == "drifted" else Cell(text),
        )


def _about_record(label: str, one: RecordOutcome, tongue: Language) -> str:
    """Why a record cannot be applied, or else its title."""
    if label == "drifted":
        return show(one.detail, tongue)
    return one.title_zh if tongue == "zh" and one.title_zh else one.title


def _break_rows(done: Pins, tongue: Language) -> Iterator[tuple[Cell, ...]]:
    for one in done.breaks:
        place = f"{one.file.rpartition('/')[2]}:{one.line}"
        yield Cell(show("breaks", tongue), "red"), Cell(place), Cell("", reason=one.detail)


def _import_rows(imports: Imports | None, tongue: Language) -> Iterator[tuple[Cell, ...]]:
    for one in imports.failed if imports is not None else ():
        yield Cell(show("does not import", tongue), "red"), Cell(one.name), Cell("", reason=one.detail)


def _import_lines(imports: Imports | None, tongue: Language) -> Iterator[str]:
    if imports is None:
        return
    text = "{state}, {ok} of {total} modules of the plain job import, {failed} do not, {left_out} are left out"
    for state, checks in (("untouched", imports.untouched), ("with records and drafts", imports.repaired)):
        count = Counter(one.status for one in checks)
        failed = count["fail"] + count["warn"]
        given = {"ok": count["ok"], "total": len(checks), "failed": failed, "left_out": count["skip"]}
        yield phrase(text, state=phrase(state), **given).render(tongue)
    yield phrase("left out: a package is not installed, or the module itself refuses; with {python}",
                 python=imports.python).render(tongue)  # fmt: skip


def _drafted_lines(done: Pins, tongue: Language) -> list[str]:
    if done.check is None or done.check.drafted is None:
        return []
    drafts = done.check.drafted.drafts
    places = sum(len(draft.repairs) for draft in drafts)
    breaks = len(done.breaks) - len(done.undrafted)
    text = phrase(
        "{count} {count:record|records} drafted: they repair {breaks} of the {left} breaks left, "
        "and {others} places within features",
        count=len(drafts),
        breaks=breaks,
        left=len(done.breaks),
        others=places - breaks,
    )
    return [text.render(tongue)]


def _newest_verl(done: Pins, tongue: Language) -> list[str]:
    if done.newest_verl is None:
        return []
    text = phrase(
        "verl {verl}, the newest, on these versions: {found} breaks, {left} with the records applied",
        verl=done.newest_verl.report.verl,
        found=len(done.newest_verl.report.of("break")),
        left=len(done.newest_verl.after.of("break")),
    )
    return [text.render(tongue)]


def _unread_lines(done: Pins, tongue: Language) -> Iterator[str]:
    if done.check is None:
        return
    if done.check.empty is not None:
        yield f"{show('note', tongue)}: {done.check.empty.render(tongue)}"
    yield from unread_lines(done.check, tongue)


def _sentence(done: Pins, tongue: Language) -> str:
    if done.check is None:
        return show("no version changes", tongue)
    text = (
        "{needed} {needed:record|records} now needed, {unneeded} no longer needed, {drifted} drifted; "
        "{breaks} {breaks:break|breaks} left after apply"
    )
    if done.check.unreadable:
        text = (
            "{needed} {needed:record|records} now needed, {unneeded} no longer needed, {drifted} drifted; "
            "{breaks} {breaks:break|breaks} left after apply, {unread} {unread:file|files} not read"
        )
    sentence = phrase(
        text,
        unread=len(done.check.unreadable),
        needed=len(done.needed),
        unneeded=len(done.unneeded),
        drifted=len(done.drifted),
        breaks=len(done.breaks),
    )
    return sentence.render(tongue)
