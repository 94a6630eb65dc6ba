"""Sentences that came from `patcher.agent`, as phrases."""

from __future__ import annotations

from typing import Any

from patcher.language import Phrases, phrase


def heard(told: Any) -> Any:
    """A sentence from the agent as a phrase; lists of them in a row; anything else as it is."""
    match told:
        case {"template": str(template), "fields": dict(fields)}:
            return phrase(template, **{name: heard(value) for name, value in fields.items()})
        case list():
            return Phrases(tuple(heard(part) for part in told))
        case None:
            return ""
        case _:
            return told
