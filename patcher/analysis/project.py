"""The files of the checked tree: found by module name, read when first asked for, each text once."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from patcher.analysis.answers import Answers
from patcher.analysis.kept_readings import KeptReadings
from patcher.analysis.reading import read_syntax, unreadable
from patcher.analysis.summary import FileSummary, summarize
from patcher.analysis.syntax import module_name
from patcher.analysis.uses import FileFacts, Use
from patcher.worktree.files import inside, open_regular
from patcher.worktree.python import MOST_BYTES, UnreadableError, parse
from patcher.worktree.verl_tree import COPIES

_MOST_READ = 10 << 20
"""Bytes of source whose facts and summaries are kept: some 20 times as much memory. All of verl 0.9.1 has 5.5 MB."""
_MOST_HELD = 16 << 20
"""Bytes of files that are kept as they are."""


@dataclass(slots=True, eq=False)
class ReadingCache:
    """What texts say, by path and hash: several projects may share it.

    Facts and summaries are told apart by identity, so they are not dropped one by one but all together, and only where
    nobody is in the middle of anything: see `Project.rest`.
    """

    most: int | None = _MOST_READ
    """How many bytes of source are kept as facts; None: all, for who holds the same trees against many releases."""
    kept: KeptReadings | None = None
    """What earlier commands have read, on the disk."""
    facts: dict[bytes, FileFacts] = field(default_factory=dict)
    summaries: dict[bytes, FileSummary] = field(default_factory=dict)
    size: int = 0
    generation: int = 0
    """How often everything was dropped."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A program of the tree that one of its run scripts starts, or what a script gives to the plain job by name."""

    module: str
    """The module that is started, dotted; "" for the plain job's own."""
    names: tuple[str, ...] = ()
    """Dotted names of classes and functions that its configuration selects."""
    shown: str = ""
    """How findings name it: `recipe/dapo/main_dapo.py (recipe/dapo/run.sh)`."""
    mode: str = ""
    """The mode of the rollout that the script gives the plain job, where it is one of the fork's own."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What of a checkout is part of its jobs beside the package itself."""

    files: tuple[str, ...] = ()
    """Python files, relative."""
    packages: frozenset[str] = frozenset()
    """Names that Python finds in the root of the checkout, when a job is started there."""
    above: str = ""
    """How the paths begin of what lies in the project around the tree: `../../`; "" where nothing does."""
    entries: tuple[Entry, ...] = ()

    @classmethod
    def of(
        cls, files: tuple[str, ...], above: str = "", around: Iterable[str] = (), *, without: Collection[str] = ()
    ) -> Scope:
        """The scope of these files, and of those `around` the tree, whose paths begin with `above`.

        `without` are packages in question, which a folder in the root does not replace.
        """
        # A module is found by its name, so that of two files with one name the tree's own counts.
        own = set(map(module_name, files))
        all_files = (*files, *(file for file in around if module_name(file) not in own))
        tops = {module_name(file).partition(".")[0] for file in all_files}
        return cls(all_files, frozenset(tops - COPIES - sys.stdlib_module_names - set(without)), above)


class _Contents:
    """The bytes of files, the latest of them; what was not found is remembered too."""

    def __init__(self, root: Path, folder_of: Callable[[str], Path]) -> None:
        self._root = root
        self._folder_of = folder_of
        self._held: dict[str, bytes | None] = {}
        self._size = 0
        self._folders: dict[str, bool] = {}

    def has_folder(self, folder: str) -> bool:
        if folder not in self._folders:
            self._folders[folder] = os.path.isdir(f"{self._root}/{folder}")  # noqa: PTH112  # Asked thousands of times.
        return self._folders[folder]

    def read(self, file: str) -> bytes | None:
        if file not in self._held:
            found: bytes | None = None
            # Most names that are asked for are of no file. Then following all links on the way is not needed.
            with suppress(OSError, ValueError):  # A name with a null byte is a ValueError.
                os.lstat(place := f"{self._root}/{file}")
                with open(open_regular(inside(self._folder_of(file), place)), "rb") as opened:  # noqa: PTH123
                    found = opened.read(MOST_BYTES + 1)  # `parse` refuses one that has more.
            cost = 100 + len(found or b"")
            # Everything is dropped at once. Which file is asked for next is not known, and reading one again costs
            # little.
            if self._size + cost > _MOST_HELD:
                self.forget()
            self._size += cost
            self._held[file] = found
        return self._held[file]

    def forget(self) -> None:
        self._held.clear()
        self._size = 0


