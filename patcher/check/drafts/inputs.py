"""What drafts are made from: the tree, the target, the releases around it, and a search for names in a package."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from patcher.analysis.findings import Finding
from patcher.analysis.project import Project
from patcher.analysis.symbols import Class, Definition, Function, Module, Symbols, Unknown, Variable, full_name
from patcher.analysis.target import Target
from patcher.i18n import Phrase
from patcher.records.model import Record
from patcher.rewrite.edits import Edit
from patcher.rewrite.outcome import Unparseable
from patcher.rewrite.source import Source, parse

if TYPE_CHECKING:
    from packaging.version import Version


SymbolsOf = Callable[[str, str], "Symbols | None"]
"""The sources of a release by import name and version; None where they are not to be had."""
_NEAR = 2
"""Releases on each side of the target whose import paths are compared. A guess."""
_STRIDE = 4
"""Releases that are passed over at a time on the way back: a symbol may have been there for a few only. A guess."""


class Releases:
    """Versions by import name, and how to look into each. Without any, the target alone bears witness."""

    def __init__(self, versions: Mapping[str, Sequence[str]] | None = None, symbols: SymbolsOf | None = None) -> None:
        self._versions = {package: _ordered(known) for package, known in (versions or {}).items()}
        self._symbols = symbols or (lambda _package, _version: None)
        self._kept: dict[tuple[str, str], Symbols | None] = {}
        self._last: dict[tuple[str, str, str, str | None], str | None] = {}

    def last_with(self, package: str, symbol: str, target: str, since: str | None = None) -> Symbols | None:
        """The last release below `target` that offers `symbol`, in form of `has`.

        `since` is the first that lacks it, where that is known.
        """
        version = self._last_version(package, symbol, target, since)
        return self._of(package, version) if version is not None else None

    def last_that(self, package: str, target: str, test: Callable[[Symbols], bool]) -> Symbols | None:
        """The last release below `target` that passes a test."""
        version = self._find_last(package, test, target)
        return self._of(package, version) if version is not None else None

    def first_without(self, package: str, symbol: str, target: str) -> str | None:
        """The release after the last one that offers `symbol`; None where no earlier one is known to."""
        last = self._last_version(package, symbol, target, None)
        later = [version for version in self._versions.get(package, []) if last and _key(version) > _key(last)]
        return later[0] if later else None

    def _last_version(self, package: str, symbol: str, target: str, since: str | None) -> str | None:
        key = (package, symbol, target, since)
        if key not in self._last:
            self._last[key] = self._find_last(package, lambda symbols: symbols.has(symbol) is True, since or target)
        return self._last[key]

    def near(self, package: str, target: str) -> list[Symbols]:
        """The releases next to the target, older and newer."""
        known = self._versions.get(package, [])
        older, newer = _below(known, target), [version for version in known if _key(version) > _key(target)]
        found = (self._of(package, version) for version in (*older[-_NEAR:], *newer[:_NEAR]))
        return [symbols for symbols in found if symbols is not None]

    def _find_last(self, package: str, test: Callable[[Symbols], bool], end: str) -> str | None:
        """Go back in growing steps to a release that passes, then halve the way to the first that does not."""
        older = _below(self._versions.get(package, []), end)
        lacking, having, step = len(older), -1, 1
        # Steps of 1, 2, 4, 4, ...: a symbol that lived for a few releases only is not stepped over.
        while lacking > 0 and having < 0:
            at = max(lacking - step, 0)
            if self._passes(package, older[at], test):
                having = at
            else:
                lacking, step = at, min(step * 2, _STRIDE)
        # Halving assumes that what went does not come back in between.
        while having >= 0 and lacking - having > 1:
            middle = (having + lacking) // 2
            having, lacking = (middle, lacking) if self._passes(package, older[middle], test) else (having, middle)
        return older[having] if having >= 0 else None

    def _passes(self, package: str, version: str, test: Callable[[Symbols], bool]) -> bool:
        symbols = self._of(package, version)
        return symbols is not None and test(symbols)

    def _of(self, package: str, version: str) -> Symbols | None:
        key = (package, version)
        if key not in self._kept:
            self._kept[key] = self._symbols(package, version)
        return self._kept[key]


def _below(ordered: Sequence[str], version: str) -> list[str]:
    return [known for known in ordered if _key(known) < _key(version)]


def _ordered(versions: Sequence[str]) -> list[str]:
    from patcher.packages.agent.folders import is_pep440

    return sorted(filter(is_pep440, versions), key=_key)


def _key(version: str) -> Version:
    from packaging.version import InvalidVersion, Version

    try:
        return Version(version)
    except InvalidVersion:
        return Version("999999")


_ASIDE = {"tests", "test", "examples", "benchmarks", "third_party", "_vendor"}


@dataclass(frozen=True, slots=True, eq=False)
class Namesake:
    """One definition and the dotted paths by which the package offers it, that of its own module first."""

    definition: Definition
    paths: tuple[str, ...]


class Namesakes:
    """A search through one package's sources."""

    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols
        self._found: dict[str, tuple[Namesake, ...]] = {}

    def of(self, name: str) -> tuple[Namesake, ...]:
        """The classes, functions and variables of that name at the top level of modules."""
        if name not in self._found:
            self._found[name] = tuple(self._search(name))
        return self._found[name]

    def modules(self, name: str) -> tuple[str, ...]:
        """The modules whose last part is `name`."""
        return tuple(
            module for module in self.symbols.text.modules if _is_own(module) and module.rpartition(".")[2] == name
        )

    def _search(self, name: str) -> Iterator[Namesake]:
        text = self.symbols.text
        mentioning = [module for module, _ in text.containing(name.encode())]
        # Only definitions at the top level of a module can be imported.
        for module in dict.fromkeys(module for module, _ in text.definitions(name) if _is_own(module)):
            definition = self.symbols.resolve(f"{module}.{name}").definition
            if isinstance(definition, Class | Function | Variable) and definition.module == module:
                yield Namesake(definition, (f"{module}.{name}", *self._exports(definition, name, mentioning)))

    def _exports(self, definition: Definition, name: str, modules: Iterable[str]) -> Iterator[str]:
        """The packages that mean to offer it: those above its module, and those that list it in `__all__`."""
        home = full_name(definition).rpartition(".")[0]
        parts = home.split(".")
        # A package above the module that has the name means to offer it: `vllm.LLM` for `vllm.entrypoints.llm.LLM`.
        above = [".".join(parts[:length]) for length in range(1, len(parts))]
        for module in dict.fromkeys((*above, *filter(_is_own, modules))):
            found = self.symbols.modules.find(module)
            if module == home or not isinstance(found, Module) or found.folder is None:
                continue
            if (home.startswith(f"{module}.") or self._lists(found, name)) and full_name(
                self.symbols.resolve(f"{module}.{name}").definition
            ) == full_name(definition):
                yield f"{module}.{name}"

    def _lists(self, module: Module, name: str) -> bool:
        summary = self.symbols.modules.summary(module)
        listed = None if isinstance(summary, Unknown) else summary.exported
        return listed is not None and name in listed.entries


def _is_own(module: str) -> bool:
    """Whether a module is of the package's own code, that others import."""
    return _ASIDE.isdisjoint(module.split("."))


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
class DraftInputs:
    """What drafts are made from: the tree, the target, and releases around it."""

    project: Project
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
        content = self.project.content(file)
        try:
            return content.decode("utf-8") if content is not None else None
        except UnicodeDecodeError:
            return None

    def code(self, file: str) -> Source | None:
        """A file's syntax; None where there is no such file, or it is no Python."""
        text = self.text(file)
        found = parse(text) if text is not None else None
        return None if isinstance(found, Unparseable) else found

    def before(self, finding: Finding) -> Symbols | None:
        """The last release that still had what the finding is about."""
        package = finding.package
        return self.releases.last_with(package, finding.symbol, self.release(package), finding.since)

    def since(self, finding: Finding) -> str | None:
        """The first release without what the finding is about, where that is known."""
        package = finding.package
        return finding.since or self.releases.first_without(package, finding.symbol, self.release(package))

    def release(self, package: str) -> str:
        """The target's release of a package; "" where none is known."""
        return self.target.against.get(package, "")
