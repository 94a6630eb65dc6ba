"""The fixes of a symptom that count here: for the versions at hand, with where their records stand on the tree."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from patcher.diagnose.diagnosis import Offer
from patcher.diagnose.frame import distribution
from patcher.i18n import NOTHING, Phrase, Phrases, phrase
from patcher.packages.versions import Kind, No, satisfies
from patcher.plan.outcome import FAILED, RecordOutcome
from patcher.records.symptoms import Fix, Symptom


@dataclass(frozen=True, slots=True)
class FixContext:
    """Where a fix is to count: versions, and where the patch records stand on the tree at hand, by id."""

    versions: Mapping[str, str] = field(default_factory=dict)
    outcomes: Mapping[str, RecordOutcome] = field(default_factory=dict)
    """Empty where no tree is at hand."""
    root: str = ""
    """The tree, where it was named."""
    log: str = ""
    """The file that is read, where it is one: what commands say `LOG` for."""


def fixes_for(symptom: Symptom, context: FixContext, line: str = "") -> tuple[Offer, ...]:
    """In the record's order, without those that the versions ignore.

    Args:
        line: the line of the log that is the symptom's sign, for commands with a word of it: `pip install PACKAGE`.
    """
    words = _words(symptom, line)
    allowed = [fix for fix in symptom.fixes if versions_allow(fix.when, context.versions)]
    return tuple(_prepare_fix(fix, context, words) for fix in allowed)


_PLAIN = re.compile(r"[\w.+-]+")


def _words(symptom: Symptom, line: str) -> dict[str, str]:
    """What the named groups of the symptom's pattern take from the line: `(?P<module>\\w+)` is MODULE in a command.

    PACKAGE is what is installed to have that module. Text that means something to a shell is not put into a command.
    """
    for match in symptom.matches if line else ():
        if "(?P<" in match.line and (found := re.search(match.line, line, re.IGNORECASE)) is not None:
            words = {name.upper(): text for name, text in found.groupdict().items() if text and _PLAIN.fullmatch(text)}
            if "MODULE" in words:
                words["PACKAGE"] = distribution(words["MODULE"].partition(".")[0])
            return words
    return {}


def versions_allow(when: Mapping[str, str], versions: Mapping[str, str]) -> bool:
    """Whether no known version is outside of what is asked for."""
    return not any(
        name in versions and isinstance(satisfies(versions[name], specifier, kind=_kind(name)), No)
        for name, specifier in when.items()
    )


def _kind(name: str) -> Kind:
    return "tree" if name == "verl" else "dependency"


def _prepare_fix(fix: Fix, context: FixContext, words: Mapping[str, str]) -> Offer:
    commands, note = _apply(fix.patch, context) if fix.patch else ([], NOTHING)
    words = {**words, "LOG": context.log} if context.log else words
    run = re.sub(r"\b[A-Z]{3,}\b", lambda found: shlex.quote(words.get(found[0], found[0])), fix.run)
    commands += run.splitlines()
    commands += [f"export {name}={shlex.quote(value)}" for name, value in fix.env.items()]
    commands += [f"{key}={shlex.quote(value)}" for key, value in fix.set.items()]
    undecided = {name: spec for name, spec in fix.when.items() if name not in context.versions}
    if undecided and not note:
        note = phrase("only with {versions}", versions=", ".join(f"{name}{spec}" for name, spec in undecided.items()))
    return Offer(fix.text, fix.zh, tuple(commands), fix.patch, fix.setting, note)


def _apply(patch: str, context: FixContext) -> tuple[list[str], Phrase | Phrases]:
    """The command, where it would do something, and what the record comes to on the tree."""
    tree = f"--root {shlex.quote(context.root)} " if context.root else ""
    outcome = context.outcomes.get(patch)
    if outcome is None:
        return [f"uky-patch {tree}apply {patch}"], NOTHING
    message = phrase(
        "{record} on this tree: {outcome}, {detail}",
        record=patch,
        outcome=Phrases((outcome.kind.replace("-", " "),)),
        detail=outcome.detail,
    )
    if outcome.kind == "pending":
        return [f"uky-patch {tree}apply {patch}"], message
    return ([f"uky-patch {tree}explain {patch}"] if outcome.kind in FAILED else []), message
