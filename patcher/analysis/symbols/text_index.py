"""A search through the text of every module of a package, which finds a word without parsing.

Neighbouring releases share most of their files, so what was found in those of one is known for the next.
"""

from __future__ import annotations

import os
import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from io import BytesIO
from pathlib import Path

from patcher.worktree import files

_WORD = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")

_DEFINITION = re.compile(rb"\n(?:(class|def|async def) +([A-Za-z_]\w*)|([A-Za-z_]\w*)[ \t]*(?::[^=\n]*)?=(?!=))")
"""A class, function or variable at the left margin."""

_ASSIGNS = re.compile(rb"\s*(=[^=]|:[^=]|,[^()]*=[^=])")
"""What follows a name that is set."""


_PLACE = 32
"""Bits of a place in a module."""


@dataclass(frozen=True, slots=True)
class Mention:
    """A word in the text of a module: `at` is where it stands there."""

    module: str
    at: int


@dataclass(frozen=True, slots=True)
class _Found:
    """What was found in the modules of one release."""

    modules: list[str] = field(default_factory=list)
    digests: dict[str, int] = field(default_factory=dict)
    mentions: dict[str, array[int]] = field(default_factory=dict)
    """Of each word, the number of the module and where it stands there, in one integer: there are 100,000."""
    definitions: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """Of each module, the names that its body defines, and how."""
    setters: dict[str, tuple[str, ...]] = field(default_factory=dict)
    passing: dict[tuple[Test, str], str | None] = field(default_factory=dict)
    """A module in which a mention of the word passes the test; None if there is none."""
    containing: dict[bytes, set[str]] = field(default_factory=dict)
    """The modules that have a part of a text."""


