"""Verify and apply on every node of a Ray cluster: the same work as here, by one task a node."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patcher.cluster.asking import Cluster, joined
from patcher.cluster.cargo import packed
from patcher.cluster.model import Node
from patcher.cluster.reading import named
from patcher.cluster.sharing import trees
from patcher.errors import UsageError
from patcher.homes import expanded
from patcher.i18n import phrase
from patcher.tree import Tree

if TYPE_CHECKING:
    from patcher.checks import Level
    from patcher.preflight.preflight import PreflightOptions
    from patcher.session.session import Session

WAIT = 60.0
"""Seconds that a node has for an answer, beyond the budgets of its levels."""
_LEVELS: Mapping[Level, float] = {"markers": 0, "env": 60, "data": 75, "model": 105, "engine": 225}
"""Seconds that the checks of a level and those below it may take besides."""
_AGAIN = 3
"""Rounds of apply at most: a tree taken for shared that is not, and a node that joins, get one of their own."""

OnNode = Callable[[Node], None]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line says about an apply."""

    ids: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    allow_dirty: bool = False
    merge: bool = False


@dataclass(frozen=True, slots=True)
class Applied:
    """What an apply came to. `nodes` is how they stand after it; where nothing was written, as before."""

    nodes: tuple[Node, ...]
    written: Mapping[str, tuple[str, ...]]
    """Files written, by the id of the node whose task wrote them."""
    shares: Mapping[str, str]
    """The node whose task patched the tree that another shares, by the other's id; both by id."""
    refused: bool = False
    """Whether nothing was written because records cannot be applied somewhere."""

    @property
    def would_change(self) -> bool:
        return any(node.facts and node.facts.round and node.facts.round.would_change for node in self.nodes)


def verify_nodes(
    session: Session, address: str, level: Level, wish: PreflightOptions, *, wait: float | None = None, on_node: OnNode
) -> tuple[Node, ...]:
    """How every node stands, up to a level. Raises UsageError and HostError where the cluster cannot be joined."""
    if level == "job":
        raise UsageError(
            phrase("a job is not started on every node"),
            advice=phrase("Ask for --level engine with --ray; for the job: uky-patch verify --level job, on one node."),
        )
    limit = (wait or WAIT) + _LEVELS[level]
    ask = {**_ask(session, "look"), "level": level, "data": wish.data, "model": wish.model, "budget": wish.budget}
    with _cluster(session, address) as cluster:
        return cluster.round(ask, limit, on_node=on_node)


def apply_nodes(
    session: Session, address: str, wanted: Wanted, *, dry_run: bool, wait: float | None = None, on_node: OnNode
) -> Applied:
    """Patch every tree of the cluster once: all that can be reached, or none where records cannot be applied to one.

    Raises UsageError and HostError where the cluster cannot be joined.
    """
    limit = wait or WAIT
    with _cluster(session, address) as cluster:
        before = cluster.round(_ask(session, "preview", wanted), limit, on_node=on_node)
        refused = any(node.facts is not None and node.facts.round and node.facts.round.failed for node in before)
        if dry_run or refused:
            return Applied(before, {}, _shares(before), refused=refused)
        return _apply(cluster, session, wanted, before, limit)


def _apply(cluster: Cluster, session: Session, wanted: Wanted, before: tuple[Node, ...], limit: float) -> Applied:
    """One task for each tree that changes, and then a look at all nodes, until none of them would change."""
    written: dict[str, tuple[str, ...]] = {}
    failed: dict[str, Node] = {}
    nodes = before
    for _ in range(_AGAIN):
        chosen = [group[0] for group in trees([node for node in nodes if _changes(node) and node.id not in failed])]
        if not chosen:
            break
        for node in cluster.round(_ask(session, "apply", wanted), limit, only=chosen):
            if node.facts is None or node.facts.failed:
                failed[node.id] = node
            elif node.facts.round is not None:
                written[node.id] = node.facts.round.written
        late = [node for node in nodes if node.state == "late"]
        nodes = (*cluster.round(_ask(session, "preview", wanted), limit, without=late), *late)
    after = tuple(_with_failure(node, failed.get(node.id)) for node in _with_lost(nodes, before))
    return Applied(named(after), written, _shares(before))


def _with_lost(nodes: Sequence[Node], before: Sequence[Node]) -> tuple[Node, ...]:
    """The nodes as they stand, and those that were there before and have left since."""
    there = {node.id for node in nodes}
    gone = [node if node.facts is None else replace(node, state="died", facts=None) for node in before]
    joined = {node.id for node in nodes} - {node.id for node in before}
    stayed = [replace(node, added=node.added or node.id in joined) for node in nodes]
    return (*stayed, *(node for node in gone if node.id not in there))


def _with_failure(node: Node, failed: Node | None) -> Node:
    """A node whose own apply did not come to an end stands as that says."""
    if failed is None or node.facts is None:
        return node
    if failed.facts is None:
        return replace(node, state=failed.state, detail=failed.detail)
    return replace(node, facts=failed.facts)


def _changes(node: Node) -> bool:
    facts = node.facts
    return facts is not None and facts.round is not None and bool(facts.round.would_change)


def _shares(nodes: Sequence[Node]) -> dict[str, str]:
    return {other.id: group[0].id for group in trees(nodes) for other in group[1:]}


def _ask(session: Session, verb: str, wanted: Wanted | None = None) -> dict[str, Any]:
    wanted = wanted or Wanted()
    root = _root(session)
    return {
        "verb": verb,
        "root": str(root) if root is not None else None,
        "assume": dict(session.assume),
        "level": "markers",
        "ids": wanted.ids,
        "tags": wanted.tags,
        "skip": wanted.skip,
        "allow_dirty": wanted.allow_dirty,
        "merge": wanted.merge,
    }


def _root(session: Session) -> Path | None:
    """The tree's path, which is the same on all nodes: as given, else the one around here, else what workers import."""
    if session.root_option is not None:
        return expanded(session.root_option).absolute()
    with contextlib.suppress(UsageError):
        return Tree.find(Path.cwd()).root
    return None


@contextlib.contextmanager
def _cluster(session: Session, address: str) -> Iterator[Cluster]:
    with joined(address, interpreter(session), packed(session.folders)) as cluster:
        yield cluster


def interpreter(session: Session) -> Path:
    """The interpreter that has Ray: the one named, else the one whose packages count here.

    Raises UsageError where a tree names it that the user does not trust.
    """
    from patcher.packages import probe
    from patcher.session.hosts import require_trust

    named = session.config.python if session.python is None and session.has_tree_at_hand else None
    if named is not None:
        require_trust(session.config, str(named.path))
    return probe(session.python, None, named=named).python or session.python or Path(sys.executable)
