"""What is kept of a module: its text, what its body binds, and what was asked of its syntax.

A release has more modules than their syntax fits in memory, and of most functions nobody asks more than the parameters.
So a class's or a function's body is parsed by itself when something is asked of it, and let go of again.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from itertools import islice
from typing import Concatenate, ParamSpec, TypeVar, cast, overload

from patcher.analysis.symbols.scope import ClassHeader, FunctionHeader, FunctionNode, Header, Scope, Table, first_line
from patcher.worktree.python import UnreadableError, parse

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(slots=True, eq=False)
class ModuleSummary:
    text: bytes
    scope: Scope
    exported: Table | None
    """Its `__all__`."""
    known: dict[Hashable, object] = field(default_factory=dict)
    """What was asked of its syntax, by who read it: plain values."""

    def asked(self, read: Callable[Concatenate[ast.Module, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What `read`, a function of a module, finds in the whole syntax."""
        key = (read, args)
        if key not in self.known:
            self.known[key] = read(parse(self.text), *args, **kwargs)
        return cast("T", self.known[key])

    @overload
    def asked_of(self, header: FunctionHeader, read: Callable[[FunctionNode], T]) -> T: ...

    @overload
    def asked_of(self, header: ClassHeader, read: Callable[[ast.ClassDef], T]) -> T: ...

    def asked_of(self, header: Header, read: Callable[..., T]) -> T:
        """What `read`, a function of a module, finds in the syntax of one class or function."""
        key = (read, header.first)
        if key not in self.known:
            self.known[key] = read(self.syntax(header))
        return cast("T", self.known[key])

    @overload
    def syntax(self, header: FunctionHeader) -> FunctionNode: ...

    @overload
    def syntax(self, header: ClassHeader) -> ast.ClassDef: ...

    def syntax(self, header: Header) -> ast.ClassDef | FunctionNode:
        """The syntax of a class or function, with the lines that it has in its file."""
        lines = b"\n".join(islice(self.text.split(b"\n"), header.first - 1, header.last))
        # A method is indented: it becomes the body of an `if`, behind as many empty lines as stand before it.
        start = b"\n" * (header.first - 2) + b"if 1:\n" if lines[:1] in (b" ", b"\t") else b"\n" * (header.first - 1)
        try:
            node = parse(start + lines).body[0]
            node = node.body[0] if isinstance(node, ast.If) else node
        except UnreadableError:
            # Lines that end in `\r`, or a text in another encoding.
            every = ast.walk(parse(self.text))
            node = next(one for one in every if isinstance(one, _DEFINES) and first_line(one) == header.first)
        assert isinstance(node, _DEFINES)
        assert node.name == header.name
        return node


_DEFINES = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
