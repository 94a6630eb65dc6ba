"""A source text beside its syntax tree: positions as offsets, parents, scopes, and where logical lines begin."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from typing import TypeAlias

from patcher.rewrite.outcome import Unparseable
from patcher.worktree import python

EOL = re.compile(r"\r\n|\r|\n")
"""The ends of lines as Python sees them; a form feed is none."""

Scope: TypeAlias = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
_SCOPES = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_LEAVES = (ast.expr_context, ast.operator, ast.boolop, ast.unaryop, ast.cmpop)


class Code:
    """One source text and what is known of it. Made by `parse`, never changed."""

    def __init__(self, text: str, tree: ast.Module) -> None:
        self.text = text
        self.tree = tree
        ends = [(m.start(), m.end()) for m in EOL.finditer(text)]
        self.starts = [0, *(end for _, end in ends)]
        self._stops = [*(stop for stop, _ in ends), len(text)]
        self.newline = text[ends[0][0] : ends[0][1]] if ends else "\n"

    def line(self, number: int) -> str:
        """The line `number`, from 1, without its end."""
        return self.text[self.starts[number - 1] : self._stops[number - 1]]

    def line_start(self, number: int) -> int:
        """The offset at which the line `number` begins; the text's length behind the last line."""
        return self.starts[number - 1] if number <= len(self.starts) else len(self.text)

    def line_stop(self, number: int) -> int:
        """The offset of the line's end, before its newline."""
        return self._stops[number - 1]

    def line_of(self, offset: int) -> int:
        return bisect_right(self.starts, offset)

    def offset(self, number: int, column: int) -> int:
        """The offset of a column that counts UTF-8 bytes, as `ast` does."""
        start = self.starts[number - 1]
        head = self.text[start : start + column]
        return start + (column if head.isascii() else len(self.line(number).encode()[:column].decode()))

    def start(self, node: ast.AST) -> int:
        """Where a node begins, its decorators included."""
        decorators: Sequence[ast.expr] = getattr(node, "decorator_list", ())
        if decorators:
            return self.text.rindex("@", 0, self.start(decorators[0]))
        return self.offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]

    def end(self, node: ast.AST) -> int:
        return self.offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def segment(self, node: ast.AST) -> str:
        return self.text[self.start(node) : self.end(node)]

    def indent(self, offset: int) -> str:
        """The white space that the line around `offset` begins with."""
        line = self.line(self.line_of(offset))
        return line[: len(line) - len(line.lstrip(" \t\f"))]

    def own_line(self, offset: int) -> bool:
        """Whether nothing but white space stands before `offset` on its line, and no line is continued there."""
        number = self.line_of(offset)
        blank = not self.text[self.line_start(number) : offset].strip(" \t\f")
        return blank and not (number > 1 and self.line(number - 1).endswith("\\"))

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """Every node's parent, in the order of the text."""
        found: dict[ast.AST, ast.AST] = {}
        stack: list[ast.AST] = [self.tree]
        while stack:
            node = stack.pop()
            for name in node._fields:
                value = getattr(node, name, None)
                if isinstance(value, list):
                    for item in value:
                        if isinstance(item, ast.AST) and not isinstance(item, _LEAVES):
                            found[item] = node
                            stack.append(item)
                elif isinstance(value, ast.AST) and not isinstance(value, _LEAVES):
                    found[value] = node
                    stack.append(value)
        return found

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, from the innermost."""
        parents = self.parents
        while (above := parents.get(node)) is not None:
            yield above
            node = above

    def statement(self, node: ast.AST) -> ast.stmt:
        """The innermost statement around a node, or the node itself."""
        while not isinstance(node, ast.stmt):
            node = self.parents[node]
        return node

    def siblings(self, statement: ast.stmt) -> list[ast.stmt]:
        """The block that a statement stands in."""
        for _, value in ast.iter_fields(self.parents[statement]):
            if isinstance(value, list) and any(item is statement for item in value):
                return value
        raise AssertionError("a statement stands in no block")

    @cached_property
    def statements(self) -> list[ast.stmt]:
        return [node for node in self.parents if isinstance(node, ast.stmt)]

    @cached_property
    def logical_starts(self) -> list[int]:
        """The lines on which a statement begins with nothing before it, sorted, the first line included."""
        starts = (self.start(statement) for statement in self.statements)
        return sorted({1, *(self.line_of(start) for start in starts if self.own_line(start))})

    @cached_property
    def scopes(self) -> dict[str, tuple[Scope, ...]]:
        """The classes and functions by qualified name."""
        found: dict[str, tuple[Scope, ...]] = {}
        for node in self.parents:
            if isinstance(node, _SCOPES):
                above = [part.name for part in self.ancestors(node) if isinstance(part, _SCOPES)]
                name = ".".join([*reversed(above), node.name])
                found[name] = (*found.get(name, ()), node)
        return {name: tuple(sorted(nodes, key=position)) for name, nodes in found.items()}

    def within(self, name: str | None) -> tuple[Scope, ...]:
        """The scopes of a qualified name: the module for None, and nothing where there is no such scope."""
        return (self.tree,) if name is None else self.scopes.get(name.replace(".<locals>", ""), ())

    def nodes(self, scopes: Sequence[Scope]) -> list[ast.AST]:
        """The nodes below `scopes`, sorted by their place in the text where they have one."""
        below = self.parents if scopes == (self.tree,) else [n for s in scopes for n in ast.walk(s) if n is not s]
        return sorted(below, key=position)


def position(node: ast.AST) -> tuple[int, int]:
    """The place of a node as line and column, to sort by; (0, 0) where it has none."""
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


@lru_cache(maxsize=32)
def parse(text: str) -> Code | Unparseable:
    """Read a text that has no byte order mark."""
    try:
        return Code(text, python.parse(text))
    except python.UnreadableError as error:
        return Unparseable(error.line, error.msg)
