"""What an edit finds in a source: anchors, the places to change, and effects, the places that have its effect already.

An anchor beside an effect in another branch, such as the `except ImportError:` of a `try`, is kept for older versions
and no anchor: see `settle`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import libcst as cst
from libcst import CSTNode

from patcher.rewrite.syntax import SCOPES, index_of, statements, walk

if TYPE_CHECKING:
    from patcher.rewrite.source import Source

_FUNCTIONS = (*SCOPES, cst.Lambda)
_LEAVING = (cst.Return, cst.Raise, cst.Continue, cst.Break)


Make: TypeAlias = Callable[[CSTNode], CSTNode | Sequence[CSTNode]]
"""What becomes of a node, once what is below it has become what it should."""


@dataclass(frozen=True, slots=True)
class Change:
    """A node, and what becomes of it."""

    node: CSTNode
    make: Make


@dataclass(frozen=True, slots=True)
class Splice:
    """Lines of statements in the place of `first` up to before `last`, counted in `statements(block)`."""

    block: CSTNode
    first: int
    last: int
    new: tuple[CSTNode, ...]
    behind: bool = False
    """Of an insertion: whether it goes with the statement before it, and not with the one that follows."""


Step: TypeAlias = Change | Splice


@dataclass(frozen=True, slots=True)
class Anchor:
    """A place that the edit would change, how, and which nodes in another branch are its effect made by hand."""

    node: CSTNode
    steps: Callable[[], list[Step]]
    """Worked out only where the edit is made: of an edit with too many anchors none is."""
    twin: Callable[[CSTNode], bool] = lambda node: False  # noqa: ARG005
    """Whether a node of another branch is this edit made by hand: see `settle`."""

    @classmethod
    def changed(cls, node: CSTNode, make: Make, effects: Sequence[CSTNode] = ()) -> Anchor:
        """A node that is changed in its place; each of `effects` in another branch is its twin."""
        return cls(node, lambda: [Change(node, make)], lambda other: is_among(other, effects))


def is_among(node: object, others: Iterable[object]) -> bool:
    """Whether a node is one of others: the same object, as libcst's nodes compare by identity and hash slowly."""
    return any(node is other for other in others)


@dataclass(frozen=True, slots=True)
class Sites:
    """Anchors and nodes with the effect, in order."""

    anchors: tuple[Anchor, ...]
    effects: tuple[CSTNode, ...]


def settle(source: Source, sites: Sites) -> Sites:
    """Leave out the anchors that a hand edit kept for other versions, in another branch than the effect.

    try:
        from vllm.utils.parsers import Parser       the effect
    except ImportError:
        from vllm.utils import Parser               no anchor: it is there for older versions
    """
    anchors: list[Anchor] = []
    effects = list(sites.effects)
    for anchor in sites.anchors:
        twin = next((node for node in _other_branches(source, anchor.node) if anchor.twin(node)), None)
        if twin is None:
            anchors.append(anchor)
        elif not is_among(twin, effects):
            effects.append(twin)
    return Sites(tuple(anchors), tuple(sorted(effects, key=source.lines)))


def _other_branches(source: Source, node: CSTNode) -> Iterable[CSTNode]:
    """The nodes that run where the ones around `node` do not, up to the function around it."""
    child = node
    for parent in source.ancestors(node):
        for branch in [*_beside(parent, child), *_after_leaving(parent, child)]:
            yield from walk(branch)
        if isinstance(parent, _FUNCTIONS):
            return
        child = parent


def _beside(parent: CSTNode, child: CSTNode) -> list[CSTNode]:
    """The branches of a statement or expression beside the one that `child` is in; none for its condition."""
    branches: list[list[CSTNode | None]]
    match parent:
        case cst.If(body=body, orelse=orelse) | cst.IfExp(body=body, orelse=orelse):
            branches = [[body], [orelse]]
        case cst.Match(cases=cases):
            branches = [[case] for case in cases]
        case cst.Try() | cst.TryStar():
            handlers: Sequence[CSTNode] = parent.handlers
            tried: list[CSTNode | None] = [parent.orelse if child is parent.orelse else parent.body]
            if is_among(child, handlers):
                tried = [parent.body, parent.orelse]
            branches = [tried, *([one] for one in handlers)]  # type: ignore[list-item]
        case _:
            return []
    mine = [branch for branch in branches if is_among(child, branch)]
    return [item for branch in branches if mine and branch is not mine[0] for item in branch if item is not None]


def _after_leaving(block: CSTNode, child: CSTNode) -> list[CSTNode]:
    """What runs in place of a statement because an `if` beside it leaves the block.

    if NEW:
        return start(enable=True)       beside the next line, as if that stood in an `else:`
    return start(disable=False)
    """
    if not isinstance(block, (cst.Module, cst.IndentedBlock)):
        return []
    index = index_of(block.body, child)
    before = [item for item in block.body[:index] if isinstance(item, cst.If) and _leaves(item)]
    leaving = isinstance(child, cst.If) and _leaves(child)
    return [*before, *(block.body[index + 1 :] if leaving else [])]


def _leaves(branch: cst.If) -> bool:
    """Whether what follows the `if` does not run where its body does: it returns, raises, continues or breaks."""
    body: Sequence[tuple[CSTNode, CSTNode]] = statements(branch.body)
    return bool(body) and isinstance(body[-1][0], _LEAVING)
