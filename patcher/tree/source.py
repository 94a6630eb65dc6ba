"""A file's bytes as text and back without loss: BOM, encoding (PEP 263) and line ends stay as they are."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from patcher.errors import TreeError
from patcher.i18n import phrase
from patcher.worktree.hashing import ABSENT


@dataclass(frozen=True, slots=True)
class Source:
    """A file as it was read."""

    path: str
    """Below the tree's root, with forward slashes."""
    content: bytes
    sha256: str
    mode: int
    """The permission bits."""


def sha256_of(source: Source | None) -> str:
    """The SHA-256 of a file; ABSENT for None, a file that does not exist."""
    return ABSENT if source is None else source.sha256


@dataclass(frozen=True, slots=True)
class Codec:
    """How a file's text is encoded."""

    encoding: str = "utf-8"
    bom: bool = False


@dataclass(frozen=True, slots=True)
class Undecodable:
    """Why the bytes are no text in the file's encoding, and in which line, counted from 1."""

    line: int
    message: str


def decode(source: Source) -> tuple[str, Codec] | Undecodable:
    """The text of a file, with its line ends, and the codec to encode it again.

    Python files may declare an encoding (`# coding: latin-1`, PEP 263); all others are UTF-8. A text that does not
    encode to the same bytes again counts as undecodable.
    """
    content = source.content
    codec = Codec()
    if content.startswith(codecs.BOM_UTF8):
        codec = Codec(bom=True)
    if source.path.endswith((".py", ".pyi")) and any(b"coding" in line for line in content.split(b"\n", 2)[:2]):
        declared = _declared(content)
        if isinstance(declared, Undecodable):
            return declared
        codec = Codec(declared, codec.bom)
    body = content[len(codecs.BOM_UTF8) :] if codec.bom else content
    try:
        text = body.decode(codec.encoding)
    except UnicodeDecodeError as error:
        return Undecodable(body.count(b"\n", 0, error.start) + 1, f"{error.reason} ({error.encoding})")
    except (LookupError, UnicodeError) as error:
        return Undecodable(1, str(error))
    if codec.encoding != "utf-8" and not _comes_back(text, codec, content):
        return Undecodable(1, f"{codec.encoding} does not give the same bytes back")
    return text, codec


def encode(text: str, codec: Codec, path: str = "") -> bytes:
    """The bytes of `text`. `path` is for the error message.

    Raises:
        TreeError: the encoding has no such character.
    """
    try:
        return _encoded(text, codec)
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise TreeError(
            phrase("{path}: line {line} does not fit the file's encoding", path=path or phrase("the text"), line=line),
            cause=phrase("{encoding} has no {character}", encoding=codec.encoding, character=ascii(text[error.start])),
            advice="Use characters of that encoding, or convert the file to UTF-8 first.",
        ) from error


def _comes_back(text: str, codec: Codec, content: bytes) -> bool:
    try:
        return _encoded(text, codec) == content
    except UnicodeError:
        return False


def _encoded(text: str, codec: Codec) -> bytes:
    body = text.encode(codec.encoding)
    return codecs.BOM_UTF8 + body if codec.bom else body


def _declared(content: bytes) -> str | Undecodable:
    from tokenize import detect_encoding

    lines = iter(content.splitlines(keepends=True)[:2])
    try:
        encoding, _ = detect_encoding(lambda: next(lines, b""))
    except SyntaxError as error:
        return Undecodable(1, error.msg or "the encoding declaration is wrong")
    return "utf-8" if encoding == "utf-8-sig" else encoding
