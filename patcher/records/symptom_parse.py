"""A symptom's TOML text -> Symptom, or all of its mistakes at once. The table `SYMPTOM` says which keys there are.

Patterns are regular expressions. One that matches the empty line is refused, and so is a sign without a word of three
letters or more: a log of gigabytes is searched for such words before any expression is tried.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args

from patcher.i18n import phrase
from patcher.logs.milestones import PHASES
from patcher.logs.required_words import learn, required_words, width
from patcher.records.load import kept_as_shipped, parsed, symptom_files
from patcher.records.rules import VERSIONS, identifier, is_id, is_variable
from patcher.records.symptoms import (
    TOPICS,
    Fix,
    Kind,
    Match,
    Part,
    Stack,
    Symptom,
    SymptomExample,
    Test,
    Trend,
    Wait,
    Words,
)
from patcher.tables.mistakes import KeyPath, Mistake, mistakes_error
from patcher.tables.shapes import (
    Matching,
    Mistakes,
    Shape,
    choice,
    flag,
    mapping,
    number,
    one_of,
    read_file,
    table,
    tables,
    text,
    texts,
    whole,
)


def load_symptoms(folders: Sequence[Path] = ()) -> tuple[Symptom, ...]:
    """The shipped symptoms and those of `folders`, which replace shipped ones of the same name, by id.

    Raises RecordError with all mistakes of all files, and for a folder that is not there.
    """
    symptoms, mistakes = parsed(symptom_files(folders), _shipped_symptoms(), parse_symptom)
    if not mistakes:
        ids = {symptom.id for symptom in symptoms}
        mistakes = [
            Mistake(str(symptom.path), 0, "follows", phrase("there is no symptom {name!r}", name=name))
            for symptom in symptoms
            for name in symptom.follows
            if name not in ids
        ]
    if mistakes:
        title = phrase("{count} {count:mistake|mistakes} in the symptoms", count=len(mistakes))
        raise mistakes_error(title, mistakes)
    return tuple(symptoms)


@lru_cache(maxsize=1)
def _shipped_symptoms() -> Mapping[Path, Symptom]:
    """Those that the tool came with, by file: parsed once, and kept with the words that each pattern needs.

    Parsing and checking 472 files takes 0.5 s, reading them back 20 ms. None where one of them is wrong.
    """

    def compute() -> dict[str, Any] | None:
        found, mistakes = parsed(symptom_files(), {}, parse_symptom)
        if mistakes:
            return None
        words = {match.line: tuple(required_words(match.line)) for one in found for match in one.matches}
        return {"symptoms": dict(zip(symptom_files(), found, strict=True)), "words": words}

    values = kept_as_shipped("symptoms", compute)
    learn(values.get("words", {}))
    symptoms: Mapping[Path, Symptom] = values.get("symptoms", {})
    return symptoms


def parse_symptom(source: str, path: Path) -> Symptom | list[Mistake]:
    """One file's symptom, or all of its mistakes."""
    found = read_file(source, path, SYMPTOM)
    return replace(found, path=path) if isinstance(found, Symptom) else found


def _is_pattern(pattern: str) -> None:
    """A regular expression that matches something: one that matches the empty line would match every line."""
    try:
        least = width(pattern)
    except re.error as error:
        raise ValueError(phrase("is no regular expression: {problem}", problem=str(error))) from None
    if not least:
        raise ValueError(phrase("matches the empty line"))


def _is_sign(pattern: str) -> None:
    """A pattern with a word to look for first, as a log of gigabytes is not searched with hundreds of patterns."""
    _is_pattern(pattern)
    try:
        required_words(pattern)
    except ValueError:
        raise ValueError(phrase("can match without any word of three letters or more")) from None


def _check_trend(mistakes: Mistakes, path: KeyPath, trend: Trend, written: Mapping[str, Any]) -> None:
    if ("value" in written) != (trend.test in ("below", "above")):
        mistakes.note((*path, "value"), "goes with the tests 'below' and 'above'")


def _check_stack(mistakes: Mistakes, path: KeyPath, stack: Stack, _: Mapping[str, Any]) -> None:
    if not stack.frames and not stack.stopped:
        mistakes.note((*path, "frames"), "is missing")


def _check_symptom(mistakes: Mistakes, _: KeyPath, symptom: Symptom, __: Mapping[str, Any]) -> None:
    if not (symptom.matches or symptom.waits or symptom.trends or symptom.stacks):
        mistakes.note(("match",), "is missing; a symptom needs a [[match]], [[wait]], [[trend]] or [[stack]]")
    if not symptom.fixes:
        mistakes.note(("fix",), "is missing; a symptom needs at least one [[fix]]")
    if symptom.matches and not any(example.line for example in symptom.examples):
        mistakes.note(("example",), "is missing; a symptom with a [[match]] needs an [[example]]")


def _make_fix(run: str, **others: Any) -> Fix:
    return Fix(run=run.strip(), **others)


def _make_symptom(example: tuple[SymptomExample, ...], near_miss: tuple[SymptomExample, ...], **others: Any) -> Symptom:
    return Symptom(examples=(*example, *near_miss), **others)


_MATCH = Shape(
    Match,
    {
        "line": text(_is_sign),
        "near": texts(_is_pattern),
        "within": whole(40),
        "after-steps": whole(0, attribute="after_steps"),
    },
)
_TREND = Shape(
    Trend,
    {
        "metric": text(_is_pattern),
        "test": choice(get_args(Test)),
        "value": number(0.0),
        "steps": whole(1),
        "also": texts(),
    },
    _check_trend,
)
_STACK = Shape(Stack, {"frames": texts(_is_pattern), "main": flag(True), "stopped": flag(False)}, _check_stack)
_IS_OVERRIDE = Matching(
    re.compile(r"\+{0,2}[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+", re.ASCII), "{name!r} is no key of a config", "name"
)
_FIX = Shape(
    _make_fix,
    {
        "text": text(),
        "zh": text(),
        "run": text(blank=True, default=""),
        "set": mapping(_IS_OVERRIDE),
        "env": mapping(is_variable),
        "patch": text(blank=True, default=None),
        "setting": text(blank=True, default=None),
        "when": table(VERSIONS),
        "where": text(_is_pattern, default=""),
    },
)
_EXAMPLE = Shape(SymptomExample, {"name": text(), "log": text(), "line": whole(1)})
_NEAR_MISS = Shape(SymptomExample, {"name": text(), "log": text()})
SYMPTOM = Shape(
    _make_symptom,
    {
        "id": identifier(is_id),
        "title": text(),
        "cause": text(),
        "kind": choice(get_args(Kind)),
        "topic": choice(TOPICS),
        "part": choice(get_args(Part), default="cause"),
        "phase": texts(one_of(PHASES)),
        "generic": flag(False),
        "follows": texts(),
        "times": whole(1),
        "source": text(blank=True, default=""),
        "note": text(blank=True, default=""),
        "zh": table(Shape(Words, {"title": text(), "cause": text()})),
        "when": table(VERSIONS),
        "match": tables(_MATCH, attribute="matches"),
        "wait": tables(Shape(Wait, {"line": text(_is_pattern)}), attribute="waits"),
        "trend": tables(_TREND, attribute="trends"),
        "stack": tables(_STACK, attribute="stacks"),
        "fix": tables(_FIX, attribute="fixes"),
        "example": tables(_EXAMPLE),
        "near-miss": tables(_NEAR_MISS, attribute="near_miss"),
    },
    _check_symptom,
)
