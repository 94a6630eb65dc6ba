"""Which fixes of a symptom apply to the versions at hand, and the status of their patch records on the tree at hand."""

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
    """What decides which fixes apply: versions by distribution, and the status of patch records by id."""

    versions: Mapping[str, str] = field(default_factory=dict)
    outcomes: Mapping[str, RecordOutcome] = field(default_factory=dict)
    """Empty without a tree."""
    root: str = ""
    """The tree, where the user named one."""
    foreign: bool = False
    """Whether the log is of another trainer than verl, so that settings of verl do not help."""
    log: str = ""
    """The file that is diagnosed, if it is a plain file. It replaces `LOG` in commands."""


def fixes_for(symptom: Symptom, context: FixContext, line: str = "") -> tuple[Offer, ...]:
    """The fixes of a symptom that the versions do not exclude, in the record's order; for the log of another trainer,
    those that only verl understands come last.

    Args:
        line: the line of the log that the symptom matched, for commands with a word of it: `pip install PACKAGE`.
    """
    words = _words(symptom, line)
    allowed = [fix for fix in symptom.fixes if versions_allow(fix.when, context.versions)]
    if context.foreign:
        allowed.sort(key=_is_of_verl)
    return tuple(_prepare_fix(fix, context, words) for fix in allowed)


def _is_of_verl(fix: Fix) -> bool:
    """Whether a fix is only settings or edits of verl, or a command of it. One that says which part of it is for verl
    says more than that."""
    if re.search(r"\bverl\b", fix.text):
        return False
    settings = bool(fix.set or fix.setting or fix.patch) and not (fix.run or fix.env)
    return settings or "verl.trainer" in fix.run


_PLAIN = re.compile(r"[\w.+-]+")


def _words(symptom: Symptom, line: str) -> dict[str, str]:
    """The words that named groups of the symptom's pattern match on the line: `(?P<module>\\w+)` is MODULE in a
    command.

    PACKAGE is the distribution that installs that module. Text with a special meaning in a shell is not used.
    """
    for match in symptom.matches if line else ():
        if "(?P<" in match.line and (found := re.search(match.line, line, re.IGNORECASE)) is not None:
            words = {name.upper(): text for name, text in found.groupdict().items() if text and _PLAIN.fullmatch(text)}
            if "MODULE" in words:
                words["PACKAGE"] = distribution(words["MODULE"].partition(".")[0])
            return words
    return {}


def versions_allow(when: Mapping[str, str], versions: Mapping[str, str]) -> bool:
    """Whether all known versions fit the specifiers of `when`."""
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
    """The command, if there is something to do, and the status of the record on the tree."""
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
