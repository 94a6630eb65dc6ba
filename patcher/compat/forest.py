"""The tree's files as facts: found by module name, read when first asked for, each text once."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from patcher.compat.facts import FileFacts
from patcher.compat.model import Use
from patcher.compat.outlining import Outline, draw, lighten
from patcher.compat.reading import read_syntax, unreadable
from patcher.compat.syntax import UNPARSEABLE, parsed
from patcher.worktree import files


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What texts say, by path and hash: several forests may share it."""

    facts: dict[tuple[str, int], FileFacts] = field(default_factory=dict)
    outlines: dict[tuple[str, int], Outline] = field(default_factory=dict)


class Forest:
    """The Python files under `root`/`top`; `texts` stand in for files on disk (a plan's result, by path).

    What a text says is kept in `known`. Syntax is not kept: it takes much memory, so that one reading of a text gives
    its facts and its outline. With `words`, files that have none of them have no uses. `lightly`: outlines keep text
    in the place of syntax, for those who look at many trees.
    """

    def __init__(
        self,
        root: Path,
        texts: Mapping[str, str] | None = None,
        known: Known | None = None,
        top: str = "verl",
        words: Collection[str] | None = None,
        *,
        lightly: bool = False,
    ) -> None:
        self.root = root
        self.top = top
        self.texts = dict(texts or {})
        self._words, self._lightly = words, lightly
        self._known = known if known is not None else Known()
        self._facts: dict[str, FileFacts | None] = {}
        self._outlines: dict[str, Outline | None] = {}
        self._bytes: dict[str, bytes | None] = {}
        self._listed: list[str] = []
        self._variants: dict[frozenset[tuple[str, int]], Forest] = {}
        self.concerned: dict[tuple[frozenset[str], str], tuple[Use, ...]] = {}
        """By the packages that are checked against and by file: the uses that are of one of them on some release."""
        self.outlined = True
        """Whether a file that is read for its facts gives its outline too; False where few will be asked for."""
        self.variant_of: Forest | None = None
        """The forest whose files these are but for some texts."""
        self.kept: dict[str, object] = {}
        """What others work out once a forest, by their names; it may not refer to the forest."""

    @property
    def origin(self) -> Forest:
        """The tree as it is, which this is a variant of, or this one."""
        return self if self.variant_of is None else self.variant_of.origin

    def with_texts(self, texts: Mapping[str, str]) -> Forest:
        """The same tree with other texts in the place of some files; the same object again for the same texts."""
        key = frozenset((file, hash(text)) for file, text in texts.items() if self.texts.get(file) != text)
        if not key:
            return self
        if key not in self._variants:
            other = Forest(
                self.root, {**self.texts, **texts}, self._known, self.top, self._words, lightly=self._lightly
            )
            other._bytes, other._listed = self._bytes, self._listed
            other.variant_of, other.outlined = self, self.outlined
            self._variants[key] = other
        return self._variants[key]

    def files(self, mentioning: Iterable[str]) -> Iterator[str]:
        """Paths, relative and sorted, of the files whose text has one of the words."""
        words = [word.encode() for word in mentioning]
        if not self._listed:
            paths = sorted((self.root / self.top).rglob("*.py"))
            self._listed += [path.relative_to(self.root).as_posix() for path in paths]
        for file in self._listed:
            content = self.content(file)
            if content is not None and any(word in content for word in words):
                yield file

    def content(self, file: str) -> bytes | None:
        if file in self.texts:
            return self.texts[file].encode()
        if file not in self._bytes:
            try:
                self._bytes[file] = files.read(files.inside(self.root, self.root / file), files.SOURCE_BYTES)
            except OSError:
                self._bytes[file] = None
        return self._bytes[file]

    def facts(self, file: str) -> FileFacts | None:
        """What a file says; None if there is no such file."""
        if file not in self._facts:
            content = self.content(file)
            self._facts[file] = None if content is None else self._read(file, content)
        return self._facts[file]

    def outline(self, file: str) -> Outline | None:
        """The skeleton of a file, empty if it is no Python; None if there is no such file."""
        if file not in self._outlines:
            content = self.content(file)
            self._outlines[file] = None if content is None else self._drawn(file, content)
        return self._outlines[file]

    def _read(self, file: str, content: bytes) -> FileFacts:
        key = (file, hash(content))
        if key not in self._known.facts:
            try:
                tree = parsed(content)
            except UNPARSEABLE as error:
                self._known.facts[key] = unreadable(file, error)
            else:
                self._known.facts[key] = read_syntax(tree, content, file, uses=self._concerns(content))
                if self.outlined:
                    self._outlined(key, tree, content)
        return self._known.facts[key]

    def _drawn(self, file: str, content: bytes) -> Outline:
        key = (file, hash(content))
        if key not in self._known.outlines:
            try:
                tree = parsed(content)
            except UNPARSEABLE:
                tree = ast.Module(body=[], type_ignores=[])
            self._outlined(key, tree, content)
        return self._known.outlines[key]

    def _outlined(self, key: tuple[str, int], tree: ast.Module, content: bytes) -> None:
        if key not in self._known.outlines:
            outline = self._known.outlines[key] = draw(tree, key[0])
            if self._lightly:
                lighten(outline, content)

    def _concerns(self, content: bytes) -> bool:
        """Whether a text may have uses of a package in question."""
        return self._words is None or any(word.encode() in content for word in self._words)

    def may_hand_on(self, dotted: str) -> bool:
        """Whether something of a package in question may come out of a module.

        It has one of the words, or is a package, which hands on what its modules define.
        """
        content = self.content(f"{dotted.replace('.', '/')}.py")
        return content is None or self._concerns(content)

    def module(self, dotted: str) -> FileFacts | None:
        """The facts of a module of the tree by its dotted name."""
        path = dotted.replace(".", "/")
        return self.facts(f"{path}.py") or self.facts(f"{path}/__init__.py")

    def has_module(self, dotted: str) -> bool:
        """Whether there is such a module or package, without reading what it says."""
        path = dotted.replace(".", "/")
        return (
            self.content(f"{path}.py") is not None
            or self.content(f"{path}/__init__.py") is not None
            or (self.root / path).is_dir()
        )
