"""What may be given to ssh as a host. ssh hands names on to commands of its configuration, so this is strict."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from patcher.errors import UsageError
from patcher.i18n import Phrase, phrase

_V6 = re.compile(r"[0-9A-Fa-f]*:[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*(?:%[A-Za-z0-9_.-]{1,32})?")
_LONGEST = 255
_NAME = "._-"
_USER = "._-+@"


@dataclass(frozen=True, slots=True)
class Target:
    """`ssh` is what ssh is given: a host, an alias or user@host, an IPv6 address without brackets."""

    ssh: str
    port: int | None = None


def target(text: str) -> Target:
    """`[user@]host[:port]`, where host is a name, an address, or an IPv6 address, in brackets if a port follows.

    Raises UsageError for anything else.
    """
    user, at, rest = text.rpartition("@")
    if at:
        _check(text, user, _USER)
    host, port = rest, ""
    if rest.startswith("["):
        host, bracket, after = rest[1:].partition("]")
        if not bracket or not _V6.fullmatch(host) or (after and not after.startswith(":")):
            raise _wrong(text, phrase("an IPv6 address goes in brackets: [fe80::1%eth0]:22"))
        port = after[1:]
        if after and not port:
            raise _wrong(text, phrase("a port is a number from 1 to 65535"))
    elif not _V6.fullmatch(rest):
        host, colon, port = rest.partition(":")
        _check(text, host, _NAME)
        if colon and not port:
            raise _wrong(text, phrase("a port is a number from 1 to 65535"))
    if port and not (port.isascii() and port.isdigit() and len(port) <= 5 and 0 < int(port) < 65536):
        raise _wrong(text, phrase("a port is a number from 1 to 65535"))
    return Target(user + at + host, int(port) if port else None)


def _check(text: str, part: str, marks: str) -> None:
    if not part:
        raise _wrong(text, phrase("it is empty, or a part of it is"))
    if part.startswith("-"):
        raise _wrong(text, phrase("a part that begins with '-' would be taken for an option"))
    if len(part) > _LONGEST:
        raise _wrong(text, phrase("it is longer than {count} characters", count=_LONGEST))
    for letter in part:
        if letter not in marks and not _is_word(letter):
            raise _wrong(text, phrase("{letter!r} is not allowed in it", letter=letter))
    if not any(_is_word(letter) for letter in part):
        raise _wrong(text, phrase("it has neither a letter nor a digit"))


def _is_word(letter: str) -> bool:
    return unicodedata.category(letter) in ("Lu", "Ll", "Lt", "Lm", "Lo", "Nd", "Mn", "Mc")


def _wrong(text: str, cause: Phrase) -> UsageError:
    return UsageError(
        phrase("{text!r} is no host that ssh can be given", text=text),
        cause=cause,
        advice="Give it a plain name in ~/.ssh/config (Host, HostName, User, Port), and use that.",
    )
