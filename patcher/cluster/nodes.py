"""Verify and apply on every node of a Ray cluster.

The nodes tell what they have (`node_look`); on this machine it is planned for each of them (`planning`); then one node
of each tree writes the files (`node_commit`). The checks above the markers run on the nodes themselves, by the code
that also checks a host which is reached by ssh (`at_once`).
"""

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
"""Seconds that a node has for an answer, beyond the budgets of its levels. A guess: on a busy machine Ray alone takes
20 seconds to start a worker."""
_LEVELS: Mapping[Level, float] = {"markers": 0, "env": 60, "data": 75, "model": 105, "engine": 225}
"""Seconds that the checks of a level and those below it may take: the sums of their budgets."""
_SHARE = 3
"""A node waits for this part of its time, a third, for another command that holds the tree, so that it still has the
time to report that."""
_AGAIN = 3
"""How often commits are sent at most. A second one is for a tree that has changed since it was planned for, for one
that was taken for shared and is not, and for a node that has joined. A guess."""

OnNode = Callable[[Node], None]
"""Is called with each node as its answer comes."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Applied:
    """What an apply came to. `nodes` are the nodes after it."""

    nodes: tuple[Node, ...]
    written: Mapping[str, tuple[str, ...]]
    """The files that were written, by the id of the node that wrote them."""
    shares: Mapping[str, str]
    """By the id of a node that shares its tree with another: the id of the one that patches it."""
    refused: bool = False
    """Whether nothing was written, because records cannot be applied somewhere."""

    @property
    def would_change(self) -> bool:
        """Whether the tree of some node is not yet as the apply would have it."""
        return any(_changes(node) for node in self.nodes)


def verify_nodes(
    session: Session, address: str, level: Level, wish: PreflightOptions, *, wait: float | None = None, on_node: OnNode
) -> tuple[Node, ...]:
    """All nodes with their checks up to a level. `wait` is the seconds that a node has for an answer.

    Raises UsageError for the level `job`, and what `joined` raises.
    """
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

    With `dry_run` nothing is written. `wait` is the seconds that a node has for an answer. Raises what `joined` raises.
    """
    with _asking(session, address, wait or WAIT) as asking:
        before = asking.look(wanted, on_node=on_node)
        refused = any(node.facts is not None and node.facts.plan and node.facts.plan.failed for node in before)
        if dry_run or refused:
            return Applied(before, {}, _shares(before), refused=refused)
        return _apply(asking, wanted, before)


def _apply(asking: Asking, wanted: Wanted, before: tuple[Node, ...]) -> Applied:
    """Send one commit for each tree that would change, then look at all nodes; again until none would change."""
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
    """What one command asks the nodes of a cluster, and what they have answered last."""

    def __init__(self, session: Session, cluster: Cluster, workspace: Workspace, wait: float) -> None:
        """`wait` is the seconds that a node has for an answer."""
        self._cluster = cluster
        self._workspace = workspace
        self._wait = wait
        self._seen: dict[str, Seen] = {}
        root = _root(session)
        self._root = str(root) if root is not None else None
        self._folders: set[str] = set()
        self._files: set[str] = set()
        with contextlib.suppress(RecordError):  # The plan for each tree reports it.
            self._files = {file for record in load(session.folders) for file in record.files}

    def look(
        self,
        wanted: Wanted | None,
        level: Level = "markers",
        *,
        without: Sequence[Node] = (),
        on_node: OnNode = lambda _: None,
    ) -> tuple[Node, ...]:
        """All nodes but `without`, with the plans for their trees: the checks of `level` that need no program on the
        node, and what an apply would do if one is `wanted`.
        """
        found = {node.id: node for node in self._look(None, without, on_node)}
        # A tree's settings may name folders with records, and these name files: both have to be asked for then.
        for _ in range(2):
            unread = [node for node in found.values() if self._has_unread(node)]
            found |= {node.id: node for node in self._look(unread, (), lambda _: None)} if unread else {}
        return named([self._planned(node, wanted, level) for node in found.values()])

    def _look(self, only: Sequence[Node] | None, without: Sequence[Node], on_node: OnNode) -> Iterator[Node]:
        """Ask `node_look` of the nodes, and keep the answers."""
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
        """Whether a plan for the node's tree needs folders or files that were not asked for; they are from now on."""
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
        """Have each of the nodes write what was planned for its tree by the last look.

        Gives each node and the files that it has written: no file where its tree has changed since; None where it
        failed, with the reason in the node.
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
        """The nodes with their checks above the markers, up to the level. All run them at the same time."""

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
    """The node with its checks; with the error that came in their place; or lost."""
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
    """Ends work on a node that needs the answer to calls which were not sent yet.

    It is a BaseException so that no `except Exception` of that work catches it.
    """

    def __init__(self, calls: Sequence[Call]) -> None:
        self.calls = calls


def at_once(
    cluster: Cluster, nodes: Sequence[Node], work: Callable[[Node, Channel], T], limit: float
) -> dict[str, T | Node | UkyError]:
    """What `work` gives for each node, by the node's id; in its place the error where it fails, the node where that is
    lost.

    `work` is ordinary code for one host, which asks its channel several questions in turn. To run it for all nodes at
    the same time without threads, the first question of each is sent together. With the answers each `work` is called
    again from its beginning, and gets as far as its next question; and so on. So it must do the same with the same
    answers, and have no other effect. A node has `limit` seconds for each question.
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
    """A function for `NodeConnection` that gives these replies in turn, and then raises `_Unanswered`."""
    left = iter(replies)

    def send(calls: Sequence[Call]) -> Reply:
        for reply in left:
            return reply
        raise _Unanswered(calls)

    return send


def _with_lost(nodes: Sequence[Node], before: Sequence[Node]) -> tuple[Node, ...]:
    """`nodes`, and those of `before` that have left the cluster since."""
    there = {node.id for node in nodes}
    gone = [node if node.facts is None else replace(node, state="died", facts=None) for node in before]
    joined = {node.id for node in nodes} - {node.id for node in before}
    stayed = [replace(node, added=node.added or node.id in joined) for node in nodes]
    return (*stayed, *(node for node in gone if node.id not in there))


def _with_failure(node: Node, failed: Node | None) -> Node:
    """The node with the error of its own commit, if that has `failed`."""
    if failed is None or node.facts is None:
        return node
    if failed.facts is None:
        return replace(node, state=failed.state, detail=failed.detail)
    return replace(node, facts=failed.facts)


def _changes(node: Node) -> bool:
    facts = node.facts
    return facts is not None and facts.plan is not None and bool(facts.plan.would_change)


def _shares(nodes: Sequence[Node]) -> dict[str, str]:
    """As `Applied.shares`."""
    return {other.id: group[0].id for group in trees(nodes) for other in group[1:]}


def _root(session: Session) -> Path | None:
    """The tree's path, the same on all nodes: as the user gives it, else that of the tree around the working folder.

    None where there is neither: then each node takes the tree whose verl its workers import.
    """
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
    """What is installed under the interpreter that has Ray: the one that the user names, else the one that commands on
    this machine take.

    Raises UsageError where the settings of a tree name it and the user does not trust the tree.
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
