"""The sources of one package: its modules, parsed when first asked for, and a search through all of its text."""

from __future__ import annotations

import ast
import os
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path

from patcher.analysis.answers import Answers
from patcher.analysis.symbols.computed_names import (
    ComputedNames,
    may_compute_names,
    may_put_submodules,
    puts_submodules,
    read_computed_names,
)
from patcher.analysis.symbols.definition import Module, Unknown
from patcher.analysis.symbols.scope import Scope, read_scope
from patcher.worktree import files
from patcher.worktree.python import UnreadableError, parse

_COMPILED = (".so", ".pyd")


class Modules:
    """Modules by dotted name. Each file is read at most once, and only if a question leads to it."""

    def __init__(self, package: Path) -> None:
        self.name = package.name
        self.package = package
        self._found: dict[str, Module | Unknown | None] = {}
        self._trees: dict[str, ast.Module | Unknown] = {}
        self._scopes: dict[str, Scope | Unknown] = {}
        self._answers = Answers()
        self._entries: dict[Path, frozenset[str]] = {}

    def find(self, dotted: str) -> Module | Unknown | None:
        """The module, None if there is none, `Unknown` for a compiled one."""
        if dotted not in self._found:
            self._found[dotted] = self._locate(dotted)
        return self._found[dotted]

    def tree(self, module: Module) -> ast.Module | Unknown:
        """The module's syntax; `Unknown` if this Python cannot parse it."""
        if module.name not in self._trees:
            self._trees[module.name] = _parse(module)
        return self._trees[module.name]

    def text(self, module: Module) -> bytes:
        """The module's source; empty for one without a file."""
        return b"" if module.path is None else files.read(module.path, files.SOURCE_BYTES, follow=True)

    def scope(self, module: Module) -> Scope | Unknown:
        """What the module's body binds."""
        if module.name not in self._scopes:
            tree = self.tree(module)
            self._scopes[module.name] = tree if isinstance(tree, Unknown) else read_scope(tree.body)
        return self._scopes[module.name]

    def computed_names(self, module: Module) -> ComputedNames:
        """The names that the module may bind though no statement of it shows them."""
        return self._answers.once(("computed names", module.name), lambda: self._computed_names(module))

    def _computed_names(self, module: Module) -> ComputedNames:
        tree = self.tree(module)
        if isinstance(tree, Unknown) or module.path is None:
            return ComputedNames()
        found = read_computed_names(tree, self.text(module), module.name)
        stub = module.path.with_suffix(".pyi")
        # A stub beside a module, as torch/_VF.pyi, is written where statements do not show what the module has. What
        # the stub does not mention either is not there.
        if not found.anything and stub.is_file():
            words = re.findall(rb"[A-Za-z_]\w*", files.read(stub, files.SOURCE_BYTES, follow=True))
            return ComputedNames(names=found.names | {word.decode() for word in words})
        return found

    def cannot_bind(self, module: Module, name: str) -> bool:
        """Whether the file's text alone, unparsed, rules out that the module gives the name to a star import."""
        path = module.path
        if path is None or module.name in self._trees:
            return False
        given = self._answers.once(("star names", module.name), lambda: _star_names(path))
        if given is None:
            return False
        if given.listed:
            return not any(f"{quote}{name}{quote}".encode() in given.text for quote in "\"'")
        return name.encode() not in given.text

    def absolute(self, module: Module, written: str) -> str:
        """The dotted name that an import in `module` means by `written`, which may begin with dots."""
        level = len(written) - len(written.lstrip("."))
        if level == 0:
            return written
        parts = module.name.split(".")
        parts = parts[: len(parts) - level + (module.folder is not None)]
        return ".".join([*parts, *filter(None, [written[level:]])])

    def inside(self, dotted: str) -> bool:
        """Whether a dotted name belongs to this package."""
        return dotted == self.name or dotted.startswith(self.name + ".")

    def _locate(self, dotted: str) -> Module | Unknown | None:
        path = self.package.joinpath(*dotted.split(".")[1:])
        # One listing of the folder answers for all names in it: most look-ups are of names that are no modules.
        if dotted != self.name and not self._has_entry(path):
            if self._is_listed_compiled(path) or self._is_in_compiled(dotted):
                return Unknown(f"{dotted} is compiled")
            # `megatron.bridge`: another distribution may have it, as megatron has no `__init__.py`.
            if dotted.count(".") == 1 and not (self.package / "__init__.py").is_file():
                return Unknown(f"other distributions add to {self.name} too")
            above = self.find(dotted.rpartition(".")[0])
            if isinstance(above, Module) and self._answers.once(
                ("puts submodules", above.name), lambda: self._puts_submodules(above)
            ):
                return Unknown(f"{above.name} puts modules under computed names into sys.modules")
            return None
        if (path / "__init__.py").is_file():
            return Module(dotted, path / "__init__.py", path)
        if dotted != self.name and (file := path.with_name(path.name + ".py")).is_file():
            return Module(dotted, file, None)
        if self._is_listed_compiled(path) or self._is_compiled(path) or self._is_in_compiled(dotted):
            return Unknown(f"{dotted} is compiled")  # torch/_C.so beside torch/_C/, which holds stubs alone
        if path.with_name(path.name + ".pyi").is_file():
            return Unknown(f"of {dotted} only a stub is there")
        # A namespace package: a folder without `__init__.py`.
        if path.is_dir():
            return Module(dotted, None, path)
        return None

    def _is_in_compiled(self, dotted: str) -> bool:
        """Whether the module above is compiled: only it knows what it puts into `sys.modules`, as torch._C does."""
        return dotted != self.name and isinstance(self.find(dotted.rpartition(".")[0]), Unknown)

    def _puts_submodules(self, module: Module) -> bool:
        """Whether the module makes others known as modules below it, by names that it computes."""
        tree = self.tree(module) if may_put_submodules(self.text(module)) else None
        return isinstance(tree, ast.Module) and puts_submodules(tree, module.name)

    def _has_entry(self, path: Path) -> bool:
        """Whether its folder, which is listed once, has anything whose name up to the first dot is that."""
        folder = path.parent
        if folder not in self._entries:
            try:
                self._entries[folder] = frozenset(entry.name.partition(".")[0] for entry in folder.iterdir())
            except OSError:
                self._entries[folder] = frozenset()
        return path.name in self._entries[folder]

    def _is_listed_compiled(self, path: Path) -> bool:
        return path.relative_to(self.package.parent).as_posix() in self._compiled

    def _is_compiled(self, path: Path) -> bool:
        return any(path.parent.glob(f"{path.name}.*so")) or any(path.parent.glob(f"{path.name}.*pyd"))

    @cached_property
    def _compiled(self) -> frozenset[str]:
        """Compiled modules that the distribution lists: a folder of sources does not hold them."""
        names = set()
        for record in self.package.parent.glob(f"{self.name}*.dist-info/RECORD"):
            for line in _record(record).splitlines():
                file = line.partition(",")[0]
                if file.endswith(_COMPILED):
                    folder, _, name = file.rpartition("/")
                    names.add(f"{folder}/{name.partition('.')[0]}")
        return frozenset(names)


