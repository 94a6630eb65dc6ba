"""The report of `symptoms`: all known failures as a decision tree, as a card of quick fixes, or one of them in full."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from patcher.diagnose.diagnosis import Offer
from patcher.diagnose.fixes import FixContext, fixes_for
from patcher.diagnose.symptom_tree import sample_line, symptom_tree
from patcher.i18n import Language, phrase, show
from patcher.logs.milestones import phase_name
from patcher.records.symptoms import Fix, Symptom, Words
from patcher.terminal.document import Lines, Part, Table
from patcher.terminal.sequences import to_paste
from patcher.terminal.table import Cell


def tree_report(symptoms: Sequence[Symptom], tongue: Language) -> Iterator[Part]:
    """The decision tree, a symptom a line."""
    for number, branch in enumerate(symptom_tree(symptoms)):
        yield Lines(*[""] * bool(number), show(branch.answer, tongue))
        for group in branch.groups:
            yield Lines(f"  {show(group.heading, tongue)}")
            yield Table([(Cell(one.id, "cyan"), Cell(words(one, tongue).title)) for one in group.symptoms], indent=4)
    yield Lines("", phrase("One of them in full: uky-patch symptoms ID. A log: uky-patch diagnose LOG."))


def card_report(symptoms: Sequence[Symptom], tongue: Language) -> Iterator[Part]:
    """For each symptom the line to look for and the first thing to do."""
    for symptom in symptoms:
        yield Lines(sample_line(symptom), f"  {words(symptom, tongue).title}  [{symptom.id}]")
        for _, offer in fixes(symptom)[:1]:
            yield Lines("  " + fix_text(offer, tongue), *("    " + to_paste(line) for line in offer.commands))


def symptom_report(symptom: Symptom, tongue: Language) -> Iterator[Part]:
    """One record: what it looks like, its cause, every fix with its conditions."""
    text = words(symptom, tongue)
    yield Lines(f"{symptom.id}: {text.title}", f"  {text.cause}")
    if symptom.phase:
        named = show(", ", tongue).join(show(phase_name(phase), tongue) for phase in symptom.phase)
        yield Lines(f"  {show('phase', tongue)}: {named}")
    if sign := sample_line(symptom):
        yield Lines(f"  {show('looks like', tongue)}: {sign}")
    for number, (fix, offer) in enumerate(fixes(symptom), 1):
        when = fix_conditions(fix, tongue)
        yield Lines(f"  {number}. {fix_text(offer, tongue)}" + (f" ({when})" if when else ""))
        for line in offer.commands:
            yield Lines(f"       {to_paste(line)}")
    if symptom.source:
        yield Lines(f"  {show('text from', tongue)}: {symptom.source}")
    if symptom.path is not None:
        yield Lines(f"  {show('record', tongue)}: {symptom.path}")


def symptom_json(symptom: Symptom) -> dict[str, Any]:
    """A record for programs."""
    return {
        "id": symptom.id,
        "title": symptom.title,
        "cause": symptom.cause,
        "kind": symptom.kind,
        "topic": symptom.topic,
        "phase": list(symptom.phase),
        "seen": sample_line(symptom),
        "fixes": [
            {"text": fix.text, "commands": list(offer.commands), "patch": fix.patch, "when": dict(fix.when)}
            for fix, offer in fixes(symptom)
        ],
    }


def words(symptom: Symptom, tongue: Language) -> Words:
    """Title and cause in the reader's language."""
    return symptom.zh if tongue == "zh" else Words(symptom.title, symptom.cause)


def fixes(symptom: Symptom) -> tuple[tuple[Fix, Offer], ...]:
    """Every fix of a record with its commands, whatever the versions."""
    return tuple(zip(symptom.fixes, fixes_for(symptom, FixContext()), strict=True))


def fix_text(offer: Offer, tongue: Language) -> str:
    """What to do, in the reader's language."""
    return offer.zh if tongue == "zh" else offer.text


def fix_conditions(fix: Fix, tongue: Language) -> str:
    """The versions that a fix is for; empty where it is for all."""
    return show(", ", tongue).join(f"{package} {specifier}" for package, specifier in fix.when.items())
