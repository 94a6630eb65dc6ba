"""MIGRATION.md and its Chinese twin, rendered from the records: `python -m patcher.report.migration`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from patcher.i18n import Language, show
from patcher.records.load import load
from patcher.records.model import Record
from patcher.records.settings import Override, Reasons, Setting, load_settings
from patcher.report.edits import in_words
from patcher.report.records import conditions, text_of
from patcher.templating import environment
from patcher.terminal.report_file import write_whole

DOCUMENTS: Mapping[str, tuple[str, Language]] = {
    "MIGRATION.md": ("migration.md.j2", "en"),
    "MIGRATION.zh-CN.md": ("migration.zh-CN.md.j2", "zh"),
}
"""Each document's template and language."""
SUBJECTS = ("vllm", "transformers", "flash-attn", "triton", "torch", "ray", "other", "instrument")
"""The order of the subjects; the templates hold their names."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One record as the document shows it."""

    record: Record
    title: str
    reason: str
    conditions: str
    files: Sequence[tuple[str, Sequence[str]]]
    """Each file with its edits in words."""


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One variable as the document shows it; `cells` are for the columns of vLLM versions, in order."""

    setting: Setting
    reason: str
    instead: str
    conditions: str
    cells: Sequence[str]


@dataclass(frozen=True, slots=True)
class OverrideRow:
    """One hydra override of run scripts as the document shows it."""

    override: Override
    text: str
    """As the command line has it."""
    reason: str
    conditions: str


def render(name: str, records: Sequence[Record], settings: Sequence[Setting]) -> str:
    """The text of the document `name`. Pure but for reading its template."""
    template, language = DOCUMENTS[name]
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


def _row(setting: Setting, columns: Sequence[tuple[str, Version]], language: Language) -> SettingRow:
    reasons: Reasons = setting.zh if language == "zh" and setting.zh is not None else setting.reasons
    needed = SpecifierSet(setting.when.get("vllm", ""))
    everyday = setting.value if set(setting.profiles) - {"fault"} else None
    used = f"`{everyday}`" if everyday else show("read", language)
    ignored = show("ignored", language)
    cells = [used if setting.reader != "nothing" and needed.contains(version) else ignored for _, version in columns]
    when = ", ".join(f"{name} {specifier}" for name, specifier in setting.when.items())
    return SettingRow(setting, reasons.reason, reasons.instead, when, cells)


def _override_row(item: Override, setting: Setting, language: Language) -> OverrideRow:
    reasons = setting.zh if language == "zh" and setting.zh is not None else setting.reasons
    when = [f"{name} {specifier}" for name, specifier in item.when.items()]
    when += [f"{show('without', language)} {name}" for name in item.absent]
    text = f"{'+' if item.add else ''}{item.key}={item.value}"
    return OverrideRow(item, text, reasons.reason, show(", ", language).join(when))


def _subjects(records: Sequence[Record], language: Language) -> dict[str, list[Entry]]:
    """Records by the first of their tags, in the order of `SUBJECTS`, opt-in ones behind the others."""
    found: dict[str, list[Entry]] = {}
    for record in sorted(records, key=lambda record: (_place(_subject(record)), not record.enabled, record.id)):
        found.setdefault(_subject(record), []).append(_entry(record, language))
    return found


def _subject(record: Record) -> str:
    subject = record.tags[0] if record.tags else "other"
    return "triton" if subject == "libcuda" else subject


def _place(subject: str) -> tuple[int, str]:
    known = SUBJECTS.index(subject) if subject in SUBJECTS else SUBJECTS.index("other")
    return known, subject


def _entry(record: Record, language: Language) -> Entry:
    text = text_of(record, language)
    files = [
        (file, [show(in_words(edit), language) for edit in record.edits if edit.file == file]) for file in record.files
    ]
    return Entry(record, text.title, text.reason, conditions(record.when, language), files)


def main() -> int:
    """Write the documents beside the package; say which have changed."""
    records, settings = load(), load_settings()
    root = Path(__file__).parents[2]
    for name in DOCUMENTS:
        text = render(name, records, settings)
        path = root / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            write_whole(path, text)
            print(f"wrote {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
