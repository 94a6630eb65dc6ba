"""What a profile says, checked before it goes into a script. Wrong values are RecordErrors that name the host."""

from __future__ import annotations

import re

from patcher.errors import RecordError
from patcher.i18n import phrase
from patcher.remote.host import Host
from patcher.secrets.names import is_secret
from patcher.secrets.redacting import is_secret_value

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_OVERRIDE = re.compile(r"(?P<sign>\+\+|\+|~|)(?P<key>[A-Za-z_][\w./@-]*)(?P<value>=.*)?", re.ASCII | re.DOTALL)


def variable(host: Host, name: str, value: str) -> bool:
    """Whether a variable may be written; False for a secret. Raises RecordError for one that is none."""
    if not _VARIABLE.fullmatch(name) or "\0" in value:
        raise RecordError(
            phrase("{host}: {name!r} is no name of a variable, or holds a NUL", host=host.name, name=name)
        )
    return not (is_secret(name) or is_secret_value(value))


def override(host: Host, text: str) -> tuple[str, str]:
    """The sign and the key of a hydra override. Raises RecordError for a text that is none, such as an option."""
    found = _OVERRIDE.fullmatch(text)
    if found is None or (found["value"] is None and found["sign"] != "~") or "\0" in text:
        title = phrase("{host}: {text!r} is no hydra override", host=host.name, text=text)
        raise RecordError(title, advice=phrase("Write it as key=value, +key=value, ++key=value or ~key."))
    return found["sign"], found["key"]
