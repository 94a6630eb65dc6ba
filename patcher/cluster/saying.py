"""Sentences, checks and errors in a form that crosses to the other side, where `heard` takes them in."""

from __future__ import annotations

from typing import Any

from patcher.checks import Check
from patcher.errors import UkyError
from patcher.i18n import Phrase, Phrases
from patcher.i18n.decoding import heard


def say(value: object) -> Any:
    """A phrase as a template and its fields, several as a list; plain values as they are, others as text."""
    match value:
        case Phrase(template, fields):
            return {"template": template, "fields": {name: say(field) for name, field in fields.items()}}
        case Phrases(parts):
            return [say(part) for part in parts if part]
        case str() | int() | float() | None:
            return value
        case _:
            return str(value)


def say_check(check: Check) -> dict[str, Any]:
    return {
        "name": check.name,
        "level": check.level,
        "status": check.status,
        "seconds": check.seconds,
        "detail": say(check.detail),
        "fix": say(check.fix),
    }


def hear_check(told: dict[str, Any]) -> Check:
    return Check(
        told["name"], told["level"], told["status"], told["seconds"], heard(told["detail"]), heard(told["fix"])
    )


def say_error(error: UkyError) -> dict[str, Any]:
    return {"title": say(error.title), "cause": say(error.cause), "advice": say(error.advice)}
