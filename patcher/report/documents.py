"""The generated documents: MIGRATION.md from records, docs/symptoms.md and docs/quick-fixes.md from symptoms,
docs/matrix.md.

Each has an English and a Chinese template in `templates/`. `make docs` writes them, by `python -m bench.documents`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from patcher.check.matrix import Cell, Matrix
from patcher.diagnose.symptom_tree import sample_line, symptom_tree
from patcher.i18n import Language, show
from patcher.records.model import Record
from patcher.records.settings import Override, Reasons, Setting
from patcher.records.symptoms import Symptom
from patcher.report.matrix import mark, mark_as_is, missing_lines, spans
from patcher.report.records import conditions, text_of
from patcher.report.symptoms import fix_conditions, fix_text, fixes, words
from patcher.rewrite.in_words import in_words
from patcher.templating import environment

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
