"""Where in a text a secret may stand at all: rules that look closely cost too much for all of a large log."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ahocorasick_rs import BytesAhoCorasick

from patcher.hosts.redaction import is_secret

_NAMES = b"token secret pass pwd key auth cred cookie signature"
"""A name that holds one of these may be a secret's; most are none, and the rules for names say which."""
_SHAPES = (
    b"netrc bearer basic sig= sshpass curl wandb :// hf_ sk- gho_ ghp_ ghs_ ghu_ ghr_ github_pat_ glpat- nvapi- xox"
    b" akia asia aiza pypi- eyj npm_ dckr_pat_ gsk_ ya29. r8_ api_org_ sg. private -----begin -----end"
)
"""One of these stands in whatever else a rule takes for a secret."""
_HEAD, _TAIL = re.compile(rb"[\w.-]*\Z"), re.compile(rb"[\w.-]*")
_ASSIGNED = re.compile(
    r"(?:token|secret|passw(?:or)?d|passphrase|credential|auth|signature|cookie|key|pwd)\Z", re.IGNORECASE
)
_ANY = re.compile(rb"[\"'\]\\]*(?:\s*[=:,]|\s+[^\s-])")
_RANDOM = re.compile(rb"[\"'\]\\]*\s*(?:=>|=|:)\s*[\\\"']*[A-Za-z0-9+/_.~=-]{16}")
"""What follows the name of a secret, and what follows one that only may be one's."""
_RUN = re.compile(r"[A-Za-z0-9]{4,}")
_LONGEST = 80
"""Characters of a name that are looked at."""
_AROUND = 3
"""Lines before and behind that belong together: a name and its value may stand in lines that follow each other."""


class Sieve:
    """Cuts texts into stretches of lines that have to be looked at closely, and the rest."""

    def __init__(self, secrets: Iterable[str]) -> None:
        runs = [_RUN.findall(piece) for secret in secrets for piece in secret.splitlines() if piece.strip()]
        self._blind = not all(runs)
        """Whether some known secret has nothing that could be looked for."""
        known = {max(found, key=len).lower() for found in runs if found}
        names = _NAMES.split()
        self._names = len(names)
        self._signs = BytesAhoCorasick([*names, *_SHAPES.split(), *(run.encode() for run in known)])

    def stretches(self, text: str) -> Iterator[tuple[bool, str]]:
        """The text in pieces of whole lines, in order: whether a piece has to be looked at, and the piece."""
        if self._blind:
            yield True, text
            return
        content = text.encode("utf-8", "surrogatepass")
        at = 0
        for start, end in _merged(content, self._hits(content)):
            if start > at:
                yield False, content[at:start].decode("utf-8", "surrogatepass")
            yield True, content[start:end].decode("utf-8", "surrogatepass")
            at = end
        if at < len(content):
            yield False, content[at:].decode("utf-8", "surrogatepass")

    def _hits(self, content: bytes) -> Iterator[tuple[int, int]]:
        """Where a sign stands, but for names that are no secret's."""
        known: dict[bytes, re.Pattern[bytes] | None] = {}
        for sign, start, end in self._signs.find_matches_as_indexes(content.lower(), overlapping=True):
            if sign < self._names:
                behind = _TAIL.match(content, end)
                assert behind is not None
                before = _HEAD.search(content, max(0, start - _LONGEST), start)
                word = content[before.start() if before else start : behind.end()]
                if word not in known:
                    known[word] = _value_of(word.decode("utf-8", "replace"))
                value = known[word]
                if value is None or not value.match(content, behind.end()):
                    continue
            yield start, end


def _value_of(word: str) -> re.Pattern[bytes] | None:
    """What follows a name where a rule takes it for a secret's; None where none does."""
    if is_secret(word.strip("-")) or word.lower() in ("token", "pass", "password"):
        return _ANY
    return _RANDOM if _ASSIGNED.search(word) else None


def _merged(content: bytes, hits: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The lines of the hits with those around them, where they touch as one."""
    begun, until = -1, -1
    for start, end in hits:
        if end <= until:
            continue
        first, last = _before(content, start), _behind(content, end)
        if begun >= 0 and first <= until:
            until = max(until, last)
            continue
        if begun >= 0:
            yield begun, until
        begun, until = first, last
    if begun >= 0:
        yield begun, until


def _before(content: bytes, at: int) -> int:
    for _ in range(_AROUND):
        at = content.rfind(b"\n", 0, max(0, at))
        if at < 0:
            return 0
    return at + 1


def _behind(content: bytes, at: int) -> int:
    at -= 1
    for _ in range(_AROUND):
        at = content.find(b"\n", at + 1)
        if at < 0:
            return len(content)
    return at + 1
