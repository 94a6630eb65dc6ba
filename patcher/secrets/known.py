"""Secrets that are known by their value on this machine, and all the ways in which a program may write them."""

from __future__ import annotations

import json
import os
import re
import stat
from typing import Iterable, Iterator, Mapping

from patcher.secrets.names import rank
from patcher.secrets.patterns import Pattern, either
from patcher.secrets.values import hidden

_PLAIN = Pattern(r"(?i)true|false|yes|no|on|off|none|null|[\d.]{1,12}|/.*|\w{1,5}", re.DOTALL)
_FILES = (
    "~/.cache/huggingface/token",
    "~/.cache/huggingface/stored_tokens",
    "~/.huggingface/token",
    "~/.netrc",
    "~/.git-credentials",
    "~/.aws/credentials",
    "~/.kaggle/kaggle.json",
    "~/.docker/config.json",
    "~/.pypirc",
    "~/.npmrc",
    "~/.pgpass",
    "~/.modelscope/credentials/git_token",
)
"""Where well-known programs keep what their users log in with."""
_IN_FILE = Pattern(
    r"(?im)(?:password|token|secret\w*|key|auth)\"?[ \t]*[ =:][ \t]*\"?([^\s\",]{8,})|://[^\s:/@]*:?([^\s/@]{8,})@"
)
_MOST = 1 << 16
"""Bytes of such a file that are read."""
_SHORT = 6
"""Characters below which a value is hidden as a whole word alone: `abc` is in many words."""


_TELLING = Pattern(r"(?=\S*[A-Za-z])(?=\S*\d)(?!/|\S*\*\*\*)\S{8,200}")
_OF_WORDS = Pattern(r"[A-Za-z]+(?:[_.-][A-Za-z]+)*[_.-]\d{1,3}")
"""`layer_12`, `worker-3`."""


def is_telling(value: str) -> bool:
    """Whether a value that stood under a secret's name is a secret also where it stands alone: no common word, no
    number and no path."""
    return _TELLING.fullmatch(value) is not None and _OF_WORDS.fullmatch(value) is None


def values_here(environment: Mapping[str, str]) -> set[str]:
    """The secrets of this user that can be known: from variables, and from the files of well-known programs."""
    found = {value for name, value in environment.items() if hidden(rank(name), value) and not _PLAIN.fullmatch(value)}
    places = [environment[name] for name in ("HF_TOKEN_PATH", "NETRC") if environment.get(name)]
    if environment.get("HF_HOME"):
        places.append(os.path.join(environment["HF_HOME"], "token"))
    for place in (*_FILES, *places):
        text = _start_of(os.path.expanduser(place))
        if os.path.basename(place) in ("token", "git_token") or place == environment.get("HF_TOKEN_PATH"):
            found.add(text.strip())
        found.update(value for groups in _IN_FILE.findall(text) for value in groups if value)
    return {value for value in found if len(value) > 5}


def _start_of(path: str) -> str:
    """The beginning of a regular file; empty for anything else, such as a pipe that would never answer."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(fd, "rb") as stream:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                return ""
            return stream.read(_MOST).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


def spellings(values: Iterable[str]) -> set[str]:
    """All spellings of the values, to see quickly whether one is in a text at all."""
    return {spelling for piece in _pieces(values) for spelling in _spellings_of(piece)}


def pattern(values: Iterable[str]) -> re.Pattern[str] | None:
    """What finds each of the values however it is written; None where there are none."""
    long: set[str] = set()
    short: set[str] = set()
    for piece in _pieces(values):
        (long if len(piece) >= _SHORT else short).update(_spellings_of(piece))
    found = [either(long)] if long else []
    found += [rf"(?<!\w){either(short)}(?!\w)"] if short else []
    return re.compile("|".join(found)) if found else None


def _pieces(values: Iterable[str]) -> set[str]:
    """Each value, and each of its lines: a program may print a private key line by line."""
    return {piece for value in values for piece in (value, value.strip(), *value.splitlines()) if piece.strip()}


def _spellings_of(piece: str) -> set[str]:
    """As it stands, quoted for a shell, in JSON once and twice, in a URL, in base64, and in hexadecimal digits."""
    # Here and in _base64, as urllib.parse (ipaddress), shlex and base64 cost 4 ms, and most runs know no value.
    import shlex
    from urllib.parse import quote, quote_plus

    once = json.dumps(piece)[1:-1]
    found = {piece, once, json.dumps(once)[1:-1], json.dumps(piece, ensure_ascii=False)[1:-1], repr(piece)[1:-1]}
    found |= {shlex.quote(piece), shlex.quote(piece)[1:-1] if "'" in piece else piece}
    found |= {piece.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")}
    found.add(re.sub(r"([^\w@%+=:,./-])", r"\\\1", piece))
    content = piece.encode("utf-8", "surrogatepass")
    found |= {quote(content, safe=""), quote(content), quote_plus(content), quote(content, safe="").lower()}
    if len(content) >= _SHORT:
        found |= set(_base64(content))
        found |= {content.hex(), content.hex().upper()}
        if len(piece) >= 8:
            found.add(piece[::-1])
    return {spelling for spelling in found if spelling}


def _base64(content: bytes) -> Iterator[str]:
    """What base64 makes of it wherever it begins within three bytes: `user:SECRET` in a header."""
    import base64

    for before in range(3):
        packed = base64.b64encode(b"\0" * before + content).decode()
        begin = (0, 2, 3)[before]
        end = len(packed.rstrip("=")) - (1 if packed.endswith("=") else 0)
        body = packed[begin:end]
        if len(body) >= 8:
            yield body
            yield body.replace("+", "-").replace("/", "_")
