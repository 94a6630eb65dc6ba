"""The fixes of a symptom that count where it was seen."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from patcher.diagnosis.model import Offer
from patcher.environment.versions import No, satisfies
from patcher.language import NOTHING, Phrase, Phrases
from patcher.records.symptoms import Fix, Symptom


@dataclass(frozen=True, slots=True)
class Fitting:
    """Where a fix is to count: versions, and what the patch records come to on the tree at hand, by id."""

    versions: Mapping[str, str] = field(default_factory=dict)
    outcomes: Mapping[str, Phrase | Phrases] = field(default_factory=dict)


def offers(symptom: Symptom, fitting: Fitting) -> tuple[Offer, ...]:
    """In the record's order, without those that the versions ignore."""
    return tuple(_offer(fix, fitting) for fix in symptom.fixes if fits(fix.when, fitting.versions))


def fits(when: Mapping[str, str], versions: Mapping[str, str]) -> bool:
    """Whether no known version is outside of what is asked for."""
    return not any(
        name in versions and isinstance(satisfies(versions[name], specifier, kind="dependency"), No)
        for name, specifier in when.items()
    )


def _offer(fix: Fix, fitting: Fitting) -> Offer:
    commands = [f"uky-patch apply {fix.patch}"] if fix.patch else []
    commands += fix.run.splitlines()
    commands += [f"export {name}={shlex.quote(value)}" for name, value in fix.env.items()]
    commands += [f"{key}={shlex.quote(value)}" for key, value in fix.set.items()]
    note = fitting.outcomes.get(fix.patch, NOTHING) if fix.patch else NOTHING
    return Offer(fix.text, fix.zh, tuple(commands), fix.patch, fix.setting, note)
