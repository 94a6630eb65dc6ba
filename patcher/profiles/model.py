"""A file that is rendered for a host, and what became of it there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from patcher.i18n import Phrase, Phrases

Text: TypeAlias = Phrase | Phrases | str


@dataclass(frozen=True, slots=True)
class Rendered:
    """A file made from a template for one host. `notes` say what was left out and why."""

    path: str
    """Below the tree's root."""
    text: str
    mode: int = 0o644
    notes: tuple[Text, ...] = ()


PutAs: TypeAlias = Literal["written", "unchanged", "updated", "kept", "foreign"]
"""`kept`: edited by hand on the host since it was rendered; `foreign`: there, and never rendered by us. Both stay."""


@dataclass(frozen=True, slots=True)
class Put:
    """What became of a rendered file on the host."""

    path: str
    how: PutAs
    there: str | None = None
    """The text that is on the host, where it is another."""
    rendered: Rendered | None = field(default=None, repr=False)
