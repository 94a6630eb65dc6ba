"""Names of variables that hold secrets, and texts without secrets whose values are known on this machine."""

from __future__ import annotations

import json
import os
import re
from typing import Iterable, Mapping

from patcher.worktree import files

HIDDEN = "***"
_WORDS = re.compile(
    r"(?:^|_)(?:TOKENS?|SECRETS?|PASS|PASSWD|PASSWORD|PASSPHRASE|PWD|KEYS?|APIKEY|CREDENTIALS?|AUTH|AUTHORIZATION"
    r"|COOKIES?|JWT|SIGNATURE|DSN)(?:$|_)"
)
_NONE = re.compile(r"_(?:FILE|PATH|DIR|NAME|ID|URL|TYPE|MODE|TTL|TIMEOUT|LENGTH|LEN|COUNT|ENABLED)$|^(?:OLD)?PWD$")
_PLAIN = re.compile(r"(?i)true|false|yes|no|on|off|none|null|[\d.]{1,12}|/.*|\w{1,5}", re.DOTALL)
_FILES = (
    "~/.cache/huggingface/token",
    "~/.cache/huggingface/stored_tokens",
    "~/.huggingface/token",
    "~/.netrc",
    "~/.git-credentials",
    "~/.aws/credentials",
    "~/.kaggle/kaggle.json",
    "~/.docker/config.json",
)
"""Where well-known programs keep what their users log in with."""
_IN_FILE = re.compile(
    r"(?im)(?:password|token|secret\w*|key|auth)\"?[ \t]*[ =:][ \t]*\"?([^\s\",]{8,})|://[^\s:/@]*:?([^\s/@]{8,})@"
)
_MOST = 1 << 16


def secretive(name: str) -> bool:
    """Whether a variable of this name may hold a secret. In doubt it may."""
    upper = name.upper()
    return bool(_WORDS.search(upper)) and not _NONE.search(upper)


def values_in(environment: Mapping[str, str]) -> set[str]:
    """The values of secret variables that can be told from ordinary words."""
    return {value for name, value in environment.items() if secretive(name) and not _PLAIN.fullmatch(value)}


def values_here(environment: Mapping[str, str]) -> set[str]:
    """The secrets of this user that can be known: from variables, and from the files of well-known programs."""
    found = values_in(environment)
    places = [environment[name] for name in ("HF_TOKEN_PATH", "NETRC") if environment.get(name)]
    if environment.get("HF_HOME"):
        places.append(os.path.join(environment["HF_HOME"], "token"))
    for place in (*_FILES, *places):
        try:
            with files.open_binary(os.path.expanduser(place)) as stream:
                text = stream.read(_MOST).decode("utf-8", "replace")
        except (OSError, ValueError):
            continue
        if os.path.basename(place) == "token" or place == environment.get("HF_TOKEN_PATH"):
            found.add(text.strip())
        found.update(value for groups in _IN_FILE.findall(text) for value in groups if value)
    return {value for value in found if len(value) > 5}


class Hiding:
    """Takes known secrets out of what is sent. `count`: how often one was there."""

    def __init__(self, values: Iterable[str]) -> None:
        forms = {form for value in values for form in (value, json.dumps(value)[1:-1]) if form}
        ordered = sorted((os.fsencode(form) for form in forms), key=len, reverse=True)
        self._known = re.compile(b"|".join(re.escape(form) for form in ordered)) if ordered else None
        self.count = 0

    def content(self, content: bytes) -> bytes:
        if self._known is None:
            return content
        content, count = self._known.subn(HIDDEN.encode(), content)
        self.count += count
        return content

    def text(self, text: str) -> str:
        return os.fsdecode(self.content(os.fsencode(text)))
