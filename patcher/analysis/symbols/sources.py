"""The modules of one package by dotted name, each read when first asked for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

from patcher.analysis.answers import Answers
from patcher.analysis.bindings import absolute_module
from patcher.analysis.kept_readings import KeptReadings
from patcher.analysis.symbols.computed_names import may_compute, may_compute_names, may_put_submodules, puts_submodules
from patcher.analysis.symbols.definition import Module, Unknown
from patcher.analysis.symbols.module_summary import ModuleSummary
from patcher.analysis.symbols.scope import Scope, literal_table, read_scope
from patcher.analysis.symbols.skeleton import without_bodies
from patcher.worktree import files
from patcher.worktree.python import UnreadableError, parse

_COMPILED = (".so", ".pyd")


class Modules:
    """Modules by dotted name. Each file is read at most once, and only if a question leads to it."""

    def __init__(self, package: Path, earlier: Modules | None = None, kept: KeptReadings | None = None) -> None:
        """`earlier` are those of a neighbouring release: a module with the same text there is not read again.

        `kept` is what earlier commands have read of the package, on the disk."""
        self.name = package.name
        self.package = package
        self._found: dict[str, Module | Unknown | None] = {}
        self._parsed: dict[str, ModuleSummary | Unknown] = {}
        # Its modules alone, not what it has of the release before; each is let go of once it is looked at here.
        self._earlier = dict(earlier._parsed) if earlier is not None else {}
        self._kept = kept
        self._asked: dict[bytes, tuple[ModuleSummary, int]] = {}
        """By the key on the disk, and how much was known when it was read."""
        self._answers = Answers()
        self._entries: dict[Path, frozenset[str]] = {}

    def find(self, dotted: str) -> Module | Unknown | None:
        """The module, None if there is none, `Unknown` for a compiled one."""
        if dotted not in self._found:
            self._found[dotted] = self._locate(dotted)
        return self._found[dotted]

    def text(self, module: Module) -> bytes:
        """The module's source; empty for one without a file."""
        return b"" if module.path is None else files.read(module.path, files.SOURCE_BYTES, follow=True)

    def scope(self, module: Module) -> Scope | Unknown:
        """What the module's body binds."""
        summary = self.summary(module)
        return summary if isinstance(summary, Unknown) else summary.scope

    def summary(self, module: Module) -> ModuleSummary | Unknown:
        """What is kept of the module; `Unknown` if this Python cannot parse it."""
        if module.name not in self._parsed:
            self._parsed[module.name] = self._read(module)
        return self._parsed[module.name]

    def holding(self, module: str) -> ModuleSummary:
        """The summary of the module that a definition is in."""
        found = self._parsed[module]
        assert isinstance(found, ModuleSummary)
        return found

    def _read(self, module: Module) -> ModuleSummary | Unknown:
        try:
            text, known = self.text(module), self._earlier.pop(module.name, None)
            if isinstance(known, ModuleSummary) and known.text == text:
                return known
            key = blake2b(module.name.encode() + b"\n" + text, digest_size=20).digest()
            found = self._kept.get(key, tuple) if self._kept is not None else None
            summary = ModuleSummary(text, *found) if found is not None else summarize(text)
        except (OSError, UnreadableError) as error:
            return Unknown(f"{module.path} cannot be parsed: {error}")
        self._asked[key] = summary, len(summary.known) if found is not None else -1
        return summary

    def keep(self) -> None:
        """Have what was read, and asked, of the modules kept for later commands."""
        if self._kept is None:
            return
        for key, (summary, before) in self._asked.items():
            if len(summary.known) > before:
                self._kept.put(key, (summary.scope, summary.exported, summary.known))
        self._kept.keep()

    def may_compute(self, module: Module, name: str) -> bool:
        """Whether the module may bind the name though no statement of it shows that."""
        summary = self.summary(module)
        if isinstance(summary, Unknown) or module.path is None:
            return False
        # A stub beside a module, as torch/_VF.pyi, is written where statements do not show what the module has. What
        # the stub does not mention either is not there.
        return may_compute(summary, module.name, name) or name in self._answers.once(
            ("stub", module.name), lambda: _words_of_stub(module)
        )

    def cannot_bind(self, module: Module, name: str) -> bool:
        """Whether the file's text alone, unparsed, rules out that the module gives the name to a star import."""
        path = module.path
        if path is None or module.name in self._parsed:
            return False
        given = self._answers.once(("star names", module.name), lambda: _star_names(path))
        if given is None:
            return False
        if given.listed:
            return not any(f"{quote}{name}{quote}".encode() in given.text for quote in "\"'")
        return name.encode() not in given.text

    def absolute(self, module: Module, written: str) -> str:
        """The dotted name that an import in `module` means by `written`, which may begin with dots."""
        package = module.name if module.folder is not None else module.name.rpartition(".")[0]
        return absolute_module(package, written)

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
            return self.served_by_root(dotted)
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

    def served_by_root(self, dotted: str) -> Unknown | None:
        """A module without a file that the package's own `__init__.py` serves under an earlier name; None for others.

        _create_module_alias(f"{__name__}.tokenization_utils", ".tokenization_utils_sentencepiece")
        sys.meta_path.append(Finder())      # image_processing_x_fast is image_processing_x
        """
        text = self._serving
        if not text or dotted == self.name:
            return None
        folder, _, name = dotted.rpartition(".")
        earlier, _, added = name.rpartition("_")
        named = re.search(rb"[\"'.]%b[\"']" % re.escape(name.encode()), text) is not None
        if named or (earlier and f"_{added}".encode() in text and isinstance(self.find(f"{folder}.{earlier}"), Module)):
            return Unknown(f"{self.name} serves modules under earlier names")
        return None

    @cached_property
    def _serving(self) -> bytes:
        """The package's own `__init__.py`, if it may serve modules that are no files; else nothing."""
        root = self.find(self.name)
        text = self.text(root) if isinstance(root, Module) else b""
        return text if b"sys.meta_path" in text or b"sys.modules[" in text else b""

    def _is_in_compiled(self, dotted: str) -> bool:
        """Whether the module above is compiled: only it knows what it puts into `sys.modules`, as torch._C does."""
        return dotted != self.name and isinstance(self.find(dotted.rpartition(".")[0]), Unknown)

    def _puts_submodules(self, module: Module) -> bool:
        """Whether the module makes others known as modules below it, by names that it computes."""
        summary = self.summary(module) if may_put_submodules(self.text(module)) else None
        return isinstance(summary, ModuleSummary) and summary.asked(puts_submodules, module.name)

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
    def is_partly_compiled(self) -> bool:
        """Whether it brings compiled modules in its own folder, as torch/_C.so, which may set names of its others."""
        return any(name.count("/") == 1 for name in self._compiled) or any(self.package.glob("*.so"))

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


def summarize(text: bytes) -> ModuleSummary:
    """What a module's body binds and exports. Raises UnreadableError."""
    outside = without_bodies(text)
    try:
        tree = parse(outside)
    except UnreadableError:
        outside, tree = text, parse(text)
    # `def extend(): __all__.append(...)`: what functions put into it counts too.
    whole = tree if text.count(b"__all__") == outside.count(b"__all__") else parse(text)
    return ModuleSummary(text, read_scope(tree.body), literal_table(whole, "__all__"))


def _words_of_stub(module: Module) -> frozenset[str]:
    """The words in the stub beside a module."""
    stub = module.path.with_suffix(".pyi") if module.path is not None else None
    if stub is None or not stub.is_file():
        return frozenset()
    words = re.findall(rb"[A-Za-z_]\w*", files.read(stub, files.SOURCE_BYTES, follow=True))
    return frozenset(word.decode() for word in words)


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
