"""The outlines of a tree's files, drawn when first asked for, and its dotted names."""

from __future__ import annotations

import ast
import textwrap
from collections import deque
from collections.abc import Iterator
from weakref import ref

from patcher.analysis.forest import Forest
from patcher.analysis.outlining.outline import Body, Outline
from patcher.worktree.python import UnreadableError, parse

_MOST_STARS = 300


class Tree:
    """A forest as outlines."""

    def __init__(self, forest: Forest) -> None:
        self._forest = ref(forest)
        self.top = forest.top
        self._splits: dict[str, tuple[Outline, str] | None] = {}
        self._modules: dict[str, Outline | None] = {}
        self._nodes: dict[tuple[str, str], ast.FunctionDef | ast.AsyncFunctionDef | None] = {}
        self._generation = forest.generation

    @property
    def forest(self) -> Forest:
        """The files; they must be alive as long as the tree is asked for more."""
        forest = self._forest()
        assert forest is not None, "a tree outlived its forest"
        return forest

    def _stay_current(self) -> None:
        """Let go of the outlines that the forest has dropped."""
        generation = self.forest.generation
        if self._generation != generation:
            self._generation = generation
            self._splits.clear()
            self._modules.clear()
            self._nodes.clear()

    def giving(self, name: str, outline: Outline) -> Iterator[Outline]:
        """The module if its body binds the name, else those that do among the modules that it takes names from with a
        star, directly or not. Each is looked at once, whatever circles there are, and no more than a few hundred."""
        waiting, seen = deque([outline]), {outline.file}
        while waiting:
            here = waiting.popleft()
            if name in here.bodies[""].assigned or name in here.bodies or name in here.classes:
                yield here
                continue
            for star in here.stars:
                there = self.module(star) if len(seen) < _MOST_STARS else None
                if there is not None and there.file not in seen:
                    seen.add(there.file)
                    waiting.append(there)

    def file(self, file: str) -> Outline | None:
        """The outline of a file; None if there is none."""
        return self.forest.outline(file)

    def module(self, dotted: str) -> Outline | None:
        """The outline of a module of the tree."""
        self._stay_current()
        if dotted not in self._modules:
            found = None
            if dotted.partition(".")[0] == self.top:
                path = dotted.replace(".", "/")
                found = self.file(f"{path}.py") or self.file(f"{path}/__init__.py")
            self._modules[dotted] = found
        return self._modules[dotted]

    def split(self, dotted: str) -> tuple[Outline, str] | None:
        """The module that a dotted name of the tree begins with, and the rest of the name."""
        if dotted.partition(".")[0] != self.top:
            return None
        self._stay_current()
        if dotted not in self._splits:
            self._splits[dotted] = self._split(dotted)
        return self._splits[dotted]

    def _split(self, dotted: str) -> tuple[Outline, str] | None:
        parts = dotted.split(".")
        for length in range(len(parts), 0, -1):
            if (found := self.module(".".join(parts[:length]))) is not None:
                return found, ".".join(parts[length:])
        return None

    def node(self, outline: Outline, body: Body) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The syntax of a function, parsed anew: outlines do not keep it."""
        self._stay_current()
        key = (outline.file, body.qualname)
        if key not in self._nodes:
            found = None
            lines = (self.forest.content(outline.file) or b"").decode(errors="replace").splitlines()
            try:
                parsed = parse(textwrap.dedent("\n".join(lines[body.first - 1 : body.last]))).body
            except UnreadableError:
                parsed = []
            if parsed and isinstance(parsed[0], ast.FunctionDef | ast.AsyncFunctionDef):
                found = parsed[0]
            self._nodes[key] = found
        return self._nodes[key]


def tree_of(forest: Forest) -> Tree:
    """The outlines of a forest, kept as long as it lives."""
    tree = forest.kept.get("outlines")
    if not isinstance(tree, Tree):
        tree = forest.kept["outlines"] = Tree(forest)
    return tree
