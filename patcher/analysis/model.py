"""Uses, what they need, and findings: the words that all of `compat` speaks in."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from patcher.analysis.values import Value
from patcher.i18n import Phrase, Phrases

FindingKind = Literal[
    "module-removed",
    "module-moved",
    "symbol-removed",
    "symbol-moved",
    "argument-removed",
    "argument-required",
    "argument-shifted",
    "attribute-removed",
    "override-mismatch",
    "env-removed",
    "env-unknown",
    "flag-removed",
    "key-removed",
    "version-compared-as-text",
]
Severity = Literal["break", "optional", "guarded", "inert"]
"""break: runs on import or on the plain path; optional: inside a feature; guarded: a version test or try/except covers
it; inert: silently ignored."""


@dataclass(frozen=True, slots=True, eq=False)
class When:
    """Runs only if `test` is truthy (`holds`) or falsy (not `holds`)."""

    test: ast.expr
    holds: bool
    assumed: bool = False
    """The other way ends in an exception that the code raises itself."""


@dataclass(frozen=True, slots=True)
class Otherwise:
    """Stands in the handler of a `try`: runs only if something in the lines `first` to `last` of this file raises."""

    first: int
    last: int
    catches: tuple[str, ...]


Condition: TypeAlias = When | Otherwise


MOST_CONDITIONS = 150
"""How many conditions are kept of those that one place stands under; a place in verl stands under 10 at most.
With fewer of them code counts as what runs, so nothing is held to be guarded that is not."""


@dataclass(frozen=True, slots=True)
class Context:
    """When a use runs: in which function, under which conditions (outermost first), and what is caught around it."""

    function: str = ""
    """Qualified name; "" for code that runs on import (class bodies included)."""
    conditions: tuple[Condition, ...] = ()
    caught: tuple[str, ...] = ()
    """Exceptions that a `try` around it swallows, as written; "BaseException" for a bare `except`. A handler that
    raises again on every path swallows nothing."""


@dataclass(frozen=True, slots=True)
class Keyword:
    """A keyword argument of a call; `spread`: a literal key of a dict passed with `**`."""

    name: str
    line: int
    spread: bool = False


@dataclass(frozen=True, slots=True)
class Shape:
    """How a call passes its arguments."""

    positional: tuple[str, ...] = ()
    """One entry an argument: the name it goes by (`state` for `app.state` and for `state`), "" if it has none."""
    keywords: tuple[Keyword, ...] = ()
    any_positional: bool = False
    """`*args` of unknown length is passed: how many positional arguments there are is not known."""
    any_keyword: bool = False
    """`**kwargs` of unknown keys is passed."""
    sometimes: tuple[str, ...] = ()
    """Keywords that only some ways through the code pass; each has a use of its own, under its conditions."""
    partial: bool = False
    """`functools.partial`: what is required may come later."""


@dataclass(frozen=True, slots=True)
class ImportOf:
    """`import module` (name None) or `from module import name`; `module` is absolute."""

    module: str
    name: str | None


@dataclass(frozen=True, slots=True)
class MemberOf:
    """The attribute `name` is read of a value. `soft`: `getattr(x, name, default)` or `hasattr`, which cannot fail."""

    of: Value
    name: str
    soft: bool = False


@dataclass(frozen=True, slots=True)
class CallOf:
    of: Value
    shape: Shape


@dataclass(frozen=True, slots=True)
class MethodOf:
    """A method defined in a class of the tree (`owner`, dotted) whose bases may lead to a target's class."""

    owner: str
    name: str
    shape: Parameters


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of a function of the tree, `self` left out."""

    positional: tuple[str, ...] = ()
    keyword: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    any_positional: bool = False
    any_keyword: bool = False


@dataclass(frozen=True, slots=True)
class EnvironmentVariable:
    name: str
    value: str | None = None


@dataclass(frozen=True, slots=True)
class EngineFlag:
    """An engine argument by its command-line or keyword name, underscores for dashes."""

    name: str
    option: bool = False
    """Given as `--name`, so that only what the command line takes will do."""


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """A hydra override `key=value` with the sign in front of it."""

    dotted: str
    value: str | None = None
    sign: Literal["", "+", "++", "~"] = ""
    entry: str = ""
    """The module that is run with it: `verl.trainer.main_ppo`. "": not known. With `dotted` empty, the entry itself."""
    config: str = ""
    """`--config-name`; "": the one that the entry point names."""
    groups: tuple[tuple[str, str], ...] = ()
    """What the same command picks from config groups: `("model_engine", "megatron")`."""


@dataclass(frozen=True, slots=True)
class TextComparison:
    """Two version strings compared as text."""

    package: str


Need: TypeAlias = (
    ImportOf | MemberOf | CallOf | MethodOf | EnvironmentVariable | EngineFlag | ConfigKey | TextComparison
)


@dataclass(frozen=True, slots=True)
class Use:
    """One thing that the tree needs of another package. `line` (from 1) is that of the name or argument itself."""

    file: str
    line: int
    need: Need
    context: Context = Context()


@dataclass(frozen=True, slots=True)
class Fine:
    symbol: str = ""


@dataclass(frozen=True, slots=True)
class Beside:
    """Not a use of any package that is checked against."""


@dataclass(frozen=True, slots=True)
class Undecided:
    symbol: str
    reason: str


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a use. `symbol` is as for `has`: `pkg.mod.name`, `pkg.mod.function(parameter)`."""

    kind: FindingKind
    symbol: str
    line: int
    detail: Phrase
    suggestion: Phrase | None = None
    moved_to: str = ""
    """Where the symbol is now, dotted; "" if that is not known."""


@dataclass(frozen=True, slots=True)
class Broken:
    problems: tuple[Problem, ...]


Verdict: TypeAlias = Fine | Beside | Undecided | Broken


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem of one use, with how much it matters."""

    file: str
    line: int
    symbol: str
    kind: FindingKind
    severity: Severity
    detail: Phrase
    suggestion: Phrase | None = None
    since: str | None = None
    """The first release that shows it, as `0.14.0`; None if that was not looked for or every release shows it."""
    repaired_by: str | None = None
    moved_to: str = ""
    function: str = ""

    @property
    def package(self) -> str:
        """The import name of the package whose change it is; "" for one that concerns the tree alone."""
        return self.symbol.partition(".")[0]

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What stays the same when lines move."""
        return (self.file, self.function, self.kind, self.symbol)


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A use that cannot be decided, and why."""

    file: str
    line: int
    symbol: str
    reason: str


@dataclass(frozen=True, slots=True)
class Report:
    """What one tree meets on one set of releases. `uses` counts those of the packages that are checked against."""

    verl: str
    against: Mapping[str, str]
    uses: int
    unresolved: tuple[Unresolved, ...]
    findings: tuple[Finding, ...]
    notes: tuple[Phrase | Phrases, ...] = ()
    broken: tuple[Use, ...] = ()
    """The uses that the findings are about, to be judged again on other releases."""
    unreadable: tuple[tuple[str, str], ...] = ()
    """Files that are no Python, or none that is looked into, and why: `it nests too deeply (line 3)`."""

    def of(self, *severities: Severity) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.severity in severities)
