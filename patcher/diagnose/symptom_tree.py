"""The symptom records as a decision tree: what one sees of a run, the topic or phase of it, and the symptoms."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from patcher.errors import UsageError
from patcher.i18n import Phrase, phrase
from patcher.logs.lines import strip_prefix
from patcher.logs.milestones import PHASES, phase_name
from patcher.records.symptoms import TOPICS, Kind, Symptom
from patcher.session.session import Session


def choose_symptoms(session: Session, name: str | None) -> tuple[Symptom, ...]:
    """All symptoms, or the one called `name`. Raises UsageError where there is none, RecordError for a malformed
    record."""
    symptoms = session.symptoms
    if name is None:
        return symptoms
    if found := tuple(symptom for symptom in symptoms if symptom.id == name):
        return found
    nearest = get_close_matches(name, [symptom.id for symptom in symptoms], n=3)
    advice = phrase("Did you mean {names}?", names=", ".join(nearest)) if nearest else "See: uky-patch symptoms"
    raise UsageError(phrase("there is no symptom {name}", name=name), advice=advice)


ANSWERS: Mapping[Kind, Phrase] = {
    "failure": phrase("The run has ended with an error"),
    "stall": phrase("The run stands still and says nothing"),
    "course": phrase("The run goes on, badly or slowly"),
    "notice": phrase("A warning that may explain one of these"),
}
"""What one can see of a run, in the order of the tree."""
HEADINGS: Mapping[str, Phrase] = {
    "install": phrase("Installation and versions"),
    "configuration": phrase("Configuration"),
    "data": phrase("Data and tokenizer"),
    "memory": phrase("Memory"),
    "compile": phrase("Compilers and kernels"),
    "ray": phrase("Ray"),
    "engine": phrase("Inference engine"),
    "distributed": phrase("Process groups and NCCL"),
    "training": phrase("Training"),
    "speed": phrase("Speed"),
    "checkpoint": phrase("Checkpoints"),
    "system": phrase("The machine"),
}
"""The headings of topics."""
ANYWHERE = phrase("in any phase")
_SEEN = 110
"""Characters of a sample line that are shown. Set by hand: it is in a table."""
_LOGGER = re.compile(r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d \[[^\]]+\] ")
"""The prefix of vLLM's logger."""


@dataclass(frozen=True, slots=True)
class Group:
    """Symptoms of one topic, or of one phase."""

    heading: Phrase
    symptoms: tuple[Symptom, ...]


@dataclass(frozen=True, slots=True)
class Branch:
    """One answer to the question what one sees of the run, with the symptoms that it may be."""

    kind: Kind
    groups: tuple[Group, ...]

    @property
    def answer(self) -> Phrase:
        return ANSWERS[self.kind]


def symptom_tree(symptoms: Iterable[Symptom]) -> tuple[Branch, ...]:
    """Build the tree: failures, courses and notices by topic, stalls by the phase that the run is in."""
    listed = tuple(symptoms)
    branches = (Branch(kind, _groups([one for one in listed if one.kind == kind])) for kind in ANSWERS)
    return tuple(branch for branch in branches if branch.groups)


def sample_line(symptom: Symptom) -> str:
    """How a log shows a symptom: the matching line of the record's first example, without Ray's and the logger's
    prefix."""
    for example in symptom.examples:
        if example.line is not None:
            text = _LOGGER.sub("", strip_prefix(example.log.splitlines()[example.line - 1]).text.strip())
            return text if len(text) <= _SEEN else f"{text[: _SEEN - 1].rstrip()}…"
    return ""


def _groups(symptoms: list[Symptom]) -> tuple[Group, ...]:
    if any(symptom.kind == "stall" for symptom in symptoms):
        keys = {symptom.id: symptom.phase[0] if symptom.phase else None for symptom in symptoms}
        names = [(phase, phase_name(phase)) for phase in PHASES]
        found = [(heading, [one for one in symptoms if keys[one.id] == phase]) for phase, heading in names]
        found.append((ANYWHERE, [one for one in symptoms if keys[one.id] is None]))
    else:
        found = [(HEADINGS[topic], [one for one in symptoms if one.topic == topic]) for topic in TOPICS]
    return tuple(
        Group(heading, tuple(sorted(some, key=lambda symptom: (symptom.part, symptom.id))))
        for heading, some in found
        if some
    )
