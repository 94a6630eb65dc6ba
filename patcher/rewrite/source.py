"""A source text beside its libcst module: what stands where, and what is around what.

libcst's metadata would tell the same and more. Its providers of positions and parents take some 250 ms on a file of
600 lines; generating the code once, with a look at the tokens, takes 13 ms.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import libcst as cst
from libcst import CSTNode
from libcst._nodes.internal import CodegenState  # Not public. libcst's own position provider is made of it too.

from patcher.rewrite.outcome import BOM, EOL, Unparseable
from patcher.rewrite.syntax import (
    BLOCKS,
    SCOPES,
    STATEMENT_KINDS,
    STATEMENTS,
    Scope,
    children,
    last_inside,
    only,
    walk,
)
from patcher.worktree import python

_KEPT = 48
"""The most texts whose trees are kept: the files that all records for one pair of releases edit are 20."""
_TOO_DEEP = "it nests too deeply to be rewritten; split the longest statement into several"
_NOTHING = nullcontext()
_known: dict[str, Source | Unparseable] = {}


class Trace(CodegenState):
    """Generates code and keeps where statements, chosen nodes, and the newlines that a comment may precede stand."""

    def __init__(self, module: cst.Module, wanted: frozenset[int] = frozenset(), indents: Sequence[str] = ()) -> None:
        super().__init__(module.default_indent, module.default_newline)
        self.indent_tokens, self._wanted = list(indents), wanted
        self._begun: dict[int, int] = {}
        self._ended: dict[int, int] = {}
        self._newlines: list[tuple[int, bool]] = []
        self._brackets = self._strings = 0

    def before_codegen(self, node: CSTNode) -> None:
        kind = node.__class__
        if kind in STATEMENT_KINDS or id(node) in self._wanted:
            self._begun[id(node)] = len(self.tokens)
        elif kind is cst.Newline:
            if not self._strings:
                self._newlines.append((len(self.tokens), not self._brackets))
        elif kind is cst.ParenthesizedWhitespace:
            self._brackets += 1
        elif kind is cst.FormattedString:
            self._strings += 1

    def after_codegen(self, node: CSTNode) -> None:
        kind = node.__class__
        if id(node) in self._begun:
            self._ended[id(node)] = len(self.tokens)
        elif kind is cst.ParenthesizedWhitespace:
            self._brackets -= 1
        elif kind is cst.FormattedString:
            self._strings -= 1

    def record_syntactic_position(self, node: CSTNode, **_ends: CSTNode | None) -> AbstractContextManager[None]:  # type: ignore[override]  # noqa: ARG002
        """What libcst's own provider of positions keeps here. Its generator for nothing takes a tenth of a trace."""
        return _NOTHING

    def run(self, nodes: Sequence[CSTNode]) -> Trace:
        """Generate the code of some nodes that follow one another."""
        for node in nodes:
            node._codegen(self)
        self.text = "".join(self.tokens)
        at = [0, *accumulate(map(len, self.tokens))]
        at += [at[-1]] * 2  # A last newline may be dropped again.
        self.spans = {key: (at[first], at[self._ended[key]]) for key, first in self._begun.items()}
        self.free = {at[index] for index, _ in self._newlines}
        """Where a newline stands that a comment may be put before."""
        self.closing = {at[index] for index, ends in self._newlines if ends}
        """Those of them that end a logical line."""
        for collected in (self.tokens, self._newlines, self._begun, self._ended):  # Traces are kept; these are not.
            collected.clear()
        return self


@dataclass(frozen=True, slots=True)
class Index:
    """Some nodes and all below them, in the order of the text, and every node's parent by the node's id."""

    nodes: list[CSTNode]
    parents: dict[int, CSTNode]

    @classmethod
    def of(cls, tops: Sequence[CSTNode]) -> Index:
        nodes: list[CSTNode] = []
        parents: dict[int, CSTNode] = {}
        stack = [*reversed(tops)]
        while stack:
            node = stack.pop()
            nodes.append(node)
            below = children(node)
            for one in below:
                parents[id(one)] = node
            stack += reversed(below)
        return cls(nodes, parents)

    def replaced(
        self, pieces: Iterable[tuple[Sequence[CSTNode], Sequence[CSTNode]]], made: Mapping[int, CSTNode]
    ) -> Index:
        """The same with statements that follow one another replaced by others, piece by piece.

        `made` has the new nodes around them by the id of the old. Only these and the statements are walked through.
        """
        nodes = [made.get(id(node), node) for node in self.nodes]
        parents = dict(self.parents)
        for old, new in pieces:
            first = nodes.index(old[0])
            inside = Index.of(new)
            nodes[first : first + len(Index.of(old).nodes)] = inside.nodes
            parents |= inside.parents
        for node in made.values():
            for one in children(node):
                parents[id(one)] = node
        return Index(nodes, parents)