class TextIndex:
    """The text of every `.py` file of a package, read when first asked.

    What is held is the text of the modules that the earlier release does not have as they are, one after the other. Of
    the others most is known from there; the few that are asked for are read again.
    """

    def __init__(self, package: Path, earlier: TextIndex | None = None) -> None:
        """`earlier` is that of a neighbouring release: what was found there in files that are the same is found."""
        self._package = package
        self._earlier = earlier._found if earlier is not None else _Found()
        self._found: _Found = _Found()
        self._files: dict[str, str] = {}
        """Of each module its file."""
        self._spans: dict[str, tuple[int, int]] = {}
        """Where in the text each module begins and ends that is not as it was."""
        self._held: dict[str, bytes] = {}
        """The texts of others, as far as mentions in them were looked at."""

    @cached_property
    def _text(self) -> bytes:
        """The modules that are not as in the earlier release, one after the other."""
        buffer = BytesIO()
        for file, module in self._listed():
            try:
                content = files.read(file, files.SOURCE_BYTES, follow=True)
            except OSError:
                continue
            self._files[module] = file
            digest = self._found.digests[module] = hash(content)
            if self._earlier.digests.get(module) != digest:
                begin = buffer.tell()
                buffer.write(b"\n" + content)  # What begins a line follows the end of another.
                self._spans[module] = (begin, buffer.tell())
        self._found.modules.extend(self._files)
        return buffer.getvalue()

    def _listed(self) -> Iterator[tuple[str, str]]:
        """The files, folder by folder, and the names of their modules."""
        for folder, folders, names in os.walk(self._package):
            folders.sort()
            for file in sorted(names):
                if file.endswith(".py"):
                    path = os.path.join(folder, file)  # noqa: PTH118
                    relative = os.path.relpath(path, self._package.parent)
                    yield path, relative[:-3].replace(os.sep, ".").removesuffix(".__init__")

    @cached_property
    def _numbers(self) -> dict[str, int]:
        """The modules in order, numbered."""
        _ = self._text
        return {module: number for number, module in enumerate(self._found.modules)}

    @property
    def modules(self) -> tuple[str, ...]:
        """Every module of the package that has a file."""
        return tuple(self._numbers)

    @cached_property
    def _same(self) -> frozenset[str]:
        """The modules whose text is that of the earlier release."""
        return frozenset(module for module in self._numbers if module not in self._spans)

    def text_of(self, module: str) -> bytes:
        """The text of a module that has a file, an empty line before it."""
        whole = self._text
        if module in self._spans:
            begin, end = self._spans[module]
            return whole[begin:end]
        try:
            return b"\n" + files.read(self._files[module], files.SOURCE_BYTES, follow=True)
        except OSError:  # It has gone since.
            return b"\n"

    def _place_of(self, mention: Mention) -> tuple[bytes, int, int]:
        """A text that holds the mention's module, where the mention stands in it, and where the module ends."""
        module = mention.module
        if module in self._spans:
            begin, end = self._spans[module]
            return self._text, begin + mention.at, end
        if module not in self._held:
            self._held[module] = self.text_of(module)
        return self._held[module], mention.at, len(self._held[module])

    def mentions(self, word: str) -> tuple[Mention, ...]:
        """Where the word stands by itself, module by module."""
        found = self._found.mentions.get(word)
        if found is None:
            known = self._earlier.mentions.get(word)
            if known is not None:
                same = [one + moved for one in known if (moved := self._moved.get(one >> _PLACE)) is not None]
            else:
                same = [
                    self._numbers[module] << _PLACE | at
                    for module in self._same
                    for at in _places(word.encode(), self.text_of(module))
                ]
            found = self._found.mentions[word] = array("Q", sorted([*same, *self._find_new(word.encode())]))
        modules = self._found.modules
        return tuple(Mention(modules[one >> _PLACE], one & (1 << _PLACE) - 1) for one in found)

    @cached_property
    def _moved(self) -> dict[int, int]:
        """By the number in the earlier release what to add to a mention there, of the modules that are the same."""
        now = self._numbers
        same = ((number, module) for number, module in enumerate(self._earlier.modules) if module in self._same)
        return {number: (now[module] - number) << _PLACE for number, module in same}

    def _find_new(self, word: bytes) -> Iterator[int]:
        """The mentions in modules that are not as they were."""
        text = self._text
        modules, begins = [*self._spans], [begin for begin, _ in self._spans.values()]
        for at in _places(word, text):
            index = bisect_right(begins, at) - 1
            yield self._numbers[modules[index]] << _PLACE | at - begins[index]

    def some_mention(self, word: str, test: Test) -> bool:
        """Whether a mention of the word passes a test, which may look at the text of that module alone."""
        key = (test, word)
        if key not in self._found.passing:
            mentions: Iterable[Mention] = self.mentions(word)
            module = self._earlier.passing.get(key)
            if module is not None and module in self._same:
                self._found.passing[key] = module
            else:
                # None passed in the earlier release: one that passes now is in a module that has changed.
                if module is None and key in self._earlier.passing:
                    mentions = (one for one in mentions if one.module in self._spans)
                passing = (one.module for one in mentions if test(self, one, word))
                self._found.passing[key] = next(passing, None)
        return self._found.passing[key] is not None

    def definitions(self, name: str) -> tuple[tuple[str, str], ...]:
        """The modules whose body defines the name, and how: `class`, `def` or, for an assignment, "".

        All names are gathered at once: that takes no longer than looking for a few of them.
        """
        return tuple(self._defined.get(name, ()))

    @cached_property
    def _defined(self) -> dict[str, list[tuple[str, str]]]:
        found: dict[str, list[tuple[str, str]]] = {}
        for module in self.modules:
            known = self._earlier.definitions.get(module) if module in self._same else None
            if known is None:
                known = tuple(
                    ((defined or assigned).decode(), (keyword or b"").decode().removeprefix("async "))
                    for keyword, defined, assigned in _DEFINITION.findall(self.text_of(module))
                )
            self._found.definitions[module] = known
            for name, how in known:
                found.setdefault(name, []).append((module, how))
        return found

    def setters(self, name: str) -> tuple[str, ...]:
        """The modules in which something by that name is defined in a class or set on an object."""
        if name not in self._found.setters:
            known = self._earlier.setters.get(name)
            same = self._same if known is not None else frozenset()
            setting = {module for module in known or () if module in same}
            for mention in self.mentions(name):
                if mention.module not in same and mention.module not in setting and self._sets(mention, name):
                    setting.add(mention.module)
            self._found.setters[name] = tuple(sorted(setting, key=self._numbers.__getitem__))
        return self._found.setters[name]

    def _sets(self, mention: Mention, name: str) -> bool:
        before = self.before(mention)
        stripped = before.strip()
        # `def name`, `class name`, `x.name = ...`, and `name: int = 1` indented in a class body.
        if stripped in (b"def", b"async def", b"class") or (
            (stripped.endswith(b".") or (not stripped and before)) and _ASSIGNS.match(self.after(mention, name))
        ):
            return before[:1] in (b" ", b"\t")
        # `setattr(obj, "name", ...)`
        return stripped.endswith((b'"', b"'")) and b"setattr" in stripped

    def before(self, mention: Mention) -> bytes:
        """The text of its line in front of the word."""
        text, at, _ = self._place_of(mention)
        return text[text.rfind(b"\n", 0, at) + 1 : at]

    def after(self, mention: Mention, word: str, length: int = 80) -> bytes:
        """What follows the word, at most `length` bytes."""
        text, at, end = self._place_of(mention)
        begin = at + len(word.encode())
        return text[begin : min(begin + length, end)]

    def containing(self, part: bytes) -> Iterator[tuple[str, bytes]]:
        """The modules whose text has the part anywhere, with their text."""
        known = self._earlier.containing.get(part)
        found = set()
        for module in self.modules:
            if known is None or module in known or module not in self._same:
                text = self.text_of(module)
                if part in text:
                    found.add(module)
                    yield module, text
        self._found.containing[part] = found


def _places(word: bytes, text: bytes) -> Iterator[int]:
    """Where the word stands by itself in a text that begins with an empty line."""
    at = text.find(word)
    while at >= 0:
        end = at + len(word)
        # `forward` is not found in `forward_batch`. `bytes.find` and a look at the two neighbours is faster than a
        # regular expression with `\b`.
        if text[at - 1] not in _WORD and (end >= len(text) or text[end] not in _WORD):
            yield at
        at = text.find(word, end)


Test = Callable[[TextIndex, Mention, str], bool]
"""Whether a mention of the word is one of those looked for. A function of a module, as it is known by itself."""
