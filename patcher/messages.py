"""Sentences, and refusals made of them, in a form that crosses the connection: a template and its fields."""

from __future__ import annotations

import os
import re
from typing import Any, Dict, Mapping

Said = Dict[str, Any]
_FORMS = re.compile(r"\{(\w+):([\w' -]+)\|([\w' -]+)\}")


def phrase(template: str, **fields: Any) -> Said:
    """A sentence with named gaps; it is put into the reader's language where it is shown."""
    plain = {name: os.fspath(value) if isinstance(value, os.PathLike) else value for name, value in fields.items()}
    return {"template": template, "fields": plain}


def numbered(template: str, fields: Mapping[str, Any]) -> str:
    """The template with the words for its numbers: `{count} {count:file|files}` has `{count} file` where it is 1."""
    return _FORMS.sub(lambda found: found[2 if str(fields.get(found[1])) == "1" else 3], template)


def spoken(said: Said) -> str:
    """The sentence in English."""
    fields = {name: spoken(value) if isinstance(value, dict) else value for name, value in said["fields"].items()}
    return numbered(said["template"], fields).format(**fields)


class Refusal(Exception):  # noqa: N818
    """What cannot be done here, and why. `kind` is for programs: one word of a closed set per verb."""

    def __init__(
        self, kind: str, title: Said, cause: Said | list[Said] | None = None, advice: Said | None = None
    ) -> None:
        super().__init__(spoken(title))
        self.kind = kind
        self.title = title
        self.cause = cause
        self.advice = advice


def why(error: OSError) -> Said:
    """The operating system's own sentence."""
    return phrase("{reason}", reason=error.strerror or str(error))
