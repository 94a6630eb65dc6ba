"""Make texts harmless: secrets out, other names in; and prove it before anything is written."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from patcher.bundle.excerpts import opened
from patcher.bundle.model import Section
from patcher.bundle.names import Names
from patcher.bundle.sieving import find
from patcher.errors import UkyError
from patcher.i18n import Phrase, phrase
from patcher.secrets.redacting import Redactor

BLOCK = 1 << 20
"""Characters that are looked at together; a line is never cut, unless it is longer than this four times over."""
_BEGIN, _END = "-----BEGIN", "-----END"


class SealError(UkyError):
    """Something in the archive still looks like a secret."""


@dataclass(frozen=True, slots=True)
class Sealed:
    """A file of the archive as it is written. `content` is bytes, or an open file without a name."""

    name: str
    holds: Phrase
    size: int
    content: bytes | IO[bytes]
    replaced: Counter[str]
    """How often what was replaced in it."""

    def pieces(self) -> Iterator[bytes]:
        """Its bytes from the beginning."""
        if isinstance(self.content, bytes):
            yield self.content
            return
        self.content.seek(0)
        while piece := self.content.read(BLOCK):
            yield piece


class Sealer:
    """Seals one file after another. `names` is None where people and machines keep theirs."""

    def __init__(self, secrets: Iterable[str], names: Names | None, stack: ExitStack) -> None:
        """`stack` closes what is put aside."""
        self._stack = stack
        self._secrets = sorted({secret for secret in secrets if secret.strip()}, key=len, reverse=True)
        self._redactor = Redactor(self._secrets, find)
        self._names = names

    def seal(self, section: Section) -> Sealed:
        """One file without secrets. Raises OSError where what is too large to hold cannot be put aside."""
        replaced: Counter[str] = Counter()
        name = self._text(section.name, Counter())
        if isinstance(section.content, str):
            content = self._text(section.content, replaced).encode("utf-8", "replace")
            return Sealed(name, section.holds, len(content), content, replaced)
        aside = self._stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        for text in _blocks(section.content):
            aside.write(self._text(text, replaced).encode("utf-8", "replace"))
        aside.flush()
        return Sealed(name, section.holds, aside.tell(), aside, replaced)

    def line(self, text: str) -> str:
        """One text for the terminal, made harmless in the same way."""
        return self._text(text, Counter())

    def prove(self, files: Sequence[Sealed]) -> None:
        """Look through all that is to be written once more. Raises SealError where a secret is left."""
        for file in files:
            held = b""
            for piece in file.pieces():
                held += piece
                cut = held.rfind(b"\n") + 1 if len(piece) == BLOCK else len(held)
                self._prove(file.name, held[:cut].decode("utf-8", "replace"))
                held = held[cut:]
            self._prove(file.name, held.decode("utf-8", "replace"))

    def _prove(self, name: str, text: str) -> None:
        if self._redactor.text(text) != text:
            raise _refusal(name)
        if any(secret in text for secret in self._secrets if len(secret) > 5):  # By no rule of the redactor's.
            raise _refusal(name)

    def _text(self, text: str, replaced: Counter[str]) -> str:
        before = self._redactor.count
        text = self._redactor.document(text)
        replaced["secrets"] += self._redactor.count - before
        if self._names is None:
            return text
        counted = self._names.count.copy()
        text = self._names.text(text)
        replaced.update(self._names.count - counted)
        return text


def _blocks(path: Path) -> Iterator[str]:
    """A file in blocks of whole lines; a private key is not cut in two."""
    with opened(path) as stream:
        held = b""
        while piece := stream.read(BLOCK):
            held += piece
            cut = held.rfind(b"\n") + 1
            begun = held.rfind(_BEGIN.encode(), 0, cut)
            if begun >= 0 and held.find(_END.encode(), begun, cut) < 0 and len(held) < 4 * BLOCK:
                cut = begun
            if not cut and len(held) >= 4 * BLOCK:
                cut = len(held)
            if cut:
                yield held[:cut].decode("utf-8", "replace")
                held = held[cut:]
        if held:
            yield held.decode("utf-8", "replace")


def _refusal(name: str) -> SealError:
    return SealError(
        phrase("{name}: still looks as if it held a secret", name=name),
        advice="Nothing was written. Leave the file out that brings it in, or report this.",
    )
