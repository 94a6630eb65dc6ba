"""The modules of one package's sources, found and parsed when first asked for."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from patcher.analysis.symbols.definition import Module, Unknown
from patcher.analysis.symbols.dynamic import binds_dynamically
from patcher.analysis.symbols.scope import Scope, read_scope
from patcher.worktree import files
from patcher.worktree.python import UnreadableError, parse

_COMPILED = (".so", ".pyd")


class Modules:
    """Modules by dotted name. Each file is read at most once, and only if a question leads to it."""

    def __init__(self, package: Path) -> None:
        self.name = package.name
        self._package = package
        self._found: dict[str, Module | Unknown | None] = {}
        self._trees: dict[str, ast.Module | Unknown] = {}
        self._scopes: dict[str, Scope | Unknown] = {}
        self._given: dict[str, _Given | None] = {}
        self._dynamic: dict[str, bool] = {}
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

    def scope(self, module: Module) -> Scope | Unknown:
        """What the module's body binds."""
        if module.name not in self._scopes:
            tree = self.tree(module)
            self._scopes[module.name] = tree if isinstance(tree, Unknown) else read_scope(tree.body)
        return self._scopes[module.name]

    def binds_dynamically(self, module: Module) -> bool:
        """Whether a name may be there that no statement of the module shows."""
        if module.name not in self._dynamic:
            tree = self.tree(module)
            text = module.path.read_bytes() if module.path is not None else b""
            self._dynamic[module.name] = isinstance(tree, ast.Module) and binds_dynamically(tree, text)
        return self._dynamic[module.name]

    def cannot_bind(self, module: Module, name: str) -> bool:
        """Whether the file's text alone, unparsed, rules out that the module gives the name to a star import."""
        if module.path is None or module.name in self._trees:
            return False
        if module.name not in self._given:
            self._given[module.name] = _given(module.path)
        given = self._given[module.name]
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
        path = self._package.joinpath(*dotted.split(".")[1:])
        if dotted != self.name and not self._has_entry(path):
            if self._is_listed_compiled(path) or self._is_in_compiled(dotted):
                return Unknown(f"{dotted} is compiled")
            return None
        if (path / "__init__.py").is_file():
            return Module(dotted, path / "__init__.py", path)
        if dotted != self.name and (file := path.with_name(path.name + ".py")).is_file():
            return Module(dotted, file, None)
        if self._is_listed_compiled(path) or self._is_compiled(path) or self._is_in_compiled(dotted):
            return Unknown(f"{dotted} is compiled")  # torch/_C.so beside torch/_C/, which holds stubs alone
        if path.is_dir():
            return Module(dotted, None, path)
        return None

    def _is_in_compiled(self, dotted: str) -> bool:
        """Whether the module above is compiled: only it knows what it puts into `sys.modules`, as torch._C does."""
        return dotted != self.name and isinstance(self.find(dotted.rpartition(".")[0]), Unknown)

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
        return path.relative_to(self._package.parent).as_posix() in self._compiled

    def _is_compiled(self, path: Path) -> bool:
        return any(path.parent.glob(f"{path.name}.*so")) or any(path.parent.glob(f"{path.name}.*pyd"))

    @cached_property
    def _compiled(self) -> frozenset[str]:
        """Compiled modules that the distribution lists: a folder of sources does not hold them."""
        names = set()
        for record in self._package.parent.glob(f"{self.name}*.dist-info/RECORD"):
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
class _Given:
    """What decides, without parsing, which names a star import can take from a file."""

    text: bytes
    listed: bool
    """The names stand in it as strings: it begins with the only `__all__`."""


def _given(path: Path) -> _Given | None:
    """None where the text alone rules nothing out."""
    try:
        text = files.read(path, files.SOURCE_BYTES, follow=True)
    except OSError:
        return None
    if b"import *" in text:
        return None
    if text.count(b"__all__") == 1 and (found := re.search(rb"\n__all__ = [\[(]", text)):
        return _Given(text[found.start() :], listed=True)
    return None if b"__getattr__" in text else _Given(text, listed=False)


def _parse(module: Module) -> ast.Module | Unknown:
    if module.path is None:
        return ast.Module(body=[], type_ignores=[])
    try:
        return parse(files.read(module.path, files.SOURCE_BYTES, follow=True))
    except (OSError, UnreadableError) as error:
        return Unknown(f"{module.path} cannot be parsed: {error}")
