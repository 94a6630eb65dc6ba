"""What looks like a secret though no rule that every output keeps to says so: for what is given to strangers."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator

from patcher.hosts.redaction import secrets_in

_ASSIGNED = re.compile(
    r"(?i)(?:token|secret|passw(?:or)?d|passphrase|credential|api[_-]?key|access[_-]?key|private[_-]?key|auth|signature"
    r"|cookie|(?<![a-z0-9])(?:key|pwd))\\?[\"']?\]?\s*(?:=|:(?!//)|=>)\s*\\?[\"']?(?P<value>[A-Za-z0-9+/_.~=-]{16,})"
)
"""The end of a name, and the value that it is given."""
_WORDS = re.compile(r"[A-Za-z]{3,}")
_PLACE = re.compile(r"[./\\]|^[a-z_]+$|^[A-Z_]+$|^[\d.,-]+$")
ENTROPY = 3.4
"""Bits a character from which on a value counts as drawn at random: words have less."""


def suspects(text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """What looks like a secret: its kind, and where it begins and ends; in order, none within another."""
    found = sorted([*secrets_in(text), *_assigned(text)], key=lambda one: one[1])
    at = 0
    for kind, (start, end) in found:
        if start >= at:
            yield kind, (start, end)
            at = end


def _assigned(text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    for match in _ASSIGNED.finditer(text):
        if _random(match["value"]):
            yield "assignment", match.span("value")


def _random(value: str) -> bool:
    """Whether a value seems drawn at random: neither words, nor a place, nor a number."""
    body = value.strip("=")
    if _PLACE.search(body) and not re.fullmatch(r"[A-Za-z0-9+/]{32,}", body):
        return False
    if not (re.search(r"\d", body) and re.search(r"[A-Za-z]", body)):
        return False
    if sum(len(word) for word in _WORDS.findall(body)) > 0.7 * len(body) and re.search(r"[_-]", body):
        return False
    counts = Counter(body)
    entropy = -sum(count / len(body) * math.log2(count / len(body)) for count in counts.values())
    return entropy >= (ENTROPY if len(set(body.lower()) - set("0123456789abcdef")) else 3.0)
