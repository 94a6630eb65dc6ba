"""Secrets are not shown: which names and values are secret, and text without them."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote

HIDDEN = "***"
"""What stands in a secret's place."""

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_ALWAYS = re.compile("SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|APIKEY")
_LAST = {"TOKEN", "PASS", "PWD", "AUTH", "AUTHORIZATION", "COOKIE", "NETRC"}
_KEYS = {"ACCESS", "ACCOUNT", "API", "AUTH", "ENCRYPTION", "LICENSE", "MASTER", "PRIVATE", "SECRET", "SIGNING", "WANDB"}
_PLACES = {"FILE", "PATH", "DIR", "NAME", "ID", "URL", "TYPE", "TTL", "TIMEOUT", "LENGTH", "LEN", "COUNT"}
_MODELS = re.compile(
    "BOS|CLS|EOS|EOT|IMAGE|MASK|MAX|MIN|NUM|PAD|PER|SEP|SPECIAL|START|END|STOP|UNK|VIDEO|AUDIO|NEXT|LAST"
)
"""Before TOKEN: a language model's, and no secret."""

_SHAPES = (
    r"hf_[A-Za-z0-9]{20,}|sk-[A-Za-z0-9_-]{20,}|gh[opsur]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"
    r"|glpat-[A-Za-z0-9_-]{16,}|nvapi-[A-Za-z0-9_-]{20,}|xox[abprs]-[A-Za-z0-9-]{10,}|AKIA[0-9A-Z]{16}"
    r"|AIza[0-9A-Za-z_-]{30,}|pypi-[A-Za-z0-9_-]{20,}|eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+"
    r"|ASIA[0-9A-Z]{16}|wandb_v\d_[A-Za-z0-9_]{20,}|npm_[A-Za-z0-9]{30,}|dckr_pat_[A-Za-z0-9_-]{20,}|gsk_[A-Za-z0-9]{30,}"
    r"|ya29\.[A-Za-z0-9_-]{20,}|r8_[A-Za-z0-9]{30,}|api_org_[A-Za-z]{20,}|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"
)
_TOKEN = re.compile(rf"(?<![A-Za-z0-9])(?:{_SHAPES})")
PRIVATE = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)
"""A private key; where its end is missing, all that follows."""
_URL = re.compile(r"(?P<before>\b[A-Za-z][A-Za-z0-9+.-]*://)(?P<user>[^\s/?#:@'\"]*):(?P<password>[^\s/?#'\"]+)@")
_URL_TOKEN = re.compile(r"(?P<before>\bhttps?://)(?P<user>[^\s/?#:@'\"]{16,})@")
_BEARER = re.compile(r"(?i)\b(?P<before>(?:bearer|basic|token)\s+)(?P<value>[A-Za-z0-9._~+/=-]{12,})")
_LOGIN = re.compile(
    r"(?P<before>\b(?:machine\s+\S+\s+|login\s+\S+\s+)+password\s+|\bsshpass\s+-p\s*|\bcurl\b[^\n|;]*?\s(?:-u|--user)\s+[\"']?[^\s:\"']+:)"
    r"(?P<value>[^\s\"']+)"
)
"""A password without a sign between it and its name: in netrc, and of programs that take it as a word."""
_WANDB = re.compile(
    r"(?i)(?P<before>(?<![a-z0-9])(?:wandb|api[ _-]?key)(?![a-z0-9])"
    r"(?:(?!\b(?:commit|sha1?|revision|head|hash)\b)[^\n]){0,60}?)"
    r"(?P<value>(?<![0-9a-z])[0-9a-f]{40}(?![0-9a-z]))"
)
"""A key of Weights & Biases is 40 hexadecimal digits, as is a commit: what stands before it tells them apart."""
_SIGNED = re.compile(
    r"(?i)(?P<before>[?&](?:sig|signature|key|x-(?:amz|goog|oss)-(?:signature|credential|security-token))=)(?P<value>[^&\s\"'<>*]+)"
)
"""What signs a URL, so that whoever has it may fetch."""
_BY_PLACE = (_BEARER, _LOGIN, _WANDB, _SIGNED)
_PAIR = re.compile(
    r"(?<![\w.-])(?P<name>[.-]*\w[\w.-]*)(?P<between>\\?[\"']?\]?\s*(?:=|:(?!//))\s*)"
    r"(?P<value>\\\"(?:[^\"\\]|\\(?!\"))*\\\"|\"(?:[^\"\\]|\\.)*\"|'[^']*'|[^\s,;&\"'(){}\[\]]+)"
)
_OPTION = re.compile(
    r"(?P<name>(?<![\w-])--?[A-Za-z][A-Za-z0-9_-]*)(?P<between>\s+)(?P<value>\"[^\"]*\"|'[^']*'|[^\s-]\S*)"
)
_CALLED = re.compile(r"(?P<head>\(\s*[\"'])(?P<name>[\w.-]+)(?P<between>[\"']\s*,\s*)(?P<value>\"[^\"\n]*\"|'[^'\n]*')")
"""setenv("NAME", "value"), environ.setdefault('NAME', 'value')."""
_PLAIN = re.compile(r"(?i)[\"']?(?:true|false|none|null|\d{1,5}|)[\"']?|[\"']?\$.*|\*+", re.DOTALL)
_SHORT = 6


