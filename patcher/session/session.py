"""What one call of the command line works on: the tree, its settings, the records, and what is installed."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from patcher.errors import RecordError, ReleaseError, UsageError
from patcher.i18n import Phrase, phrase
from patcher.session import config as settings
from patcher.tree import Tree
from patcher.trust import search_only_outside

# Records, plans, packages and the analysis of sources are imported in the functions that need them: `status` from its
# note and `--help` make a session too, and start without them; `migrate` loads them while ssh logs in.
if TYPE_CHECKING:
    from patcher.analysis.symbols import Symbols
    from patcher.packages import Environment
    from patcher.plan.applicability import SymbolLookup
    from patcher.plan.inputs import Request
    from patcher.plan.own_imports import TreeLookup
    from patcher.records.model import Record
    from patcher.records.symptoms import Symptom
    from patcher.session.merged_verl import MergedVerl
    from patcher.session.symbol_answers import SymbolAnswers

NAME_IT = phrase("name the interpreter that trains: --python, or python = in uky-patch.toml")


@dataclass(frozen=True, slots=True)
class PlanTarget:
    """The machine that a plan is made for: this one, or the host that the tree is sent to."""

    environment: Environment
    lookup: SymbolLookup
    """Whether the packages there have a symbol: True, False, or None where that is unknown."""


@dataclass(frozen=True)
class Session:
    """What one call of the command line works on: the shared options, and what follows from them.

    The properties are found when they are first asked for, and kept. A session never changes: to work with other
    settings or another lookup, make a second one with `dataclasses.replace`.
    """

    root_option: Path | None = None
    """`--root`."""
    python: Path | None = None
    """`--python`."""
    assume: Mapping[str, str] = field(default_factory=dict)
    """`--assume`: versions by package, which count before those installed."""
    folders: tuple[Path, ...] = ()
    """`--patches`: folders of further records."""
    output: Literal["text", "json"] = "text"
    given_config: settings.Config | None = None
    """Settings to use in place of those in the tree's uky-patch.toml."""
    given_lookup: SymbolLookup | None = None
    """A lookup of symbols to use in place of the packages' sources."""
    given_environment: Environment | None = None
    """What is installed where the tree is, if that is another machine and the tree at `root_option` a copy."""
    given_delivered: frozenset[str] | None = None
    """Files that git or pip has put there, if the tree at `root_option` is a copy without git's own folder."""

    @cached_property
    def tree(self) -> Tree:
        """`--root`, else the folder that holds verl/ at or above this one, else the installed verl's.

        Raises UsageError where there is none.
        """
        if self._tree is not None:
            return self._tree
        raise UsageError(
            phrase("no verl tree at {folder} or above it, and none installed", folder=Path.cwd()),
            advice=Tree.advice_in(Path.cwd())
            or "Name one with --root DIR: a fork's checkout, or any folder that holds verl/.",
        )

    @property
    def root_if_any(self) -> Path | None:
        """The tree's root; None where there is no tree and none was named. Raises UsageError for a wrong `--root`."""
        try:
            return self._tree.root if self._tree is not None else None
        except UsageError:
            if self.root_option is not None:
                raise
            return None

    @cached_property
    def _tree(self) -> Tree | None:
        tree = self._named_tree()
        if tree is None:
            from patcher.packages import probe

            installed = probe(self.python, None, {}).packages.get("verl")
            if installed is None or installed.location is None:
                return None
            tree = Tree.open(installed.location.parent)
        search_only_outside(tree.root)
        return tree

    def _named_tree(self) -> Tree | None:
        """The tree of `--root`, else the one at or above this folder."""
        return Tree.open(self.root_option) if self.root_option is not None else Tree.around(Path.cwd())

    @cached_property
    def config(self) -> settings.Config:
        """The fork's settings. Raises RecordError for mistakes in its uky-patch.toml."""
        return self.given_config if self.given_config is not None else settings.load(self.tree.root)

    @cached_property
    def environment(self) -> Environment:
        """What is installed under the interpreter that trains, with the assumed versions before it."""
        if self.given_environment is not None:
            return self.given_environment
        from patcher.packages import probe

        return probe(self.python, self.tree.root, self.assume, named=self.config.python)

    @cached_property
    def merged_verl(self) -> MergedVerl | None:
        """A newer verl that was merged while the version file stayed; None also where the tree's version is assumed.

        Git is asked, which takes a tenth of a second.
        """
        stated = self.environment.packages.get("verl")
        if stated is None or stated.origin == "assumed":
            return None
        from patcher.session.merged_verl import merged_verl

        return merged_verl(self.tree.root, self.tree.package, stated.version)

    @property
    def unknown_environment(self) -> Phrase | None:
        """Why it is not known which environment trains; None where it is."""
        if self.environment.known:
            return None
        return phrase(
            "it is not known which environment trains: neither vllm nor torch is installed under {python}",
            python=self.environment.python,
        )

    def require_environment(self) -> None:
        """Raise UsageError where it is not known which environment trains: something is to be written for it."""
        if (why := self.unknown_environment) is not None:
            raise UsageError(why, advice=NAME_IT)

    def command(self, *words: str) -> str:
        """The command line of another command about the same tree: with the options that this call was given."""
        asked = ["--root", str(self.root_option)] if self.root_option is not None else []
        if words[:1] != ("revert",):  # A revert asks for no version and no record.
            asked += ["--python", str(self.python)] if self.python is not None else []
            asked += [part for name, version in self.assume.items() for part in ("--assume", f"{name}=={version}")]
            asked += [part for folder in self.folders for part in ("--patches", str(folder))]
        return shlex.join(("uky-patch", *words, *asked))

    @property
    def versions(self) -> dict[str, str]:
        """Versions by package, those assumed included."""
        return {name: item.version for name, item in self.environment.packages.items()}

    @cached_property
    def record_files(self) -> tuple[Path, ...]:
        """The files of the shipped records, the fork's own, and those of `--patches`."""
        from patcher.records.load import record_files

        self._require_records()
        return record_files((*self.config.patches, *self.folders))

    def _require_records(self) -> None:
        """Raise RecordError for a folder of --patches without a record: most often it is the wrong one."""
        from patcher.records.load import toml_files

        for folder in self.folders:
            if not toml_files(folder, "patches"):
                raise RecordError(
                    phrase("{folder}: there is no record in it", folder=folder),
                    advice=phrase("Name a folder with --patches that holds records: files that end in .toml."),
                )

    @cached_property
    def records(self) -> tuple[Record, ...]:
        """All records that count for this tree, parsed. Raises RecordError for mistakes in them."""
        from patcher.records.load import parse_files

        return parse_files(self.record_files, self.tree.package)

    @cached_property
    def records_anywhere(self) -> tuple[Record, ...]:
        """The records, with the fork's own where a tree is at hand and the shipped ones where there is none."""
        from patcher.records.load import load

        try:
            return self.records
        except UsageError:
            self._require_records()
            return load(self.folders)

    @property
    def has_tree_at_hand(self) -> bool:
        """Whether a verl tree is named or around this folder; the installed one does not count."""
        return self.root_option is not None or self._named_tree() is not None

    @cached_property
    def symptoms(self) -> tuple[Symptom, ...]:
        """The shipped symptoms, and the fork's own where its tree is at hand."""
        from patcher.records.symptom_parse import load_symptoms

        return load_symptoms(self.config.symptoms if self.has_tree_at_hand else ())

    def request(self, ids: tuple[str, ...] = (), tags: tuple[str, ...] = (), skip: tuple[str, ...] = ()) -> Request:
        """Which records are wanted.

        Raises UsageError for an id or tag that there is not, RecordError for one in the fork's own settings, and for a
        record that is off, asked for and not finished.
        """
        from patcher.plan.inputs import Request
        from patcher.records.load import require_finished

        settings.require_known(self.config, [record.id for record in self.records])

        enabled = [name for name in self.config.enable if not name.startswith("tag:")]
        tags = (*tags, *(name.removeprefix("tag:") for name in self.config.enable if name.startswith("tag:")))
        self._known((*ids, *skip))
        unknown = set(tags) - {tag for record in self.records for tag in record.tags}
        if unknown:
            raise UsageError(
                phrase("no record has the tag {tags}", tags=", ".join(sorted(unknown))),
                advice=phrase("Tags are shown by: uky-patch list"),
            )
        disabled = frozenset(self.config.disable)
        request = Request(frozenset(ids), frozenset(tags), frozenset(enabled), disabled, frozenset(skip))
        require_finished(record for record in self.records if not record.enabled and request.wants(record))
        return request

    def record(self, name: str) -> Record:
        """The record with this id. Raises UsageError where there is none, with the nearest names."""
        self._known((name,))
        return next(record for record in self.records if record.id == name)

    def _known(self, ids: tuple[str, ...]) -> None:
        names = [record.id for record in self.records]
        for name in ids:
            if name not in names:
                from difflib import get_close_matches

                near = get_close_matches(name, names, n=3)
                names_near = phrase("Did you mean {names}?", names=", ".join(near))
                advice = names_near if near else phrase("The records are shown by: uky-patch list")
                raise UsageError(phrase("there is no record {name!r}", name=name), advice=advice)

    @cached_property
    def target(self) -> PlanTarget:
        """This machine, as plans are made for it."""
        return PlanTarget(self.environment, self.lookup)

    @cached_property
    def lookup(self) -> SymbolLookup:
        """Look a dotted symbol up in the package that is installed, or in the sources of the version assumed."""
        if self.given_lookup is not None:
            return self.given_lookup

        def ask(symbol: str) -> bool | None:
            package = symbol.partition(".")[0]
            if package not in self._answers:
                self._answers[package] = self._answers_of(package)
            answers = self._answers[package]
            return answers.has(symbol) if answers is not None else None

        return ask

    @cached_property
    def _answers(self) -> dict[str, SymbolAnswers | None]:
        """What `lookup` has asked, by package; None for one that is not there to ask."""
        return {}

    def keep_answers(self) -> None:
        """Keep what `lookup` has found in the sources of releases for the next command."""
        for answers in filter(None, self._answers.values()):
            answers.keep()

    @cached_property
    def tree_has(self) -> TreeLookup:
        """Whether the tree's own package has a dotted name; None of a tree that lies elsewhere, on a node."""
        folder = self.tree.root / self.tree.package
        found: list[Symbols] = []

        def ask(name: str) -> bool | None:
            from patcher.analysis.symbols import Symbols

            if not folder.is_dir():
                return None
            if not found:
                found.append(Symbols(folder))
            return found[0].has(name)

        return ask

    def _answers_of(self, package: str) -> SymbolAnswers | None:
        from patcher.session.symbol_answers import SymbolAnswers

        installed = self.environment.packages.get(package.replace("_", "-"))
        if installed is None:
            return None
        if installed.origin != "assumed":
            return SymbolAnswers(installed.location, lasting=False) if installed.location is not None else None
        from patcher.packages.releases import may_be_had, sources
        from patcher.terminal.progress import progress

        if not may_be_had(installed.name, installed.version):
            return None
        try:
            folder = sources(installed.name, installed.version, progress=progress) / package
        except ReleaseError:
            return None
        return SymbolAnswers(folder, lasting=True) if folder.is_dir() else None
