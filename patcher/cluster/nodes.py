"""Verify and apply on every node of a Ray cluster: look at the nodes, plan for them here, have them write the files."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeVar, cast

from patcher.cluster.joining import Call, Cluster, joined
from patcher.cluster.model import Node, Reply, facts_of, named, trees
from patcher.cluster.planning import NodeConnection, Seen, Wanted, Workspace, error_of, node_checks
from patcher.errors import RecordError, UkyError, UsageError
from patcher.homes import expanded
from patcher.i18n import phrase
from patcher.packages import Environment, probe
from patcher.preflight.preflight import run_preflight
from patcher.records.load import load
from patcher.remote.channel import Channel
from patcher.remote.connection import Connection
from patcher.remote.survey import survey_host
from patcher.remote.tree_folder import open_tree_folder
from patcher.session.hosts import require_trust, this_machine
from patcher.tree import Tree

if TYPE_CHECKING:
    from patcher.checks import Check, Level
    from patcher.preflight.preflight import PreflightOptions
    from patcher.session.session import Session

WAIT = 60.0
"""Seconds that a node has for an answer, beyond the budgets of its levels. Most of it is for Ray: on a busy machine a
worker takes 20 seconds to start."""
_LEVELS: Mapping[Level, float] = {"markers": 0, "env": 60, "data": 75, "model": 105, "engine": 225}
"""Seconds that the checks of a level and those below it may take besides: the sums of their budgets."""
_SHARE = 3
"""Of its time, a node waits at most one part in so many for another run that holds the tree, so that it can say so."""
_AGAIN = 3
"""How often commits are sent at most: a tree that has changed since it was planned for, one that was taken for shared
and is not, and a node that joins, get another one."""

OnNode = Callable[[Node], None]
T = TypeVar("T")


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
        return any(_changes(node) for node in self.nodes)


def verify_nodes(
    session: Session, address: str, level: Level, wish: PreflightOptions, *, wait: float | None = None, on_node: OnNode
) -> tuple[Node, ...]:
    """How every node stands, up to a level. Raises UsageError and HostError where the cluster cannot be joined."""
    if level == "job":
        raise UsageError(
            phrase("a job is not started on every node"),
            advice=phrase("Ask for --level engine with --ray; for the job: uky-patch verify --level job, on one node."),
        )
    with _asking(session, address, wait or WAIT) as asking:
        nodes = asking.look(None, level, on_node=on_node)
        return nodes if level == "markers" else asking.preflight(nodes, level, wish)


def apply_nodes(
    session: Session, address: str, wanted: Wanted, *, dry_run: bool, wait: float | None = None, on_node: OnNode
) -> Applied:
    """Patch every tree of the cluster once: all that can be reached, or none where records cannot be applied to one.

    Raises UsageError and HostError where the cluster cannot be joined.
    """
    with _asking(session, address, wait or WAIT) as asking:
        before = asking.look(wanted, on_node=on_node)
        refused = any(node.facts is not None and node.facts.plan and node.facts.plan.failed for node in before)
        if dry_run or refused:
            return Applied(before, {}, _shares(before), refused=refused)
        return _apply(asking, wanted, before)


def _apply(asking: Asking, wanted: Wanted, before: tuple[Node, ...]) -> Applied:
    """One commit for each tree that changes, and then a look at all nodes, until none of them would change."""
    written: dict[str, tuple[str, ...]] = {}
    failed: dict[str, Node] = {}
    nodes = before
    for _ in range(_AGAIN):
        failed |= {node.id: node for node in nodes if node.facts and node.facts.plan and node.facts.plan.failed}
        chosen = [group[0] for group in trees([node for node in nodes if _changes(node) and node.id not in failed])]
        if not chosen:
            break
        for node, files in asking.commit(chosen, wanted):
            if files is None:
                failed[node.id] = node
            elif files:
                written[node.id] = files
        late = [node for node in nodes if node.state == "late"]
        nodes = (*asking.look(wanted, without=late), *late)
    after = tuple(_with_failure(node, failed.get(node.id)) for node in _with_lost(nodes, before))
    return Applied(named(after), written, _shares(before))


class Asking:
    """The nodes of a cluster that was joined, as one command asks them."""

    def __init__(self, session: Session, cluster: Cluster, workspace: Workspace, wait: float) -> None:
        """`wait`: the seconds that a node has for an answer."""
        self._session = session
        self._cluster = cluster
        self._workspace = workspace
        self._wait = wait
        self._seen: dict[str, Seen] = {}
        root = _root(session)
        self._root = str(root) if root is not None else None
        self._folders: set[str] = set()
        self._files: set[str] = set()
        with contextlib.suppress(RecordError):  # The plan for each tree tells what is wrong with them.
            self._files = {file for record in load(session.folders) for file in record.files}

    def look(
        self,
        wanted: Wanted | None,
        level: Level = "markers",
        *,
        without: Sequence[Node] = (),
        on_node: OnNode = lambda _: None,
    ) -> tuple[Node, ...]:
        """All nodes but `without`, with the markers of their trees, and with what `wanted` would do to these."""
        found = {node.id: node for node in self._look(None, without, on_node)}
        for _ in range(2):  # First the folders that a tree's settings name, then the files that the records there name.
            unread = [node for node in found.values() if self._has_unread(node)]
            found |= {node.id: node for node in self._look(unread, (), lambda _: None)} if unread else {}
        return named([self._planned(node, wanted, level) for node in found.values()])

    def _look(self, only: Sequence[Node] | None, without: Sequence[Node], on_node: OnNode) -> Iterator[Node]:
        args = {
            "root": self._root,
            "files": sorted(self._files),
            "folders": sorted(self._folders),
            "wait": self._wait / _SHARE,
        }
        calls = [("node_look", args)]
        for node, replies in self._cluster.ask(calls, self._wait, only=only, without=without, on_node=on_node):
            self._seen.pop(node.id, None)
            if not replies:
                yield node
                continue
            answer = replies[0].answer().values
            self._seen[node.id] = Seen(node, answer)
            yield replace(node, hostname=answer["hostname"], facts=facts_of(answer))

    def _has_unread(self, node: Node) -> bool:
        seen = self._seen.get(node.id)
        if seen is None or seen.tree is None:
            return False
        folders, files = self._workspace.unread(seen, self._files | self._folders)
        self._folders |= folders
        self._files |= files
        return bool(folders or files)

    def _planned(self, node: Node, wanted: Wanted | None, level: Level) -> Node:
        seen = self._seen.get(node.id)
        if node.facts is None or seen is None or seen.tree is None:
            return node
        return replace(node, facts=self._workspace.plan(seen, wanted, level).facts(node.facts))

    def commit(self, nodes: Sequence[Node], wanted: Wanted) -> Iterator[tuple[Node, tuple[str, ...] | None]]:
        """Have each of the nodes write what was planned for its tree, as it was looked at last.

        Gives the files that a node has written: none where its tree is another now; None where it could not, with the
        reason in the node.
        """
        args = {
            node.id: {
                **self._workspace.plan(self._seen[node.id], wanted, "markers").commit,
                "root": self._seen[node.id].answer["root"],
                "wait": self._wait / _SHARE,
            }
            for node in nodes
        }
        own = {node: [("node_commit", theirs)] for node, theirs in args.items()}
        facts = {node.id: node.facts for node in nodes}
        for node, replies in self._cluster.ask((), self._wait, only=nodes, own=own):
            if not replies:
                yield node, None
                continue
            try:
                yield node, tuple(replies[0].answer().values.get("written", ()))
            except UkyError as error:
                there = facts[node.id]
                assert there is not None
                yield replace(node, facts=error_of(error, there)), None

    def preflight(self, nodes: Sequence[Node], level: Level, wish: PreflightOptions) -> tuple[Node, ...]:
        """The nodes with the checks above the markers, up to the level. All nodes run theirs at the same time."""

        def run(node: Node, channel: Channel) -> tuple[Check, ...]:
            seen = self._seen[node.id]
            session = self._workspace.session(seen)
            host = replace(this_machine(session), path=seen.answer["root"])
            connection = Connection(host, channel)
            open_tree_folder(connection, "", None)
            # The host names the interpreter, so that none that lies in the tree has to be looked at, or be trusted.
            survey = survey_host(replace(connection, host=replace(host, path=None)), host)
            return run_preflight(connection, host, survey, level, on_check=lambda _: None, wish=wish)

        usable = [node for node in nodes if node.facts is not None and not node.facts.error]
        found = at_once(self._cluster, usable, run, self._wait + _LEVELS[level])
        return named([_with_checks(node, found.get(node.id)) for node in nodes])


def _with_checks(node: Node, found: tuple[Check, ...] | Node | UkyError | None) -> Node:
    facts = node.facts
    if facts is None or found is None:
        return node
    match found:
        case Node():
            return replace(node, state=found.state, detail=found.detail, facts=None)
        case UkyError():
            return replace(node, facts=error_of(found, facts))
        case _:
            return replace(node, facts=replace(facts, checks=(*facts.checks, *node_checks(found))))


class _Unanswered(BaseException):
    """Work on a node that needs the answer to calls that were not sent yet. No `except Exception` may take it."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self.calls = calls


