"""Whether a text is as it was rendered: its own line holds the hash of the rest."""

from __future__ import annotations

import hashlib

PREFIX = "# rendered by uky-patch "


def digest(text: str) -> str:
    """The sha256 of a text, lone surrogates included."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def is_rendered(text: str) -> bool:
    """Whether the text was rendered by the tool at all, edited since or not."""
    return _line(text) is not None


def is_untouched(text: str) -> bool:
    """Whether the text is as it was rendered, by whatever version."""
    line = _line(text)
    if line is None:
        return False
    return line.rstrip("\n").endswith("sha256:" + digest(text.replace(line, "", 1)))


def _line(text: str) -> str | None:
    for line in text.splitlines(keepends=True)[:20]:
        if line.startswith(PREFIX):
            return line
    return None
