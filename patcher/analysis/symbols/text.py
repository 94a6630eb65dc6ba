"""Where a word stands in all of a package's Python text: one pass of a substring search over the files put together."""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path

from patcher.worktree import files as files_

_WORD = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")

_DEFINITION = re.compile(rb"\n(?:(class|def|async def) +([A-Za-z_]\w*)|([A-Za-z_]\w*)[ \t]*(?::[^=\n]*)?=(?!=))")
"""A class, function or variable at the left margin."""

_ASSIGNS = re.compile(rb"\s*(=[^=]|:[^=]|,[^()]*=[^=])")
"""What follows a name that is set."""


@dataclass(frozen=True, slots=True)
class Mention:
    """A word in the text of a module; `start` is where, in the whole text, its line begins, `at` where it stands."""

    module: str
    start: int
    at: int


@dataclass(frozen=True, slots=True)
class _Found:
    """What is kept of a text for the next release's: hashes and places of modules, and what was looked for."""

    digests: dict[str, int]
    places: dict[str, int]
    mentions: dict[str, tuple[Mention, ...]]


class Text:
    """The text of every `.py` file of a package, read when first asked."""

    def __init__(self, package: Path, earlier: Text | None = None) -> None:
        """`earlier` is that of a neighbouring release: what was found there in files that are the same is found."""
        self._package = package
        self._earlier = earlier._found() if earlier is not None and earlier._whole is not None else _Found({}, {}, {})
        self._whole: bytes | None = None
        self._starts: list[int] = []
        self._modules: list[str] = []
        self._digests: dict[str, int] = {}
        self._mentions: dict[str, tuple[Mention, ...]] = {}
        self._definitions: dict[str, list[tuple[str, str]]] | None = None
        self._setters: dict[str, tuple[str, ...]] = {}

    @property
    def whole(self) -> bytes:
        """All files, one after the other."""
        if self._whole is None:
            buffer = BytesIO()
            for part in self._read():
                buffer.write(part)
            self._whole = buffer.getvalue()
        return self._whole

    @property
    def modules(self) -> tuple[str, ...]:
        """Every module of the package that has a file."""
        _ = self.whole
        return tuple(self._modules)

    def mentions(self, word: str) -> tuple[Mention, ...]:
        """Where the word stands by itself, file by file."""
        if word not in self._mentions:
            known = self._earlier.mentions.get(word)
            end = len(self.whole)
            if known is None:
                found = list(self._find(word.encode(), 0, end))
            else:
                found = [self._shifted(mention) for mention in known if mention.module in self._same]
                found += [one for span in self._changed for one in self._find(word.encode(), *span)]
                found.sort(key=lambda mention: mention.at)
            self._mentions[word] = tuple(found)
        return self._mentions[word]

    @cached_property
    def _same(self) -> frozenset[str]:
        """The modules whose text is that of the earlier release."""
        _ = self.whole
        earlier = self._earlier.digests
        return frozenset(module for module, digest in self._digests.items() if earlier.get(module) == digest)

    @cached_property
    def _changed(self) -> list[tuple[int, int]]:
        """Where the text of the other modules is."""
        ends = [*self._starts[1:], len(self.whole)]
        spans = zip(self._modules, self._starts, ends, strict=True)
        return [(start, end) for module, start, end in spans if module not in self._same]

    @cached_property
    def _places(self) -> dict[str, int]:
        _ = self.whole
        return dict(zip(self._modules, self._starts, strict=True))

    def _shifted(self, mention: Mention) -> Mention:
        by = self._places[mention.module] - self._earlier.places[mention.module]
        return Mention(mention.module, mention.start + by, mention.at + by)

    def _found(self) -> _Found:
        return _Found(self._digests, self._places, self._mentions)

    def definitions(self, name: str) -> tuple[tuple[str, str], ...]:
        """The modules whose body defines the name, and how: `class`, `def` or, for an assignment, "".

        All names are gathered at once: that takes no longer than looking for a few of them.
        """
        if self._definitions is None:
            self._definitions = {}
            for found in _DEFINITION.finditer(self.whole):
                module = self._modules[bisect_right(self._starts, found.start()) - 1]
                keyword, defined, assigned = found.groups()
                how = (keyword or b"").decode().removeprefix("async ")
                self._definitions.setdefault((defined or assigned).decode(), []).append((module, how))
        return tuple(self._definitions.get(name, ()))

    def setters(self, name: str) -> tuple[str, ...]:
        """The modules in which something by that name is defined in a class or set on an object."""
        if name not in self._setters:
            found = (mention.module for mention in self.mentions(name) if self._sets(mention, name))
            self._setters[name] = tuple(dict.fromkeys(found))
        return self._setters[name]

    def _sets(self, mention: Mention, name: str) -> bool:
        before = self.before(mention)
        stripped = before.strip()
        if stripped in (b"def", b"async def", b"class") or (
            (stripped.endswith(b".") or (not stripped and before)) and _ASSIGNS.match(self.after(mention, name))
        ):
            return before[:1] in (b" ", b"\t")
        return stripped.endswith((b'"', b"'")) and b"setattr" in stripped

    def before(self, mention: Mention) -> bytes:
        """The text of its line in front of the word."""
        return self.whole[mention.start : mention.at]

    def after(self, mention: Mention, word: str, length: int = 80) -> bytes:
        """What follows the word, at most `length` bytes."""
        end = mention.at + len(word.encode())
        return self.whole[end : end + length]

    def containing(self, part: bytes) -> Iterator[tuple[str, bytes]]:
        """The modules whose text has the part anywhere, with their text."""
        at = self.whole.find(part)
        while at >= 0:
            number = bisect_right(self._starts, at)
            end = self._starts[number] if number < len(self._starts) else len(self.whole)
            yield self._modules[number - 1], self.whole[self._starts[number - 1] : end]
            at = self.whole.find(part, end)

    def _find(self, word: bytes, start: int, stop: int) -> Iterator[Mention]:
        whole = self.whole
        at = whole.find(word, start, stop)
        while at >= 0:
            end = at + len(word)
            if whole[at - 1] not in _WORD and (end >= len(whole) or whole[end] not in _WORD):
                module = self._modules[bisect_right(self._starts, at) - 1]
                yield Mention(module, whole.rfind(b"\n", 0, at) + 1, at)
            at = whole.find(word, end, stop)

    def _read(self) -> Iterator[bytes]:
        position = 0
        for folder, folders, files in os.walk(self._package):
            folders.sort()
            for file in sorted(files):
                if file.endswith(".py"):
                    path = os.path.join(folder, file)  # noqa: PTH118
                    try:
                        content = files_.read(path, files_.SOURCE_BYTES, follow=True)
                    except OSError:
                        continue
                    relative = os.path.relpath(path, self._package.parent)
                    self._starts.append(position)
                    self._modules.append(relative[:-3].replace(os.sep, ".").removesuffix(".__init__"))
                    self._digests[self._modules[-1]] = hash(content)
                    position += len(content) + 1
                    yield b"\n" + content