class Source:
    """One text and its tree. Never changed."""

    def __init__(
        self,
        text: str,
        module: cst.Module,
        spans: dict[int, tuple[int, int]],
        trace: Trace | None = None,
        index: Index | None = None,
    ) -> None:
        self.text, self.module, self.spans = text, module, spans
        if index is not None:
            self.index = index
        self.newline = module.default_newline
        self._trace = trace

    @property
    def trace(self) -> Trace:
        """The whole text as libcst generates it."""
        if self._trace is None:
            self._trace = Trace(self.module).run([self.module])
        return self._trace

    @cached_property
    def _ends(self) -> list[tuple[int, int]]:
        return [(m.start(), m.end()) for m in EOL.finditer(self.text)]

    @cached_property
    def starts(self) -> list[int]:
        """The offsets at which the lines begin."""
        return [0, *(end for _, end in self._ends)]

    def line(self, number: int) -> str:
        """The line `number`, from 1, without its end."""
        stop = self._ends[number - 1][0] if number <= len(self._ends) else len(self.text)
        return self.text[self.starts[number - 1] : stop]

    @cached_property
    def index(self) -> Index:
        return Index.of([self.module])

    @property
    def parents(self) -> dict[int, CSTNode]:
        """Every node's parent, by the node's id."""
        return self.index.parents

    @property
    def everything(self) -> list[CSTNode]:
        """Every node, in the order of the text."""
        return self.index.nodes

    def nodes(self, scopes: Sequence[Scope]) -> list[CSTNode]:
        """The nodes below some scopes, in order."""
        if scopes == (self.module,):
            return self.everything[1:]
        return [node for scope in scopes for node in walk(scope) if node is not scope]

    def ancestors(self, node: CSTNode) -> Iterator[CSTNode]:
        """The nodes around a node, from the innermost."""
        while (above := self.parents.get(id(node))) is not None:
            yield above
            node = above

    def statement(self, node: CSTNode) -> CSTNode:
        """The innermost statement around a node, or the node itself: of `a; b`, one of the two."""
        while not isinstance(node, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
            node = self.parents[id(node)]
        return node

    def whole_lines(self, node: CSTNode) -> CSTNode:
        """The innermost statement with lines of its own around a node, or the node itself."""
        while not isinstance(self.parents[id(node)], BLOCKS):
            node = self.parents[id(node)]
        return node

    def indents(self, block: CSTNode) -> list[str]:
        """The indentation of what stands in a block, level by level."""
        around = [above for above in (block, *self.ancestors(block)) if isinstance(above, cst.IndentedBlock)]
        return [self.module.default_indent if b.indent is None else b.indent for b in reversed(around)]

    def span(self, node: CSTNode) -> tuple[int, int]:
        """Where a node begins and ends. Of a statement, the blank lines and comments above it count too."""
        if id(node) in self.spans or isinstance(node, cst.Module):
            return self.spans.get(id(node), (0, len(self.text)))
        unit = self.whole_lines(node)
        start, stop = self.spans[id(unit)]
        trace = Trace(self.module, frozenset({id(node)}), self.indents(self.parents[id(unit)])).run([unit])
        first, last = trace.spans[id(node)]
        if trace.text != (text := self.text[start:stop]) and (places := aligned(trace.text, text)):
            first, last = places[first], places[last - 1] + 1 if last > first else places[last]
        return start + first, start + last

    def lines(self, node: CSTNode) -> tuple[int, int]:
        """The first and last line of a node, from 1: with its decorators, without the comments above and behind it."""
        if isinstance(node, cst.Module):
            return 1, len(self.starts)
        first, last = self.span(node)
        line = bisect_right(self.starts, first)
        if isinstance(node, cst.Arg):  # The comma and all white space up to the next argument are part of it.
            return line, self.lines(node.value)[1]
        if not isinstance(node, STATEMENTS):
            return line, bisect_right(self.starts, min(last, len(self.text)))
        line += len(node.leading_lines)
        end = last_inside(node)
        if end is not node:
            return line, self.lines(end)[1]
        return line, bisect_right(self.starts, max(first, min(last - 1, len(self.text))))

    def code(self, node: CSTNode) -> str:
        """A node's own code, as it is written."""
        return self.module.code_for_node(node)

    @cached_property
    def scopes(self) -> dict[str, tuple[Scope, ...]]:
        """The classes and functions by qualified name."""
        found: dict[str, tuple[Scope, ...]] = {}
        for node in only(self.everything, cst.ClassDef, cst.FunctionDef):
            name = self.qualified_name(node)
            found[name] = (*found.get(name, ()), node)
        return found

    def qualified_name(self, node: CSTNode) -> str:
        """The dotted name of the classes and functions around a node, itself included; "" at the top level."""
        above = (part for part in (node, *self.ancestors(node)) if isinstance(part, SCOPES))
        return ".".join(reversed([part.name.value for part in above]))

    def within(self, name: str | None) -> tuple[Scope, ...]:
        """The scopes of a qualified name: the module for None, and nothing where there is no such scope."""
        return (self.module,) if name is None else self.scopes.get(name.replace(".<locals>", ""), ())


def parse(text: str) -> Source | Unparseable:
    """Read a text, from memory where it was read or made before. Its byte order mark is left out."""
    text = text.removeprefix(BOM)
    found = _known.pop(text, None)
    if found is None:
        found = parse_anew(text)
    remember(text, found)
    return found


def known(text: str) -> bool:
    """Whether a text is in memory."""
    return text.removeprefix(BOM) in _known


def remember(text: str, source: Source | Unparseable) -> None:
    """Keep what a text was read as, so that the next edit of the same file need not read it.

    The text that was asked for least lately goes for it.
    """
    _known.pop(text, None)
    if len(_known) >= _KEPT:
        del _known[next(iter(_known))]
    _known[text] = source


def forget() -> None:
    """Let go of all trees."""
    _known.clear()


def parse_anew(text: str) -> Source | Unparseable:
    """Read a text whose nodes are to become part of another tree, so that nobody else may have them."""
    try:
        python.require_shallow(text)
        module = cst.parse_module(text)
        trace = Trace(module).run([module])
    except cst.ParserSyntaxError as error:
        return _why_refused(text, error)
    except python.UnreadableError as error:
        return Unparseable(error.line, _TOO_DEEP if error.msg == python.TOO_DEEP else error.msg)
    except RecursionError:
        return Unparseable(1, _TOO_DEEP)
    except ValueError as error:  # A text that cannot be encoded, such as one with half of a surrogate pair.
        return Unparseable(1, str(error))
    spans = trace.spans
    if trace.text != text:
        places = aligned(trace.text, text)
        if places is None:
            return Unparseable(1, "libcst does not give this file back as it is written")
        end = len(trace.text)
        spans = {key: (places[a], places[b - 1] + 1 if b < end else len(text)) for key, (a, b) in spans.items()}
    return Source(text, module, spans, trace)


def aligned(shorter: str, text: str) -> list[int] | None:
    """Where each character of what libcst gives back stands in the text; None where more than white space differs.

    libcst drops some: the space in `except E :`, a form feed before code, a `\\` before the first line, the end of a
    line that is a CR alone in places.
    """
    places: list[int] = []
    at = 0
    for character in shorter:
        while at < len(text) and text[at] != character and text[at] in " \t\f\\\r\n":
            at += 1
        if at == len(text) or text[at] != character:
            return None
        places.append(at)
        at += 1
    return None if text[at:].strip() else [*places, *[len(text)] * 3]


def _why_refused(text: str, error: cst.ParserSyntaxError) -> Unparseable:
    """Why a text is no Python, in the words of the interpreter that runs this where it finds something too."""
    try:
        python.parse(text)
    except python.UnreadableError as reason:
        return Unparseable(reason.line, reason.msg)
    lines = ["", *EOL.split(text)]
    line = min(max(error.raw_line, 1), len(lines) - 1)
    for number in (line, line - 1):
        if lines[number].strip() == "\\":  # Python takes such a line first in a block, libcst does not.
            return Unparseable(number, "libcst does not read a line that is a backslash alone; take that line out")
    return Unparseable(line, f"libcst does not read this line: {error.message.splitlines()[-1]}")
