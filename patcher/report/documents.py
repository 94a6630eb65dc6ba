"""The generated documents: MIGRATION.md from records, docs/symptoms.md and docs/quick-fixes.md from symptoms,
docs/matrix.md, and a fork's own MIGRATION.md.

Each has an English and a Chinese template in `templates/`. `make docs` writes them, by `python -m bench.documents`; a
fork's is written by `docs --write`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from patcher.check.matrix import Cell, Matrix
from patcher.diagnose.symptom_tree import sample_line, symptom_tree
from patcher.i18n import Language, Phrase, language, phrase, show
from patcher.patching.change_record import NAMES, ForkState, WriteOutcome, with_line
from patcher.records.model import Record
from patcher.records.settings import Override, Reasons, Setting
from patcher.records.symptoms import Symptom
from patcher.report.commands import command_line
from patcher.report.matrix import mark, mark_as_is, missing_lines, spans
from patcher.report.records import conditions, text_of
from patcher.report.symptoms import fix_conditions, fix_text, fixes, words
from patcher.rewrite.in_words import in_words
from patcher.templating import environment
from patcher.terminal.document import Json, Lines, Part

if TYPE_CHECKING:
    from patcher.session.session import Session


RECORD_DOCUMENTS: Mapping[str, tuple[str, Language]] = {
    "MIGRATION.md": ("migration.md.j2", "en"),
    "MIGRATION.zh-CN.md": ("migration.zh-CN.md.j2", "zh"),
}
"""Each document's template and language."""
SUBJECTS = ("vllm", "sglang", "transformers", "flash-attn", "triton", "torch", "ray", "other", "instrument")
"""The order of the subjects; the templates hold their names."""


@dataclass(frozen=True, slots=True)
class RecordEntry:
    """One record as the document shows it."""

    record: Record
    title: str
    reason: str
    conditions: str
    files: Sequence[tuple[str, Sequence[str]]]
    """Each file with its edits in words."""


def record_document(name: str, records: Sequence[Record], settings: Sequence[Setting]) -> str:
    """The text of the document `name`. Pure but for reading its template."""
    template, language = RECORD_DOCUMENTS[name]
    engine = environment()
    columns = vllm_columns(settings)
    rows = [_row(setting, columns, language) for setting in settings if setting.variable]
    overrides = [_override_row(item, setting, language) for setting in settings for item in setting.overrides]
    return engine.get_template(template).render(
        subjects=_subjects(records, language),
        columns=[column for column, _ in columns],
        rows=rows,
        overrides=overrides,
    )


def vllm_columns(settings: Sequence[Setting]) -> list[tuple[str, Version]]:
    """The spans of vLLM versions in which the same variables are read, each with a version inside it."""
    specifiers = [part for setting in settings for part in SpecifierSet(setting.when.get("vllm", ""))]
    bounds = sorted({Version(part.version) for part in specifiers})
    if not bounds:
        return [("", Version("0"))]
    inner = [(f">={low},<{high}", low) for low, high in pairwise(bounds)]
    return [(f"<{bounds[0]}", Version("0")), *inner, (f">={bounds[-1]}", bounds[-1])]


def _row(setting: Setting, columns: Sequence[tuple[str, Version]], language: Language) -> dict[str, Any]:
    """One variable for the template; `cells` are for the columns of vLLM versions, in order."""
    reasons: Reasons = setting.zh if language == "zh" and setting.zh is not None else setting.reasons
    needed = SpecifierSet(setting.when.get("vllm", ""))
    everyday = setting.value if set(setting.profiles) - {"fault"} else None
    used = f"`{everyday}`" if everyday else show("read", language)
    ignored = show("ignored", language)
    cells = [used if setting.reader != "nothing" and needed.contains(version) else ignored for _, version in columns]
    when = ", ".join(f"{name} {specifier}" for name, specifier in setting.when.items())
    texts = {"reason": reasons.reason, "instead": reasons.instead}
    return {"setting": setting, **texts, "conditions": when, "cells": cells}


def _override_row(item: Override, setting: Setting, language: Language) -> dict[str, Any]:
    """One hydra override of run scripts for the template; `text` is as the command line has it."""
    reasons = setting.zh if language == "zh" and setting.zh is not None else setting.reasons
    when = [f"{name} {specifier}" for name, specifier in item.when.items()]
    when += [f"{show('without', language)} {name}" for name in item.absent]
    text = f"{'+' if item.add else ''}{item.key}={item.value}"
    return {"override": item, "text": text, "reason": reasons.reason, "conditions": show(", ", language).join(when)}