class Project:
    """The Python files under `root`/`top`, and those beside it that `scope` names.

    `texts` stand in for files on disk (a plan's result, by path).

    What a text says is kept in `known`. Syntax is not kept: it takes much memory, so that one reading of a text gives
    its facts and its summary. With `words`, files that have none of them have no uses.
    """

    def __init__(
        self,
        root: Path,
        texts: Mapping[str, str] | None = None,
        known: ReadingCache | None = None,
        top: str = "verl",
        words: Collection[str] | None = None,
        *,
        scope: Scope | None = None,
    ) -> None:
        self.root = root
        self.top = top
        self.scope = scope if scope is not None else Scope()
        self._siblings: dict[str, Mapping[str, str]] = {}
        self.texts = dict(texts or {})
        self._words = words
        self._known = known if known is not None else ReadingCache()
        self._facts: dict[str, FileFacts | None] = {}
        self._summaries: dict[str, FileSummary | None] = {}
        self._generation = self._known.generation
        self._contents = _Contents(root, self.folder_of)
        self._listed: list[str] = []
        self._mentioning: dict[tuple[bytes, ...], tuple[str, ...]] = {}
        self._variants: dict[frozenset[tuple[str, int]], Project] = {}
        self.concerned: dict[tuple[frozenset[str], str], tuple[Use, ...]] = {}
        """By the packages that are checked against and by file: the uses that are of one of them on some release."""
        self.variant_of: Project | None = None
        """The project whose files these are but for some texts."""
        self.unreadable: dict[str, str] = {}
        """The files that are no Python, of all whose summary was asked for, and why."""
        self.answers = Answers()
        """What other modules work out once for a project."""

    @property
    def origin(self) -> Project:
        """The tree as it is, which this is a variant of, or this one."""
        return self if self.variant_of is None else self.variant_of.origin

    def with_texts(self, texts: Mapping[str, str]) -> Project:
        """The same tree with other texts in the place of some files; the same object again for the same texts.

        What its jobs run is taken from this tree, so that many texts can be tried.
        """
        # The same variant is asked for again and again while records are tried; its facts are kept with it.
        key = frozenset((file, hash(text)) for file, text in texts.items() if self.texts.get(file) != text)
        if not key:
            return self
        if key not in self._variants:
            other = self.rewritten(texts)
            other.variant_of = self
            self._variants[key] = other
        return self._variants[key]

    def rewritten(self, texts: Mapping[str, str]) -> Project:
        """The tree as if the texts were in its files. What its jobs run is found anew, which takes about a second."""
        other = Project(self.root, {**self.texts, **texts}, self._known, self.top, self._words, scope=self.scope)
        other._contents, other._listed = self._contents, self._listed
        return other

    def folder_of(self, file: str) -> Path:
        """The folder that a file must lie in, whatever links say: the tree, or the project around it."""
        above = self.scope.above
        return self.root / above if above and file.startswith(above) else self.root

    def files(self, mentioning: Iterable[str]) -> Iterator[str]:
        """Paths, relative and sorted, of the files whose text has one of the words."""
        words = tuple(word.encode() for word in mentioning)
        if words not in self._mentioning:
            self._mentioning[words] = tuple(
                file
                for file in self._all_files()
                if (content := self.content(file)) is not None and any(word in content for word in words)
            )
        yield from self._mentioning[words]

    def has_code(self) -> bool:
        """Whether there is any Python file but the package's own `__init__.py`."""
        return any(file != f"{self.top}/__init__.py" for file in self._all_files())

    def _all_files(self) -> list[str]:
        if not self._listed:
            self._listed += sorted([*_listed(self.root, self.top), *self.scope.files], key=_in_order)
        return self._listed

    def content(self, file: str) -> bytes | None:
        if file in self.texts:
            return self.texts[file].encode()
        return self._contents.read(file)

    def forget_texts(self) -> None:
        """Have files read anew that are asked for again."""
        self._contents.forget()

    @property
    def generation(self) -> int:
        """Changes when facts and summaries were dropped: what was made of them goes too."""
        return self._known.generation

    def free_memory(self) -> None:
        """Drop all facts and summaries if they take too much memory. No caller may hold any of them.

        A tree of any size is judged in the same memory that way; files are read again when they are asked for again."""
        known = self._known
        if known.most is not None and known.size > known.most:
            known.facts.clear()
            known.summaries.clear()
            known.size = 0
            known.generation += 1

    def keep(self) -> None:
        """Have what was read of the files kept for later commands."""
        if self._known.kept is not None:
            self._known.kept.keep()

    def _stay_current(self) -> None:
        """Drop what was dropped in `known`, which another project may share."""
        if self._generation != self._known.generation:
            self._generation = self._known.generation
            self._facts.clear()
            self._summaries.clear()
            self.concerned.clear()

    def facts(self, file: str) -> FileFacts | None:
        """What a file says; None if there is no such file."""
        self._stay_current()
        if file not in self._facts:
            content = self.content(file)
            self._facts[file] = None if content is None else self._read(file, content)
        return self._facts[file]

    def uses(self, file: str) -> tuple[Use, ...]:
        """What a file uses; nothing where there is no such file."""
        facts = self.facts(file)
        return facts.uses if facts is not None else ()

    def summary(self, file: str) -> FileSummary | None:
        """The skeleton of a file, empty if it is no Python; None if there is no such file."""
        self._stay_current()
        if file not in self._summaries:
            content = self.content(file)
            found = self._summaries[file] = None if content is None else self._summarized(file, content)
            if found is not None and found.problem:
                self.unreadable[file] = found.problem
        return self._summaries[file]

    def owns(self, dotted: str) -> bool:
        """Whether a dotted name is one of the tree: of its package, or of what lies beside that."""
        package = dotted.partition(".")[0]
        return package == self.top or package in self.scope.packages

    def renamed(self, name: str) -> str:
        """A dotted name or path of verl in this tree, whose package may have another name."""
        return f"{self.top}{name.removeprefix('verl')}" if name.startswith(("verl.", "verl/")) else name

    def _siblings_of(self, file: str) -> Mapping[str, str]:
        """The modules in a file's folder by the names under which a program that is run from there imports them."""
        folder = file.rpartition("/")[0]
        # In the package itself an import without dots is always one from outside.
        if not folder or not self.scope.files or folder.partition("/")[0] == self.top:
            return {}
        if folder not in self._siblings:
            prefix = f"{folder}/"
            rests = [other[len(prefix) :] for other in self.scope.files if other.startswith(prefix)]
            names = {rest.partition("/")[0].removesuffix(".py") for rest in rests}
            names -= {self.top, "__init__", *self.scope.packages, *COPIES, *sys.stdlib_module_names}
            self._siblings[folder] = {name: module_name(f"{prefix}{name}") for name in names}
        return self._siblings[folder]

    def _syntax(self, file: str, content: bytes) -> ast.Module | UnreadableError:
        try:
            return _with_siblings(parse(content), self._siblings_of(file))
        except UnreadableError as error:
            return error

    def _key(self, file: str, content: bytes) -> bytes:
        """What tells a text in a file from all others, in this process and in later ones."""
        digest = blake2b(content, digest_size=20)
        digest.update(repr((file, sorted(self._siblings_of(file)))).encode(errors="replace"))
        return digest.digest()

    def _read(self, file: str, content: bytes) -> FileFacts:
        known, concerns = self._known, self._concerns(content)
        text = self._key(file, content)
        key = text + (b"uses" if concerns else b"names")
        if key not in known.facts:
            known.size += 500 + len(content)
            found = known.kept.get(key, FileFacts) if known.kept is not None else None
            if found is None:
                tree = self._syntax(file, content)
                if isinstance(tree, UnreadableError):
                    found = unreadable(file, tree)
                else:
                    found = read_syntax(tree, content, file, uses=concerns)
                if text not in known.summaries:
                    self._keep_summary(text, file, tree)
                if known.kept is not None:
                    known.kept.put(key, found)
            known.facts[key] = found
        return known.facts[key]

    def _summarized(self, file: str, content: bytes) -> FileSummary:
        known, key = self._known, self._key(file, content)
        if key not in known.summaries:
            known.size += 500 + len(content)
            found = known.kept.get(key, FileSummary) if known.kept is not None else None
            if found is not None:
                known.summaries[key] = found
            else:
                self._keep_summary(key, file, self._syntax(file, content))
        return known.summaries[key]

    def _keep_summary(self, key: bytes, file: str, tree: ast.Module | UnreadableError) -> None:
        empty = ast.Module(body=[], type_ignores=[])
        try:
            found = summarize(empty if isinstance(tree, UnreadableError) else tree, file)
        except RecursionError:
            found = summarize(empty, file)
        found.problem = str(tree) if isinstance(tree, UnreadableError) else ""
        self._known.summaries[key] = found
        if self._known.kept is not None:
            self._known.kept.put(key, found)

    def _concerns(self, content: bytes) -> bool:
        """Whether a text may have uses of a package in question."""
        return self._words is None or any(word.encode() in content for word in self._words)

    def may_reexport(self, dotted: str) -> bool:
        """Whether a module may pass on something of a package that is checked against.

        That is a module whose text has one of the words, or a package, which re-exports what its modules define.
        """
        return self.answers.once(("may re-export", dotted), lambda: self._may_reexport(dotted))

    def _may_reexport(self, dotted: str) -> bool:
        file = next((file for file in self.files_of(dotted) if self.content(file) is not None), None)
        # A package hands on what its modules define, whatever words its `__init__.py` has.
        return file is None or file.endswith("/__init__.py") or self._concerns(self.content(file) or b"")

    def files_of(self, dotted: str) -> Iterator[str]:
        """The files that a module of this dotted name may be, in the order in which they count: `a/b.py`,
        `a/b/__init__.py`, and the same in the project around the tree."""
        for path in self._paths(dotted):
            yield from (f"{path}.py", f"{path}/__init__.py")

    def module(self, dotted: str) -> FileFacts | None:
        """The facts of a module of the tree by its dotted name."""
        return next((found for file in self.files_of(dotted) if (found := self.facts(file)) is not None), None)

    def has_module(self, dotted: str) -> bool:
        """Whether there is such a module or package, without reading what it says."""
        return self.answers.once(("has module", dotted), lambda: self._has_module(dotted))

    def _has_module(self, dotted: str) -> bool:
        return any(self.content(file) is not None for file in self.files_of(dotted)) or any(
            map(self._contents.has_folder, self._paths(dotted))
        )

    def _paths(self, dotted: str) -> tuple[str, ...]:
        path = dotted.replace(".", "/")
        around = self.scope.above and path.partition("/")[0] != self.top
        return (path, self.scope.above + path) if around else (path,)