def _record(path: Path) -> str:
    try:
        return files.read_text(path, files.SOURCE_BYTES, errors="replace", follow=True)
    except OSError:
        return ""


@dataclass(frozen=True, slots=True)
class _StarNames:
    """What decides, without parsing, which names a star import can take from a file."""

    text: bytes
    listed: bool
    """The names stand in it as strings: it begins with the only `__all__`."""


_LITERAL_ALL = re.compile(rb"""\n__all__ = [\[(](?:\s|,|"\w*"|'\w*'|#[^\n]*\n)*[\])](?=[ \t]*(?:#|\n|\Z))""")
"""An `__all__` of strings alone: `[name for name in dir(x)]` and `[...] + others` give more than stands there."""


def _star_names(path: Path) -> _StarNames | None:
    """None where the text alone rules nothing out."""
    try:
        text = files.read(path, files.SOURCE_BYTES, follow=True)
    except OSError:
        return None
    # Names of another module may pass through.
    if b"import *" in text:
        return None
    # A file whose `__all__` is one literal, as generated modules have it, gives what stands there in quotes.
    if text.count(b"__all__") == 1 and (found := _LITERAL_ALL.search(text)):
        return _StarNames(found.group(), listed=True)
    # Without an `__all__` a name must at least stand in the text, unless it is computed: `globals()[f"{x}Tensor"] = 1`.
    return None if b"__getattr__" in text or may_compute_names(text) else _StarNames(text, listed=False)


def _parse(module: Module) -> ast.Module | Unknown:
    if module.path is None:
        return ast.Module(body=[], type_ignores=[])
    try:
        return parse(files.read(module.path, files.SOURCE_BYTES, follow=True))
    except (OSError, UnreadableError) as error:
        return Unknown(f"{module.path} cannot be parsed: {error}")


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


class TextIndex:
    """The text of every `.py` file of a package, read when first asked."""

    def __init__(self, package: Path, earlier: TextIndex | None = None) -> None:
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
            # Neighbouring releases share most of their files. What was found in the same files of the last one is moved
            # to the new offsets; only changed files are searched.
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
        # `def name`, `class name`, `x.name = ...`, and `name: int = 1` indented in a class body.
        if stripped in (b"def", b"async def", b"class") or (
            (stripped.endswith(b".") or (not stripped and before)) and _ASSIGNS.match(self.after(mention, name))
        ):
            return before[:1] in (b" ", b"\t")
        # `setattr(obj, "name", ...)`
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
            # A word by itself: `forward` is not found in `forward_batch`. `bytes.find` and a look at the two neighbours
            # is faster than a regular expression with `\b`.
            if whole[at - 1] not in _WORD and (end >= len(whole) or whole[end] not in _WORD):
                module = self._modules[bisect_right(self._starts, at) - 1]
                yield Mention(module, whole.rfind(b"\n", 0, at) + 1, at)
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
                    self._digests[self._modules[-1]] = hash(content)
                    position += len(content) + 1
                    yield b"\n" + content