def _subjects(records: Sequence[Record], language: Language) -> dict[str, list[RecordEntry]]:
    """Records by the first of their tags, in the order of `SUBJECTS`, opt-in ones behind the others."""
    found: dict[str, list[RecordEntry]] = {}
    for record in sorted(records, key=lambda record: (_place(_subject(record)), not record.enabled, record.id)):
        found.setdefault(_subject(record), []).append(record_entry(record, language))
    return found


def _subject(record: Record) -> str:
    subject = record.tags[0] if record.tags else "other"
    return "triton" if subject == "libcuda" else subject


def _place(subject: str) -> tuple[int, str]:
    known = SUBJECTS.index(subject) if subject in SUBJECTS else SUBJECTS.index("other")
    return known, subject


def record_entry(record: Record, language: Language) -> RecordEntry:
    """One record, in words."""
    text = text_of(record, language)
    files = [
        (file, [show(in_words(edit), language) for edit in record.edits if edit.file == file]) for file in record.files
    ]
    return RecordEntry(record, text.title, text.reason, conditions(record.when, language), files)


SYMPTOM_DOCUMENTS: Mapping[str, tuple[str, Language]] = {
    "docs/symptoms.md": ("symptoms.md.j2", "en"),
    "docs/symptoms.zh-CN.md": ("symptoms.zh-CN.md.j2", "zh"),
    "docs/quick-fixes.md": ("quick-fixes.md.j2", "en"),
    "docs/quick-fixes.zh-CN.md": ("quick-fixes.zh-CN.md.j2", "zh"),
}
"""Each document's template and language."""


def symptom_document(name: str, symptoms: Sequence[Symptom]) -> str:
    """The text of the document `name`. Pure but for reading its template."""
    template, language = SYMPTOM_DOCUMENTS[name]
    engine = environment()
    engine.filters["code"] = _code
    engine.filters["cell"] = lambda text: _code(text).replace("|", "\\|")
    branches = [
        (
            show(branch.answer, language),
            [
                (show(group.heading, language), [_symptom_entry(one, language) for one in group.symptoms])
                for group in branch.groups
            ],
        )
        for branch in symptom_tree(symptoms)
    ]
    return engine.get_template(template).render(branches=branches, count=len(symptoms)).rstrip("\n") + "\n"


def _symptom_entry(symptom: Symptom, language: Language) -> dict[str, Any]:
    """One symptom for the templates; `seen` is the line to look for."""
    advice = [
        {
            "text": fix_text(offer, language),
            "commands": offer.commands,
            "conditions": fix_conditions(fix, language),
        }
        for fix, offer in fixes(symptom)
    ]
    return {"symptom": symptom, "words": words(symptom, language), "seen": sample_line(symptom), "fixes": advice}


def _code(text: str) -> str:
    """Text as code in Markdown, whatever it holds."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


MATRIX_DOCUMENTS: Mapping[str, tuple[str, Language]] = {
    "docs/matrix.md": ("matrix.md.j2", "en"),
    "docs/matrix.zh-CN.md": ("matrix.zh-CN.md.j2", "zh"),
}
"""Each document's template and language."""


def matrix_document(name: str, matrix: Matrix, *, command: str, date: str) -> str:
    """The text of the document `name`. Pure but for reading its template."""
    template, language = MATRIX_DOCUMENTS[name]
    engine = environment()
    text = engine.get_template(template).render(
        package=matrix.package,
        command=command,
        date=date,
        with_records=table(matrix, mark),
        as_is=table(matrix, mark_as_is),
        missing=missing_lines(matrix, language),
    )
    return text.rstrip("\n") + "\n"


def table(matrix: Matrix, marked: Callable[[Cell | None], str]) -> str:
    """A Markdown table with a row for each span of releases that have the same marks."""
    rows = [
        (span.shown, *(marked(cell).replace("ok", "✓").replace("x", "×") for cell in span.cells))
        for span in spans(matrix, marked)
    ]
    head = (matrix.package, *(f"verl {verl}" for verl in matrix.verl))
    rule = ("---", *("---" for _ in matrix.verl))
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rows))


_TEMPLATES: Mapping[str, tuple[str, Language]] = {
    NAMES[0]: ("fork.md.j2", "en"),
    NAMES[1]: ("fork.zh-CN.md.j2", "zh"),
}
_LINE = "<!-- line -->"


def fork_document(name: str, state: ForkState, session: Session) -> str:
    """The text of the document `name`. Pure but for reading its template."""
    template, tongue = _TEMPLATES[name]
    lines: dict[str, list[int]] = {}
    for marked in state.unrecorded:
        lines.setdefault(marked.file, []).append(marked.line)
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