def _listed(root: Path, top: str) -> list[str]:
    """The Python files below `root`/`top`, folder by folder, relative."""
    found = []
    base = f"{os.fspath(root)}/"
    for folder, _, files in os.walk(f"{base}{top}"):
        found += [f"{folder}/{file}".removeprefix(base) for file in files if file.endswith(".py")]
    return found


def _in_order(file: str) -> str:
    """Folder by folder: the separator sorts before every other character."""
    return file.replace("/", "\0")


def _with_siblings(tree: ast.Module, siblings: Mapping[str, str]) -> ast.Module:
    """The syntax with imports of modules beside the file under their names from the root on.

    `recipe/x/main.py` that is run as a file may say `from trainer import T` for `recipe/x/trainer.py`, as Python looks
    into the folder of the program that it runs.
    """
    for node in ast.walk(tree) if siblings else ():
        match node:
            case ast.ImportFrom(module=str(module), level=0) if (top := module.partition(".")[0]) in siblings:
                node.module = siblings[top] + module[len(top) :]
            case ast.Import(names=names):
                for alias in names:
                    # `import a.b` binds `a`, which no single import under another name does; few programs write it.
                    if alias.name in siblings:
                        alias.name, alias.asname = siblings[alias.name], alias.asname or alias.name
    return tree