@lru_cache(maxsize=8192)
def is_secret(name: str) -> bool:
    """Whether a variable, option or key of this name holds a secret. Tokens of a language model are none."""
    words = [word.upper() for word in _WORDS.findall(name.rpartition(".")[2])]
    while words and words[-1].isdigit():
        words.pop()
    if not words or words[-1] in _PLACES:
        return words[-3:] == ["ACCESS", "KEY", "ID"]
    if _ALWAYS.search("".join(words)):
        return True
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if last == "KEY":
        return before in _KEYS
    if last in ("PASS", "PWD"):
        return bool(before)
    return last in _LAST and not _MODELS.fullmatch(before)


def is_secret_value(value: str) -> bool:
    """Whether a value gives itself away as a secret: a password in a URL, a private key, a well-known kind of token."""
    return any(shape.search(value) for shape in (_URL, _TOKEN, PRIVATE)) or bool(_BEARER.match(value))


def secrets_in(text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """What a Redactor would take out of `text` by its look alone: the kind, and where it begins and ends."""
    for kind, shape in (("private key", PRIVATE), ("token", _TOKEN)):
        for found in shape.finditer(text):
            yield kind, found.span()
    for kind, shape, group in (
        ("password in a URL", _URL, "password"),
        ("token in a URL", _URL_TOKEN, "user"),
        ("token", _BEARER, "value"),
        ("password", _LOGIN, "value"),
        ("key", _WANDB, "value"),
        ("signature", _SIGNED, "value"),
        ("value of a secret name", _PAIR, "value"),
        ("value of a secret option", _OPTION, "value"),
        ("value of a secret name", _CALLED, "value"),
    ):
        for found in shape.finditer(text):
            named = shape not in (_PAIR, _OPTION, _CALLED) or _is_hidden(found)
            if named and not re.fullmatch(r"\W*\*+\W*", found[group]):
                yield kind, found.span(group)


class Redactor:
    """Takes secrets out of text: those whose values are known, and what looks like one."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        forms = sorted({form for value in values for form in _forms(value)}, key=len, reverse=True)
        self._known = re.compile("|".join(forms)) if forms else None

    def text(self, text: str) -> str:
        """`text` with `***` for each secret. Doing it twice changes nothing more."""
        if self._known:
            text = self._known.sub(HIDDEN, text)
        text = PRIVATE.sub(HIDDEN, text)
        text = _URL.sub(rf"\g<before>\g<user>:{HIDDEN}@", text)
        text = _URL_TOKEN.sub(rf"\g<before>{HIDDEN}@", text)
        text = _TOKEN.sub(HIDDEN, text)
        for shape in _BY_PLACE:
            text = shape.sub(rf"\g<before>{HIDDEN}", text)
        text = _CALLED.sub(lambda found: found["head"] + _hide(found, found["head"]), text)
        return _OPTION.sub(_hide, _PAIR.sub(_hide, text))

    def value(self, value: Any) -> Any:
        """The same for texts in tables and lists, and for all that stands under a secret name."""
        match value:
            case str():
                return self.text(value)
            case Mapping():
                return {
                    name: HIDDEN if isinstance(name, str) and is_secret(name) and inner else self.value(inner)
                    for name, inner in value.items()
                }
            case list() | tuple():
                return type(value)([self.value(inner) for inner in value])
        return value


def _forms(value: str) -> Iterable[str]:
    """Patterns for a secret as it stands, quoted for a shell, in JSON, in a URL, and line by line."""
    for piece in {value, *value.splitlines()}:
        if not piece.strip():
            continue
        spelled = {piece, json.dumps(piece)[1:-1], repr(piece)[1:-1], quote(piece, safe=""), shlex.quote(piece)}
        for form in spelled:
            pattern = re.escape(form)
            yield pattern if len(piece) >= _SHORT else rf"(?<!\w){pattern}(?!\w)"


def _is_hidden(found: re.Match[str]) -> bool:
    return is_secret(found["name"].lstrip("-")) and not _PLAIN.fullmatch(found["value"])


def _hide(found: re.Match[str], head: str = "") -> str:
    name, between, value = found["name"], found["between"], found["value"]
    if not _is_hidden(found):
        return found[0].removeprefix(head)
    mark = next((mark for mark in ('\\"', '"', "'") if value.startswith(mark)), "")
    return f"{name}{between}{mark}{HIDDEN}{mark}"
