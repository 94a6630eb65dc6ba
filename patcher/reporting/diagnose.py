"""A diagnosis on a terminal or as JSON."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import click

from patcher.diagnosis.evidence import Place
from patcher.diagnosis.model import Diagnosis, Finding, Offer
from patcher.diagnosis.naming import name
from patcher.language import Language, Phrase, language, phrase, show
from patcher.reporting.table import width

_STYLES = {"ok": "green", "failed": "red", "stalled": "yellow", "running": "cyan"}
_WORDS = {
    "ok": phrase("OK"),
    "failed": phrase("FAIL"),
    "stalled": phrase("STALLED"),
    "running": phrase("RUNNING"),
}
_COLUMN = 12
_WIDTH = 116
_SHOWN = 8
"""Lines about the root that are shown, and the names of a cascade."""


def show_diagnosis(found: Diagnosis, output: Literal["text", "json"], log: str = "") -> None:
    """`log` is what was diagnosed, by its name on the command line."""
    if output == "json":
        click.echo(json.dumps(found.as_json(), ensure_ascii=False, indent=2))
        return
    click.echo("\n".join(lines(found, log, language())))


def lines(found: Diagnosis, log: str, tongue: Language) -> list[str]:
    """The report, line by line."""
    report = [_head(found, log, tongue)]
    if reached := _phases(found, tongue):
        report += _item(phrase("phases"), reached, tongue)
    root = found.root
    if root is not None:
        report += _root(root, found, tongue)
    elif found.telling and found.verdict != "ok":
        report += _quoted(phrase("last words"), found.telling, None, tongue)
    report += _cascade(found, tongue)
    report += _quoted(phrase("never came"), found.missing, None, tongue)
    report += _quoted(phrase("only here"), found.added, None, tongue)
    return report


def _head(found: Diagnosis, log: str, tongue: Language) -> str:
    word = click.style(show(_WORDS[found.verdict], tongue), fg=_STYLES[found.verdict], bold=True)
    told = (
        phrase("no phase of a training is seen")
        if found.phase is None
        else phrase("in phase {phase}", phase=name(found.phase))
    )
    if found.verdict == "ok":
        told = phrase("the run has come to its end")
    if found.lines == 0:
        told = phrase("the log is empty")
    size = phrase("{log}: {lines} lines, {size}", log=log, lines=f"{found.lines:,}", size=_size(found.size))
    return f"{word}  {show(told, tongue)}  ({show(size, tongue)})" if log else f"{word}  {show(told, tongue)}"


def _phases(found: Diagnosis, tongue: Language) -> str:
    reached = []
    for phase, seconds in found.spans.items():
        took = f" {seconds:.0f} s" if seconds >= 1 else ""
        reached.append(f"{show(name(phase), tongue)}{took}")
    told = " \u25b8 ".join(reached)
    if found.step is not None or found.steps is not None:
        step = phrase("step {step} of {steps}", step=found.step or 0, steps=found.steps)
        alone = phrase("step {step}", step=found.step)
        told += f" \u00b7 {show(step if found.steps is not None else alone, tongue)}"
    return told.removeprefix(" \u00b7 ")


def _root(root: Finding, found: Diagnosis, tongue: Language) -> Iterator[str]:
    symptom = root.symptom
    if symptom is None:
        yield from _item(
            phrase("root"), show(phrase("no record covers this; the lines that tell most are below"), tongue), tongue
        )
    else:
        words = symptom.zh if tongue == "zh" else symptom
        yield from _item(phrase("root"), f"{words.title}  [{symptom.id}]", tongue)
    yield from _quoted(None, _about(root, found), root.place, tongue)
    if symptom is not None:
        yield from _item(phrase("cause"), (symptom.zh if tongue == "zh" else symptom).cause, tongue)
    for number, offer in enumerate(root.fixes, 1):
        label = phrase("fix {number}", number=number) if len(root.fixes) > 1 else phrase("fix")
        yield from _fix(label, offer, tongue)


def _about(root: Finding, found: Diagnosis) -> Sequence[Place]:
    """The lines that show the root, with the line itself."""
    if root.place not in found.telling:
        return (root.place,)
    at = found.telling.index(root.place)
    begin = max(0, min(at - _SHOWN // 2, len(found.telling) - _SHOWN)) if root.symptom is not None else 0
    return found.telling[begin : begin + max(_SHOWN, at + 1)]


def _quoted(label: Phrase | None, places: Sequence[Place], own: Place | None, tongue: Language) -> Iterator[str]:
    """Lines of the log by their places, the one that counts with a mark."""
    if not places:
        return
    margin = " " * (_COLUMN + 2)
    shown = [
        (f"{Path(place.file).name}:{place.number}" if place.file != "-" else str(place.number), place)
        for place in places
    ]
    wide = max(len(where) for where, _ in shown)
    for number, (where, place) in enumerate(shown):
        mark = ">" if own is not None and (place.file, place.number) == (own.file, own.number) else " "
        text = place.text if len(place.text) <= 400 else place.text[:400] + " \u2026"
        head = _label(label, tongue) if label is not None and not number else margin
        line = f"{head}{mark} {where:>{wide}}  {text}".rstrip()
        yield click.style(line, bold=True) if mark == ">" else line


def _fix(label: Phrase, offer: Offer, tongue: Language) -> Iterator[str]:
    yield from _item(label, offer.zh if tongue == "zh" else offer.text, tongue)
    for command in offer.commands:
        yield f"{' ' * (_COLUMN + 6)}{command}"
    if offer.note:
        yield from (f"{' ' * (_COLUMN + 4)}{line}" for line in _wrapped(f"({show(offer.note, tongue)})", 4))
    if offer.setting is not None and not offer.commands:
        setting = phrase("run scripts have it from the setting {setting}", setting=offer.setting)
        yield f"{' ' * (_COLUMN + 4)}({show(setting, tongue)})"


def _cascade(found: Diagnosis, tongue: Language) -> Iterator[str]:
    rest = [finding for finding in found.findings if finding.role == "cascade" and finding.symptom is not None]
    if not rest:
        return
    named = []
    for finding in rest[:_SHOWN]:
        assert finding.symptom is not None
        words = finding.symptom.zh if tongue == "zh" else finding.symptom
        named.append(show(phrase("{title} (line {line})", title=words.title, line=finding.place.number), tongue))
    if len(rest) > _SHOWN:
        named.append(show(phrase("and {count} more", count=len(rest) - _SHOWN), tongue))
    joined = ("\u3001" if tongue == "zh" else ", ").join(named)
    yield from _item(phrase("cascade"), show(phrase("{names}: seen besides", names=joined), tongue), tongue)


def _item(label: Phrase, text: str, tongue: Language) -> Iterator[str]:
    head = _label(label, tongue)
    for number, line in enumerate(_wrapped(text, 0)):
        yield f"{head if not number else ' ' * (_COLUMN + 2)}{line}"


def _label(label: Phrase, tongue: Language) -> str:
    text = show(label, tongue)
    return f"  {text}{' ' * max(1, _COLUMN - width(text))}"


def _wrapped(text: str, less: int) -> list[str]:
    """The text in lines as wide as a terminal; Chinese may break anywhere."""
    room = _WIDTH - _COLUMN - less
    if width(text) <= room:
        return [text]
    if width(text) == len(text):
        return textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False)
    found, line = [], ""
    for char in text:
        if width(line + char) > room:
            found.append(line)
            line = ""
        line += char
    return [*found, line]


def _size(size: int) -> str:
    for unit, of in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= of:
            return f"{size / of:.1f} {unit}"
    return f"{size} B"
