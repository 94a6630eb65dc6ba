"""The kinds of edit that a record can ask for, as frozen values, and how a changed line is marked.

Edits of Python find their place by syntax (`SyntaxEdit`), the others by lines or keys of a text (`TextEdit`). The names
that a record's TOML has for them, `kind = "rename-argument"`, are in `patcher.records.parse`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from patcher.rewrite.requirements import name_of

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
    count: int | None = 1
    """How many anchors there must be; None is every one that is there: a fork has more of them, or fewer."""
    verl: str | None = None
    """Specifier of the verl releases that this edit is for; None is all that the record is for."""

    @property
    def about(self) -> tuple[str, ...]:
        """What is looked for and put there, by its last name: a marker beside one of these names is this edit's own.

        `call` is left out: other arguments are passed to it too.
        """
        names = (getattr(self, name, None) for name in ("old", "new"))
        return tuple(name.rpartition(".")[2] for name in names if name is not None)

    @property
    def taken_out(self) -> str | None:
        """The pattern of what it takes out and puts nothing for: only as a comment can its effect be there."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveImport(Place):
    """Import a name from where it lives now. `old` and `new` are full dotted names."""

    old: str
    new: str
    count: int | None = None
    """What is gone is gone for every import of it."""


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
    """No longer pass a keyword argument: `start(port, disable_log_requests=True)` becomes `start(port)`."""

    call: str
    old: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AddArgument(Place):
    """Pass one more keyword argument; `value` is an expression, as it is written."""

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

    @property
    def taken_out(self) -> str | None:
        return None if self.replacement.strip() else self.pattern


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
class Setting(Place):
    """Put `new` in the place of `old`. Without `old` it is added, without `new` it is taken out."""

    old: str | None = None
    new: str | None = None

    @property
    def about(self) -> tuple[str, ...]:
        return tuple(text for text in (self.old, self.new) if text)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetDefault(Setting):
    """The default of a parameter of the function `within`, or of a field of the class `within`."""

    parameter: str

    @property
    def about(self) -> tuple[str, ...]:
        return (self.parameter,)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetParameter(Setting):
    """A parameter of the function `within`, as it is written there: `timeout: int = 600`."""

    behind: str | None = None
    """The parameter that a new one follows; None is the last that is no `**kwargs`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetDecorator(Setting):
    """A decorator of the function or class `within`, without its `@`. A new one is the outermost."""

    behind: str | None = None
    """The decorator below which a new one stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetBase(Setting):
    """A base of the class `within`, or a keyword of it such as `metaclass=Registry`."""

    behind: str | None = None
    """The base that a new one follows; None is the first place. A keyword is always the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetEntry(Setting):
    """An entry of the dictionary, list, tuple or set that is called `container`."""

    container: str
    """What it is assigned to, passed as or kept under: `ENV` for `ENV = {…}`, `f(ENV={…})` and `{"ENV": {…}}`."""
    key: str | None = None
    """Of a dictionary: the key, as it is written; `old` and `new` are its values."""
    behind: str | None = None
    """The key or entry that a new one follows; None is the last."""

    @property
    def about(self) -> tuple[str, ...]:
        return tuple(text for text in (self.key, self.old, self.new) if text)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceFunction(Place):
    """Put a whole function in the place of the function `within`."""

    was: str
    """Digest of the function as it was, layout and comments left out: another function is never replaced."""
    code: str

    @property
    def about(self) -> tuple[str, ...]:
        return (self.code,)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetValue(Setting):
    """The value of a key in YAML or TOML, of a variable in a shell script, or of a hydra override in a command."""

    key: str
    """`trainer.total_epochs`, `CUDA_VISIBLE_DEVICES`, `+trainer.logger`."""
    behind: str | None = None
    """The key beside it that a new one follows."""
    comment: str | None = None
    """Lines of comment above a new key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetRequirement(Setting):
    """A requirement: a line of a requirements file, or a string of setup.py or pyproject.toml."""

    behind: str | None = None
    """The requirement that a new one follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceLines(Place):
    """Put lines in the place of lines, in a text of any kind: what no other edit can say.

    `hunk` is one hunk of a unified diff without its `@@` line: each line begins with a space, `-` or `+`.
    """

    hunk: str

    @property
    def about(self) -> tuple[str, ...]:
        return (self.hunk,)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateFile(Place):
    """Make a file that is not there."""

    content: str
    """The whole text, without a marker; its lines end in a newline alone."""


TextEdit: TypeAlias = ReplaceLines | SetValue | SetRequirement | CreateFile
"""Edits of a text of any kind, for which no Python is read."""
SyntaxEdit: TypeAlias = (
    MoveImport
    | RenameArgument
    | RemoveArgument
    | AddArgument
    | RenameAttribute
    | Replace
    | Insert
    | SetDefault
    | SetParameter
    | SetDecorator
    | SetBase
    | SetEntry
    | ReplaceFunction
)
Edit: TypeAlias = SyntaxEdit | TextEdit


def same_change(edit: Edit) -> tuple[str | None, ...] | None:
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
        case SetDefault(parameter=name, old=old, new=new):
            return "default", name, old, new
        case SetValue(key=key, old=old, new=new):
            return "value", key, old, new
        case SetRequirement(old=old, new=new):
            return "requirement", name_of(new or old or "")
        case SetDecorator(old=old, new=new) | SetBase(old=old, new=new) | SetParameter(old=old, new=new):
            return type(edit).__name__, old, new
        case Insert() | ReplaceLines() | ReplaceFunction() | SetEntry() | CreateFile():
            return None
