"""The symptom records that a command is about."""

from __future__ import annotations

from patcher.errors import UsageError
from patcher.i18n import phrase
from patcher.records.symptoms import Symptom
from patcher.session.session import Session


def chosen(session: Session, name: str | None) -> tuple[Symptom, ...]:
    """All of them, or the one called `name`. Raises UsageError where there is none, RecordError for a bad record."""
    symptoms = session.symptoms
    if name is None:
        return symptoms
    if found := tuple(symptom for symptom in symptoms if symptom.id == name):
        return found
    from difflib import get_close_matches

    nearest = get_close_matches(name, [symptom.id for symptom in symptoms], n=3)
    advice = phrase("Did you mean {names}?", names=", ".join(nearest)) if nearest else "See: uky-patch symptoms"
    raise UsageError(phrase("there is no symptom {name}", name=name), advice=advice)
