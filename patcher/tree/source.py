"""A file's bytes, and its text without loss: BOM, PEP 263 encoding and newlines come back as they were."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from patcher.errors import TreeError
from patcher.i18n import phrase
from patcher.worktree.hashing import ABSENT


@dataclass(frozen=True, slots=True)
class Source:
    """A file as it was read. `mode` holds the permission bits."""

    path: str
    content: bytes
    sha256: str
    mode: int


def sha256_of(source: Source | None) -> str:
    """The digest of a file as it was read; ABSENT where there was none."""
    return ABSENT if source is None else source.sha256


@dataclass(frozen=True, slots=True)
class Codec:
    """How a file's text becomes its bytes."""

    encoding: str = "utf-8"
    bom: bool = False


@dataclass(frozen=True, slots=True)
class Undecodable:
    """The bytes are no text in the encoding that the file declares. `line` counts from 1."""

    line: int
    message: str


def decode(source: Source) -> tuple[str, Codec] | Undecodable:
    """The text and how to turn it back; newlines are left as they are.

    A PEP 263 cookie counts in Python files alone; every other file is UTF-8.
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
    return (
        (text, codec)
        if codec.encoding == "utf-8" or _comes_back(text, codec, content)
        else Undecodable(1, f"{codec.encoding} does not give the same bytes back")
    )


def encode(text: str, codec: Codec, path: str = "") -> bytes:
    """The bytes of `text`.

    Raises:
        TreeError: the encoding lacks a character of it.
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
