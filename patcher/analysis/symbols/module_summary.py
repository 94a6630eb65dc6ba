"""What is kept of a module: its text, what its body binds, and what was asked of its syntax.

A release has more modules than their syntax fits in memory, and of most functions nobody asks more than the parameters.
So a class's or a function's body is parsed by itself when something is asked of it, and let go of again.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from patcher.analysis.bindings import Header, first_line
from patcher.analysis.symbols.scope import Scope, Table
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
        """What `read`, a function of a module, finds in the whole syntax. Raises RecursionError as `syntax` does."""
        key = (_name_of(read), args)
        if key not in self.known:
            self.known[key] = read(self._everything(), *args, **kwargs)
        return cast("T", self.known[key])

    def asked_of(self, header: Header, read: Callable[[Any], T]) -> T:
        """What `read`, a function of a module, finds in the syntax of one class or function.

        Raises RecursionError as `syntax` does."""
        key = (_name_of(read), header.first)
        if key not in self.known:
            self.known[key] = read(self.syntax(header))
        return cast("T", self.known[key])

    def syntax(self, header: Header) -> Any:
        """The syntax of a class or function, with the lines that it has in its file.

        Raises RecursionError: this Python cannot parse it. A module is read without the bodies of its definitions, of
        which one may nest too deeply, or be written for a later Python. Nothing is known of it in either case."""
        for node in chain(self._part(header), self._nodes()):
            if isinstance(node, _DEFINES) and (node.name, first_line(node)) == (header.name, header.first):
                return node
        raise RecursionError(f"the definition is not where it was (line {header.first})")

    def _part(self, header: Header) -> Iterator[ast.AST]:
        """The definition, by its lines alone; nothing where these are not enough: lines may end in `\\r` alone."""
        lines = b"\n".join(islice(self.text.split(b"\n"), header.first - 1, header.last))
        # A method is indented: it becomes the body of an `if`. As many empty lines come before it as there are lines.
        start = b"\n" * (header.first - 2) + b"if 1:\n" if lines[:1] in (b" ", b"\t") else b"\n" * (header.first - 1)
        with suppress(UnreadableError):
            for node in parse(start + lines).body:
                yield from node.body if isinstance(node, ast.If) else [node]

    def _nodes(self) -> Iterator[ast.AST]:
        yield from ast.walk(self._everything())

    def _everything(self) -> ast.Module:
        try:
            return parse(self.text)
        except UnreadableError as error:
            raise RecursionError(str(error)) from None


def _name_of(read: Callable[..., object]) -> str:
    return f"{read.__module__}.{read.__qualname__}"


_DEFINES = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
