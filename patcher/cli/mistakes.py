"""What click says of a mistake, as a phrase: click words it in English, and in other words from release to release."""

from __future__ import annotations

import re
from functools import lru_cache
from string import Formatter

from patcher.i18n import Phrase, listed, phrase

_SENTENCES = (
    "{message} Did you mean {names}?",
    "{message} (Did you mean one of: {names}?)",
    "{message} (Possible options: {names})",
    "{message} Commands: {names}.",
    "{message} Choose from: {names}",
    "Invalid value for {place}: {message}",
    "Invalid value: {message}",
    "No such option {name}.",
    "No such option: {name}",
    "No such command {name}.",
    "Missing command.",
    "Missing argument {name}.",
    "Missing option {name}.",
    "Missing parameter: {name}",
    "Got unexpected extra argument ({names})",
    "Got unexpected extra arguments ({names})",
    "Option {name} requires an argument.",
    "Option {name} requires {count} arguments.",
    "Option {name} does not take a value.",
    "Argument {name} takes {count} values.",
    "{value} is not one of {names}.",
    "{value} is not a valid integer.",
    "{value} is not a valid float.",
    "{value} is not a valid integer range.",
    "{value} is not a valid float range.",
    "{value} is not a valid boolean.",
    "{value} is not in the range {range}.",
    "File {path} is a directory.",
    "Path {path} is a directory.",
)
"""Click's sentences, of 8.1 to 8.5; first those that hold another one, in the gap `message`."""


def worded(message: str) -> Phrase:
    """A sentence of click's as a phrase that is one line; one that is not known stays as it is."""
    message = " ".join(message.split())
    for template, pattern in _patterns():
        if found := pattern.fullmatch(message):
            fields = {name: worded(text) if name == "message" else text for name, text in found.groupdict().items()}
            return phrase(template, **fields)
    return phrase("{reason}", reason=listed(message))


@lru_cache(maxsize=1)
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """`No such option {name}.` finds `No such option '--dif'.`."""
    return tuple(
        (
            template,
            re.compile(
                "".join(
                    re.escape(text) + (f"(?P<{name}>.+?)" if name else "")
                    for text, name, _, _ in Formatter().parse(template)
                ),
                re.DOTALL,
            ),
        )
        for template in _SENTENCES
    )
