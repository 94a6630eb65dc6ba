"""What is wrong in a file that people write: gathered, so that all of it is reported at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from patcher.errors import RecordError
from patcher.i18n import Phrase, Phrases, phrase

KeyPath = tuple[str | int, ...]
"""Where a value stands: `("edit", 0, "file")` is `file` of the first `[[edit]]`."""
_QUOTED = 1000
"""Characters of a value or key that a message quotes: either may have as many as the file."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing that is wrong in one file. `line` counts from 1; 0 where no line can be named."""

    file: str
    line: int
    key: str
    message: Phrase | Phrases | str

    def __str__(self) -> str:
        return str(self.sentence)

    @property
    def sentence(self) -> Phrase:
        """The mistake with its place: `records/a.toml:12: edit[1].file: must be a string, not a number`."""
        place = f"{self.file}:{self.line}" if self.line else self.file
        template = "{place}: {key}: {message}" if self.key else "{place}: {message}"
        return phrase(template, place=place, key=shortened(self.key), message=Phrases((self.message,)))


def mistakes_error(title: Phrase, mistakes: Sequence[Mistake], advice: Phrase | str = "") -> RecordError:
    """The error that tells all the mistakes, a line each."""
    return RecordError(title, cause=Phrases(tuple(mistake.sentence for mistake in mistakes), "\n  "), advice=advice)


def shortened(text: str) -> str:
    """A text of the file as a message quotes it."""
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}…"


def shortened_fields(message: Phrase | Phrases | str) -> Phrase | Phrases | str:
    """The message with what it quotes of the file shortened."""
    if not isinstance(message, Phrase):
        return message
    fields = {name: shortened(value) if isinstance(value, str) else value for name, value in message.fields.items()}
    return Phrase(message.template, fields)
