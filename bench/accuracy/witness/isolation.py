"""Imports modules of a release outside its own environment: what is missing around them is stood in for, on demand."""

from __future__ import annotations
import __future__

import ast
import importlib
import re
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, TypeVar

from .stand_ins import StandIn, StandInLoader, StandInModule

_T = TypeVar("_T")
_CANNOT = re.compile(r"cannot import name '([^']+)' from (?:partially initialized module )?'([^']+)'")
_ATTEMPTS = 60


class Isolation(MetaPathFinder):
    """`package` is the labelled one; its sources lie in `folder`."""

    def __init__(self, package: str, folder: Path | None) -> None:
        self.package = package
        self.folder = folder
        self.missing: set[str] = set()
        """Modules that a stand-in serves, with all below them."""
        self.tolerant: set[str] = set()
        """Modules of the package that are executed statement by statement."""
        self.tainted: set[tuple[str, str]] = set()
        """Names of such modules that come from a statement that failed."""
        if folder is not None:
            sys.meta_path.insert(0, self)

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        if self.stands_in(fullname):
            return ModuleSpec(fullname, StandInLoader(), is_package=True)
        if fullname in self.tolerant:
            spec = PathFinder.find_spec(fullname, path)
            if spec is not None and spec.origin:
                spec.loader = _Statements(self, spec.origin)
            return spec
        return None

    def stands_in(self, module: str) -> bool:
        parts = module.split(".")
        return any(".".join(parts[:count]) in self.missing for count in range(1, len(parts) + 1))

    def run(self, action: Callable[[], _T]) -> _T:
        """Run an import, mending what is around the package until it works. Raises what cannot be mended."""
        for _ in range(_ATTEMPTS):
            try:
                return action()
            except (Exception, SystemExit) as error:
                if self.folder is None or not self._mend(error):
                    raise
        return action()

    def own(self, module: str) -> bool:
        return module == self.package or module.startswith(self.package + ".")

    def _mend(self, error: BaseException) -> bool:
        frames = _frames(error)
        modules = [
            (str(frame.f_globals.get("__name__", "")), frame)
            for frame in frames
            if not str(frame.f_globals.get("__name__", "")).startswith(("importlib", "bench.", "witness"))
            and "frozen importlib" not in frame.f_code.co_filename
            and frame.f_globals.get("__name__") != "__main__"
        ]
        if not modules:
            return False
        if isinstance(error, ModuleNotFoundError) and error.name:
            return self._lacking(error.name)
        if isinstance(error, ImportError) and (found := _CANNOT.search(str(error))) and not self.own(found[2]):
            return _put(found[2], found[1])
        holder = getattr(error, "obj", None)
        if isinstance(error, AttributeError) and isinstance(holder, ModuleType) and not self.own(holder.__name__):
            return _put(holder.__name__, error.name)
        return self._tolerate(modules)

    def _lacking(self, module: str) -> bool:
        if self.stands_in(module):
            return False
        self.missing.add(module)
        return True

    def _tolerate(self, modules: list[tuple[str, FrameType]]) -> bool:
        for name, frame in reversed(modules):
            if frame.f_code.co_name != "<module>":
                continue
            if self.own(name) and name != self.package and name not in self.tolerant:
                self.tolerant.add(name)
                return True
            if not self.own(name) and name.partition(".")[0] not in ("torch", "transformers", "numpy", "pydantic"):
                return self._lacking(name.partition(".")[0])
        return False


class _Statements(Loader):
    """Executes a module statement by statement; one that fails leaves stand-ins, which are noted."""

    def __init__(self, isolation: Isolation, origin: str) -> None:
        self.isolation = isolation
        self.origin = origin

    def create_module(self, spec: ModuleSpec) -> None:  # noqa: ARG002
        return None

    def exec_module(self, module: ModuleType) -> None:
        module.__file__ = self.origin
        tree = ast.parse(Path(self.origin).read_text(encoding="utf-8"))
        later = any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body)
        flags = __future__.annotations.compiler_flag if later else 0
        for node in tree.body:
            try:
                exec(compile(ast.Module([node], []), self.origin, "exec", flags, dont_inherit=True), module.__dict__)
            except Exception as error:
                if isinstance(error, ModuleNotFoundError) and error.name:
                    self.isolation.missing.add(error.name)
                for name in bound_by(node):
                    module.__dict__.setdefault(name, StandIn(f"{module.__name__}.{name}"))
                    self.isolation.tainted.add((module.__name__, name))


def bound_by(node: ast.stmt) -> set[str]:
    """Names that a statement of a module's body binds, in nested blocks too."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            return {(alias.asname or alias.name).partition(".")[0] for alias in aliases}
    names = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)}
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.ExceptHandler):
            names |= {name for child in inner.body for name in bound_by(child)}
        elif isinstance(inner, ast.stmt):
            names |= bound_by(inner)
    return names


def _frames(error: BaseException) -> list[FrameType]:
    frames = []
    trace = error.__traceback__
    while trace is not None:
        frames.append(trace.tb_frame)
        trace = trace.tb_next
    return frames


def _put(module: str, name: str | None) -> bool:
    holder: Any = sys.modules.get(module)
    if holder is None:
        holder = importlib.import_module(module)
    if name is None or isinstance(holder, StandInModule):
        return False
    setattr(holder, name, StandIn(f"{module}.{name}"))
    return True
