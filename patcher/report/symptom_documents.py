"""docs/symptoms.md, docs/quick-fixes.md and their Chinese twins: `python -m patcher.report.symptom_documents`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from patcher.diagnose.symptom_tree import sample_line, symptom_tree
from patcher.i18n import Language, show
from patcher.records.symptom_parse import load_symptoms
from patcher.records.symptoms import Symptom, Words
from patcher.report.symptoms import conditions, fixes, said_by, words
from patcher.templating import environment
from patcher.terminal.report_file import write_whole

DOCUMENTS: Mapping[str, tuple[str, Language]] = {
    "docs/symptoms.md": ("symptoms.md.j2", "en"),
    "docs/symptoms.zh-CN.md": ("symptoms.zh-CN.md.j2", "zh"),
    "docs/quick-fixes.md": ("quick-fixes.md.j2", "en"),
    "docs/quick-fixes.zh-CN.md": ("quick-fixes.zh-CN.md.j2", "zh"),
}
"""Each document's template and language."""


@dataclass(frozen=True, slots=True)
class Advice:
    """One fix as the documents show it."""

    text: str
    commands: Sequence[str]
    conditions: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One symptom as the documents show it."""

    symptom: Symptom
    words: Words
    seen: str
    fixes: Sequence[Advice]


@dataclass(frozen=True, slots=True)
class Section:
    heading: str
    entries: Sequence[Entry]


def render(name: str, symptoms: Sequence[Symptom]) -> str:
    """The text of the document `name`. Pure but for reading its template."""
    template, language = DOCUMENTS[name]
    engine = environment()
    engine.filters["code"] = _code
    engine.filters["cell"] = lambda text: _code(text).replace("|", "\\|")
    entry = _entries(language)
    branches = [
        (
            show(branch.answer, language),
            [Section(show(group.heading, language), [entry(one) for one in group.symptoms]) for group in branch.groups],
        )
        for branch in symptom_tree(symptoms)
    ]
    return engine.get_template(template).render(branches=branches, count=len(symptoms)).rstrip("\n") + "\n"


def _entries(language: Language) -> Callable[[Symptom], Entry]:
    def entry(symptom: Symptom) -> Entry:
        advice = [
            Advice(said_by(offer, language), offer.commands, conditions(fix, language)) for fix, offer in fixes(symptom)
        ]
        return Entry(symptom, words(symptom, language), sample_line(symptom), advice)

    return entry


def _code(text: str) -> str:
    """Text as code in Markdown, whatever it holds."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def main() -> int:
    """Write the documents; say which have changed."""
    symptoms, root = load_symptoms(), Path(__file__).parents[2]
    for name in DOCUMENTS:
        text, path = render(name, symptoms), root / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            write_whole(path, text)
            print(f"wrote {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
