"""The edits that a record can ask for, as frozen values, and how a changed line is marked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Style = Literal["comment", "clean"]
"""Whether the old lines are kept above the new ones as comments, or dropped."""
MarkStyle = Literal["comment", "clean", "unmarked"]
"""`unmarked`: the new lines as they are, for a text that is compared and not written."""
Where = Literal["prologue", "start", "before", "after", "end"]


@dataclass(frozen=True, slots=True)
class Mark:
    """How a changed line is marked: `# <word>[<record>]`, the old line kept or not."""

    record: str
    word: str = "Uky"
    style: MarkStyle = "comment"

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

    @property
    def about(self) -> tuple[str, ...]:
        """What is looked for and put there, by its last name: a marker beside one of these names is this edit's own.

        `call` is left out: other arguments are passed to it too.
        """
        names = (getattr(self, name, None) for name in ("old", "new"))
        return tuple(name.rpartition(".")[2] for name in names if name is not None)


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

    @property
    def about(self) -> tuple[str, ...]:
        return self.pattern, self.replacement


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert(Place):
    """Insert statements: in the module's prologue, at the start or end of `within`, or beside an anchor pattern."""

    where: Where
    code: str
    anchor: str | None = None

    @property
    def about(self) -> tuple[str, ...]:
        return (self.code,)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceLines(Place):
    """Put lines in the place of lines, in a text of any kind: what no other edit can say.

    `hunk` is one hunk of a unified diff without its `@@` line: each line begins with a space, `-` or `+`.
    """

    hunk: str

    @property
    def about(self) -> tuple[str, ...]:
        return (self.hunk,)


Edit: TypeAlias = (
    MoveImport | RenameArgument | RemoveArgument | AddArgument | RenameAttribute | Replace | Insert | ReplaceLines
)


def same_change(edit: Edit) -> tuple[str, ...] | None:
    """What two edits have in common that make one change in two places; None of an edit that stands alone."""
    match edit:
        case MoveImport(old=old, new=new) | RenameAttribute(old=old, new=new):
            return "move", old, new
        case RenameArgument(call=call, old=old, new=new):
            return "rename", call, old, new
        case RemoveArgument(call=call, old=old):
            return "remove", call, old
        case AddArgument(call=call, new=new):
            return "add", call, new
        case Replace(pattern=pattern, replacement=replacement):
            return "replace", pattern, replacement
        case Insert() | ReplaceLines():
            return None
