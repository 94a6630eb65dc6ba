"""Repairs that speak for themselves, and the records drafted from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from patcher.analysis.forest import Forest
from patcher.analysis.model import Finding
from patcher.analysis.symbols import Symbols
from patcher.analysis.target import Target
from patcher.check.drafts.namesakes import Namesakes
from patcher.check.drafts.releases import Releases
from patcher.i18n import Phrase
from patcher.records.model import Record
from patcher.rewrite.edits import Edit


@dataclass(frozen=True, slots=True)
class Repair:
    """Edits that should take one finding away, and what speaks for them."""

    finding: Finding
    edits: tuple[Edit, ...]
    cause: str
    """What changed, dotted: repairs of one cause make one draft."""
    verb: str
    """What became of it, for the record's id: moved, renamed, dropped, inlined."""
    title: Phrase
    evidence: Phrase
    """What in the sources speaks for the repair."""
    has: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Draft:
    """A record for findings that no record repairs, shown to work on the tree that it was drafted for."""

    id: str
    text: str
    """The record's TOML."""
    record: Record
    repairs: tuple[Finding, ...]
    """The findings that are gone once it is applied."""


@dataclass(frozen=True, slots=True, eq=False)
class Ground:
    """What drafts are made from: the tree, the target, and releases around it."""

    forest: Forest
    target: Target
    verl: str
    releases: Releases
    baseline: Target | None = None
    word: str = "Uky"
    findings: tuple[Finding, ...] = ()
    searches: dict[str, Namesakes] = field(default_factory=dict)

    def symbols(self, package: str) -> Symbols | None:
        return self.target.packages.get(package)

    def namesakes(self, package: str) -> Namesakes | None:
        """The search for names in the target's package, made once."""
        symbols = self.symbols(package)
        if symbols is None:
            return None
        return self.searches.setdefault(package, Namesakes(symbols))

    def text(self, file: str) -> str | None:
        content = self.forest.content(file)
        try:
            return content.decode("utf-8") if content is not None else None
        except UnicodeDecodeError:
            return None

    def before(self, finding: Finding) -> Symbols | None:
        """The last release that still had what the finding is about."""
        package = finding.package
        return self.releases.last_with(package, finding.symbol, self.against.get(package, ""), finding.since)

    def since(self, finding: Finding) -> str | None:
        """The first release without what the finding is about, where that is known."""
        package = finding.package
        return finding.since or self.releases.first_without(package, finding.symbol, self.against.get(package, ""))

    @property
    def against(self) -> Mapping[str, str]:
        return self.target.against
