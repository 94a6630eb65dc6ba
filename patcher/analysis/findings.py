"""Verdicts about uses, the problems that they name, and the report of one check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from patcher.analysis.uses import Use
from patcher.i18n import Phrase

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
    "import-raises",
]
"""What is wrong. Decided in `patcher.check.rules`, a module for each thing that is used: imports (module-, symbol-),
members (attribute-), calls (argument-), overrides (override-mismatch), variables (env-), engine_flags, config_keys; the
last two in `patcher.analysis.severity`, by text_versions and refusals."""

Severity = Literal["break", "optional", "guarded", "inert"]
"""break: runs on import or on the plain path; optional: inside a feature; guarded: a version test or try/except covers
it; inert: silently ignored."""


@dataclass(frozen=True, slots=True)
class Fine:
    """It is there; `symbol` is the dotted name that was looked up."""

    symbol: str = ""


@dataclass(frozen=True, slots=True)
class Unrelated:
    """Not a use of any package that is checked against."""


@dataclass(frozen=True, slots=True)
class Undecided:
    """Neither there nor absent for certain: counted as unresolved, and never a finding."""

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
    own_callers: bool = False
    """Of an override: only the tree's own code calls it, and as it is written."""

    @property
    def package(self) -> str:
        """The import name of the package that the symbol is of."""
        return self.symbol.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Broken:
    problems: tuple[Problem, ...]


Verdict: TypeAlias = Fine | Unrelated | Undecided | Broken


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem of one use, with how much it matters."""

    file: str
    """Below the tree's root, or `../train.py` in the project around the tree."""
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
    entry: str = ""
    """The program of the tree that runs into it, where the plain job does not: `recipe/x/main.py (recipe/x/run.sh)`."""

    @property
    def package(self) -> str:
        """The import name of the package whose change it is; "" for one that concerns the tree alone."""
        return self.symbol.partition(".")[0]

    @property
    def is_in_tree(self) -> bool:
        """Whether its file is one of the tree, which records change, and not of the project around it."""
        return not self.file.startswith("../")

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
    broken: tuple[tuple[Use, Broken], ...] = ()
    """The uses that the findings are about, to be judged again on other releases."""
    unrelated: tuple[Use, ...] = ()
    """Of the uses from elsewhere those that are none of the packages here: what they are made of is not there."""
    unreadable: tuple[tuple[str, str], ...] = ()
    """Files that are no Python, or none that is looked into, and why: `it nests too deeply (line 3)`."""

    def of(self, *severities: Severity) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.severity in severities)