def at_once(
    cluster: Cluster, nodes: Sequence[Node], work: Callable[[Node, Channel], T], limit: float
) -> dict[str, T | Node | UkyError]:
    """What `work` gives for each node, by the node's id: the error where it fails, the node where that is lost.

    `work` is written for one node, and asks it several things in turn. What the works of all nodes ask first goes out
    together; with the answers each is run again from its beginning up to its next question, and so on. So `work` must
    do the same with the same answers, and have no other effect. A node has `limit` seconds for each question.
    """
    answered: dict[str, list[Reply]] = {node.id: [] for node in nodes}
    found: dict[str, T | Node | UkyError] = {}
    while left := [node for node in nodes if node.id not in found]:
        asked: dict[str, Sequence[Call]] = {}
        for node in left:
            try:
                found[node.id] = work(node, cast("Channel", NodeConnection(_given(answered[node.id]))))
            except _Unanswered as unanswered:
                asked[node.id] = unanswered.calls
            except UkyError as error:
                found[node.id] = error
        if not asked:
            continue
        for node, replies in cluster.ask((), limit, only=[node for node in left if node.id in asked], own=asked):
            if replies:
                answered[node.id].append(replies[-1])
            else:
                found[node.id] = node
    return found


def _given(replies: Sequence[Reply]) -> Callable[[Sequence[Call]], Reply]:
    """A node that gives these replies in turn, and then none."""
    left = iter(replies)

    def send(calls: Sequence[Call]) -> Reply:
        for reply in left:
            return reply
        raise _Unanswered(calls)

    return send


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
    return facts is not None and facts.plan is not None and bool(facts.plan.would_change)


