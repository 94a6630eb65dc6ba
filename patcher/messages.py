"""Messages for people, and refusals made of them, as values that cross a connection or lie in a file.

A message is a JSON value of one of these forms, nested as deep as needed:

- `{"template": "{path}: {count} {count:file|files}", "fields": {"path": "verl", "count": 2}}`: a sentence with named
  gaps; `{count:file|files}` is the word for the number. A field is a message, a text or a number.
- `{"parts": ["No space left on device"], "separator": "; "}`: several in a row, or somebody else's sentence, such as
  the operating system's. Each part is a message, or a text that is translated where the catalogue lists it.

`patcher.i18n.codec` turns them into phrases in the reader's language, and back.
"""

from __future__ import annotations

import os
import re
from typing import Any, Dict, Mapping

Message = Dict[str, Any]
_FORMS = re.compile(r"\{(\w+):([\w' -]+)\|([\w' -]+)\}")


def phrase(template: str, **fields: Any) -> Message:
    """A sentence with named gaps; it is put into the reader's language where it is shown."""
    plain = {name: os.fspath(value) if isinstance(value, os.PathLike) else value for name, value in fields.items()}
    return {"template": template, "fields": plain}


def listed(text: str) -> Message:
    """Somebody else's sentence, translated where the catalogue lists it."""
    return {"parts": [text], "separator": "; "}


def numbered(template: str, fields: Mapping[str, Any]) -> str:
    """The template with the words for its numbers: `{count} {count:file|files}` has `{count} file` where it is 1."""
    return _FORMS.sub(lambda found: found[2 if str(fields.get(found[1])) == "1" else 3], template)


def english(message: Message) -> str:
    """The message in English, for logs and programs."""
    if "parts" in message:
        parts = [english(part) if isinstance(part, dict) else str(part) for part in message["parts"]]
        return str(message["separator"]).join(part for part in parts if part)
    fields = {name: english(value) if isinstance(value, dict) else value for name, value in message["fields"].items()}
    return numbered(message["template"], fields).format(**fields)


class Refusal(Exception):  # noqa: N818
    """What cannot be done here, and why. `kind` is for programs: one word of a closed set per verb."""

    def __init__(
        self, kind: str, title: Message, cause: Message | list[Message] | None = None, advice: Message | None = None
    ) -> None:
        super().__init__(english(title))
        self.kind = kind
        self.title = title
        self.cause = cause
        self.advice = advice


def why(error: OSError) -> Message:
    """The operating system's own sentence."""
    return phrase("{reason}", reason=listed(error.strerror or str(error)))


def message_of(error: BaseException) -> Message:
    """What an exception says. In English it is what `str()` of the exception is."""
    return translatable(error) or {"parts": [str(error)], "separator": ""}


def translatable(error: BaseException) -> Message | None:
    """What an exception says, with its translatable parts apart; None where it has none."""
    from json import JSONDecodeError  # Not at the top: most commands that go well read no JSON.

    if isinstance(error, Refusal):
        causes = error.cause if isinstance(error.cause, list) else [error.cause]
        parts = [part for part in (error.title, *causes, error.advice) if part]
        return {"parts": parts, "separator": "\n  "}
    if isinstance(error, JSONDecodeError):
        fields = {"problem": listed(error.msg), "line": error.lineno, "column": error.colno, "at": error.pos}
        return phrase("{problem}: line {line} column {column} (char {at})", **fields)
    if isinstance(error, UnicodeDecodeError) and error.end - error.start == 1:
        fields = {"codec": error.encoding, "byte": f"{error.object[error.start]:02x}", "at": error.start}
        template = "'{codec}' codec can't decode byte 0x{byte} in position {at}: {problem}"
        return phrase(template, problem=listed(error.reason), **fields)
    if isinstance(error, OSError) and isinstance(error.errno, int) and isinstance(error.strerror, str):
        fields = {"number": error.errno, "problem": listed(error.strerror)}
        if error.filename is None:
            return phrase("[Errno {number}] {problem}", **fields)
        if error.filename2 is None:
            return phrase("[Errno {number}] {problem}: {path}", path=repr(error.filename), **fields)
    if len(error.args) == 1 and isinstance(error.args[0], dict) and "template" in error.args[0]:
        return dict(error.args[0])  # An error that was raised with a message: ValueError(phrase("...")).
    return None
