"""The one codec of messages: phrases here, and the values of `patcher.messages` that cross a connection or a file.

`patcher.messages` documents the format. What `decode` is given came from elsewhere (an agent on a host, a node, a note
in a tree). Who sends a template decides what formatting does: `{x.__class__}` looks into objects, `{x:>1000000000}`
takes a gigabyte. So a template is used only where it has plain gaps, and is shown as it is where it has anything else.
"""

from __future__ import annotations

import re
from string import Formatter
from typing import Any

from patcher.i18n import Phrase, Phrases, phrase

_SPEC = re.compile(r"[<>^]?,?\d{0,2}(?:\.\d)?[dfgsx%]?|[\w' -]+\|[\w' -]+")
_DEPTH = 20
_LONGEST = 100_000
"""Characters. A sentence in a sentence in a sentence, each with its gap a hundred times, would fill any memory."""


def encode(value: object) -> Any:
    """A phrase, or several in a row, as a message; texts and numbers as they are, anything else as its text."""
    match value:
        case Phrase(template, fields):
            return {"template": template, "fields": {name: encode(field) for name, field in fields.items()}}
        case Phrases(parts, separator):
            return {"parts": [encode(part) for part in parts if part], "separator": separator}
        case str() | int() | float() | None:
            return value
        case _:
            return str(value)


def decode(message: Any, depth: int = _DEPTH) -> Any:
    """A message as a phrase, a list of them as several in a row; plain values as they are, None as no text.

    Anything else, and what is nested deeper than `depth`, is an ellipsis.
    """
    match message:
        case {"template": str(template), "fields": dict(fields)} if depth:
            found = Phrase(template, {str(name): decode(value, depth - 1) for name, value in fields.items()})
            return found if _fits(found) else phrase("{reason}", reason=template[:_LONGEST])
        case {"parts": list(parts), "separator": str(separator)} if depth:
            return Phrases(tuple(decode(part, depth - 1) for part in parts), separator)
        case list() if depth:
            return Phrases(tuple(decode(part, depth - 1) for part in message))
        case None:
            return ""
        case str() | int() | float():
            return message
        case _:
            return "\u2026"


def _fits(found: Phrase) -> bool:
    """Whether its gaps are names alone, with conversions and widths that are harmless, and each can be filled."""
    try:
        gaps = [gap for gap in Formatter().parse(found.template) if gap[1] is not None]
        for _, name, spec, conversion in gaps:
            if not (str(name).isidentifier() and conversion in (None, "r", "s") and _SPEC.fullmatch(spec or "")):
                return False
        if _length(found) > _LONGEST:
            return False
        str(found)
    except (KeyError, ValueError, TypeError, OverflowError):
        return False
    return True


def _length(value: object) -> int:
    """Characters that it comes to, or somewhat more, found out without making them."""
    match value:
        case Phrase(template, fields):
            each = {name: _length(field) + 100 for name, field in fields.items()}
            return len(template) + sum(each[name] for _, name, _, _ in Formatter().parse(template) if name is not None)
        case Phrases(parts, separator):
            return sum(_length(part) + len(separator) for part in parts)
        case str():
            return len(value)
        case _:
            return 100