def _shares(nodes: Sequence[Node]) -> dict[str, str]:
    return {other.id: group[0].id for group in trees(nodes) for other in group[1:]}


def _root(session: Session) -> Path | None:
    """The tree's path, which is the same on all nodes: as given, else the one around here, else what workers import."""
    if session.root_option is not None:
        return expanded(session.root_option).absolute()
    with contextlib.suppress(UsageError):
        return Tree.find(Path.cwd()).root
    return None


@contextlib.contextmanager
def _asking(session: Session, address: str, wait: float) -> Iterator[Asking]:
    here = environment_here(session)
    with (
        joined(address, _python(session, here)) as cluster,
        TemporaryDirectory(prefix="uky-patch-nodes-") as folder,
    ):
        workspace = Workspace(session, here, Path(folder).resolve(), cluster, wait)
        yield Asking(session, cluster, workspace, wait)


def environment_here(session: Session) -> Environment:
    """What is installed under the interpreter that has Ray: the one named, else the one whose packages count here.

    Raises UsageError where a tree names it that the user does not trust.
    """
    named = session.config.python if session.python is None and session.has_tree_at_hand else None
    if named is not None:
        require_trust(session.config, str(named.path))
    return probe(session.python, None, named=named)


def interpreter(session: Session) -> Path:
    """The interpreter that has Ray. Raises what `environment_here` raises."""
    return _python(session, environment_here(session))


def _python(session: Session, here: Environment) -> Path:
    return here.python or session.python or Path(sys.executable)
