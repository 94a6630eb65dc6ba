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


class TextIndex:
    """The text of every `.py` file of a package, read when first asked."""

    def __init__(self, package: Path, earlier: TextIndex | None = None) -> None:
        """`earlier` is that of a neighbouring release: what was found there in files that are the same is found."""
        self._package = package
        self._earlier = earlier._found if earlier is not None else _Found()
        self._found: _Found = _Found()
        self._starts: list[int] = []
        self._modules = self._found.modules

    @cached_property
    def whole(self) -> bytes:
        """All files, one after the other."""
        buffer = BytesIO()
        for part in self._read():
            buffer.write(part)
        return buffer.getvalue()

    @property
    def modules(self) -> tuple[str, ...]:
        """Every module of the package that has a file."""
        _ = self.whole
        return tuple(self._modules)

    def mentions(self, word: str) -> tuple[Mention, ...]:
        """Where the word stands by itself, module by module."""
        found = self._found.mentions.get(word)
        if found is None:
            known = self._earlier.mentions.get(word)
            if known is None:
                found = array("Q", self._find(word.encode(), 0, len(self.whole)))
            else:
                same = [one + moved for one in known if (moved := self._moved.get(one >> _PLACE)) is not None]
                new = [one for span in self._changed.values() for one in self._find(word.encode(), *span)]
                found = array("Q", sorted(same + new))
            self._found.mentions[word] = found
        return tuple(Mention(self._modules[one >> _PLACE], one & (1 << _PLACE) - 1) for one in found)

    @cached_property
    def _moved(self) -> dict[int, int]:
        """By the number in the earlier release what to add to a mention there, of the modules that are the same."""
        now = {module: number for number, module in enumerate(self.modules)}
        same = ((number, module) for number, module in enumerate(self._earlier.modules) if module in self._same)
        return {number: (now[module] - number) << _PLACE for number, module in same}

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
                    mentions = (one for one in mentions if one.module in self._changed)
                passing = (one.module for one in mentions if test(self, one, word))
                self._found.passing[key] = next(passing, None)
        return self._found.passing[key] is not None

    @cached_property
    def _same(self) -> frozenset[str]:
        """The modules whose text is that of the earlier release."""
        _ = self.whole
        earlier = self._earlier.digests
        return frozenset(module for module, digest in self._found.digests.items() if earlier.get(module) == digest)

    @cached_property
    def _changed(self) -> dict[str, tuple[int, int]]:
        """The other modules, and where each is in the whole text."""
        return {module: span for module, span in self._spans.items() if module not in self._same}

    @cached_property
    def _spans(self) -> dict[str, tuple[int, int]]:
        """Where in the whole text each module begins and ends."""
        length = len(self.whole)
        spans = zip(self._starts, [*self._starts[1:], length], strict=True)
        return dict(zip(self._modules, spans, strict=True))

    def definitions(self, name: str) -> tuple[tuple[str, str], ...]:
        """The modules whose body defines the name, and how: `class`, `def` or, for an assignment, "".

        All names are gathered at once: that takes no longer than looking for a few of them.
        """
        return tuple(self._defined.get(name, ()))

    @cached_property
    def _defined(self) -> dict[str, list[tuple[str, str]]]:
        found: dict[str, list[tuple[str, str]]] = {}
        for module, (start, end) in self._spans.items():
            known = self._earlier.definitions.get(module) if module in self._same else None
            if known is None:
                known = tuple(
                    ((defined or assigned).decode(), (keyword or b"").decode().removeprefix("async "))
                    for keyword, defined, assigned in _DEFINITION.findall(self.whole, start, end)
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
            self._found.setters[name] = tuple(sorted(setting, key=self._spans.__getitem__))
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
        begin = self._spans[mention.module][0]
        start = self.whole.rfind(b"\n", 0, begin + mention.at) + 1
        return self.whole[start : begin + mention.at]

    def after(self, mention: Mention, word: str, length: int = 80) -> bytes:
        """What follows the word, at most `length` bytes."""
        end = self._spans[mention.module][0] + mention.at + len(word.encode())
        return self.whole[end : end + length]

    def text_of(self, module: str) -> bytes:
        """The text of a module that has a file."""
        start, end = self._spans[module]
        return self.whole[start:end]

    def containing(self, part: bytes) -> Iterator[tuple[str, bytes]]:
        """The modules whose text has the part anywhere, with their text."""
        at = self.whole.find(part)
        while at >= 0:
            number = bisect_right(self._starts, at)
            end = self._starts[number] if number < len(self._starts) else len(self.whole)
            yield self._modules[number - 1], self.whole[self._starts[number - 1] : end]
            at = self.whole.find(part, end)

    def _find(self, word: bytes, start: int, stop: int) -> Iterator[int]:
        whole = self.whole
        at = whole.find(word, start, stop)
        while at >= 0:
            end = at + len(word)
            # A word by itself: `forward` is not found in `forward_batch`. `bytes.find` and a look at the two neighbours
            # is faster than a regular expression with `\b`.
            if whole[at - 1] not in _WORD and (end >= len(whole) or whole[end] not in _WORD):
                number = bisect_right(self._starts, at) - 1
                yield number << _PLACE | at - self._starts[number]
            at = whole.find(word, end, stop)

    def _read(self) -> Iterator[bytes]:
        position = 0
        for folder, folders, names in os.walk(self._package):
            folders.sort()
            for file in sorted(names):
                if file.endswith(".py"):
                    path = os.path.join(folder, file)  # noqa: PTH118
                    try:
                        content = files.read(path, files.SOURCE_BYTES, follow=True)
                    except OSError:
                        continue
                    relative = os.path.relpath(path, self._package.parent)
                    self._starts.append(position)
                    self._modules.append(relative[:-3].replace(os.sep, ".").removesuffix(".__init__"))
                    self._found.digests[self._modules[-1]] = hash(content)
                    position += len(content) + 1
                    yield b"\n" + content


Test = Callable[[TextIndex, Mention, str], bool]
"""Whether a mention of the word is one of those looked for. A function of a module, as it is known by itself."""
