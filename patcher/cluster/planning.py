"""Plan on this machine for the trees of nodes, once for all nodes that have the same tree and the same packages.

A node tells the digests of the files that a plan reads (`patcher.cluster.node.look`). By these a copy of its tree
is made in a folder here: a file comes from the tree here if that has the same bytes, else from the node. A session on
the copy then answers what `status`, `verify` and `apply` would answer on the node. What is to be written there is sent
as bytes, with the digests of the files that the plan was made from.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from patcher.checks import Check, Level
from patcher.cluster.joining import Call, Cluster
from patcher.cluster.model import Facts, Node, Reply, TreePlan
from patcher.errors import HostError, UkyError
from patcher.i18n import NOTHING, Phrase, Phrases, phrase
from patcher.i18n.codec import decode, encode
from patcher.migrate.host_symbols import HostLookup
from patcher.packages.environment import Environment
from patcher.patching.applying import Order, as_written, changes, preview_with_snapshot
from patcher.patching.status import records_status
from patcher.patching.verifying import checks_here, marker_checks
from patcher.remote.channel import Answer, Channel, OnEvent
from patcher.remote.connection import Connection
from patcher.remote.environment import environment_under
from patcher.remote.host import HERE, Host
from patcher.remote.survey import parse_interpreter
from patcher.session.session import Session
from patcher.session.snapshot import record_file_names
from patcher.worktree import files
from patcher.worktree.hashing import digest_of
from patcher.worktree.ledger import dump


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options of `uky-patch apply` that plans need."""

    ids: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    allow_dirty: bool = False
    merge: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """A node, and its answer to `node_look`."""

    node: Node
    answer: Mapping[str, Any]

    @property
    def tree(self) -> Mapping[str, Any] | None:
        """What it tells of its tree; None where it has no usable one."""
        found: Mapping[str, Any] | None = self.answer.get("tree")
        return found

    @property
    def key(self) -> str:
        """Equal for nodes that can share a plan, because files, packages and paths are the same."""
        assert self.tree is not None
        parts = [self.answer["root"], self.answer["interpreter"], self.tree["plan"], self.tree["delivered"]]
        return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class NodePlan:
    """The outcome of planning, for all nodes with the same `Seen.key`."""

    versions: Mapping[str, str] = field(default_factory=dict)
    """By package."""
    records: Mapping[str, str] = field(default_factory=dict)
    """The kind of outcome, by record."""
    checks: tuple[Check, ...] = ()
    tree: TreePlan | None = None
    commit: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of `node_commit`; empty where no apply is wanted."""
    error: Phrase | Phrases | str = NOTHING
    fix: Phrase | Phrases | str = NOTHING

    def facts(self, facts: Facts) -> Facts:
        """`facts` of one of the nodes, with what the plan adds to them."""
        if self.error:
            return replace(facts, error=self.error, fix=self.fix, plan=self.tree)
        return replace(facts, versions=self.versions, records=self.records, checks=self.checks, plan=self.tree)


class NodeConnection:
    """Takes the place of a `Channel` for code that asks a host, where each call is a task of its own on a node.

    Nothing lasts from one task to the next, so the call that opens the tree (`begin`) is sent again before each.
    """

    run = ""

    def __init__(self, send: Callable[[Sequence[Call]], Reply]) -> None:
        """`send` has the node answer calls one after another, and gives the reply to the last."""
        self._send = send
        self._begin: tuple[Call, ...] = ()

    def ask(self, verb: str, *, body: bytes = b"", on_event: OnEvent = lambda *_: None, **args: Any) -> Answer:
        """As `Channel.ask`. Raises also what `send` raises where the node gives no answer."""
        assert not body, "no verb that nodes are asked for takes a body"
        call = (verb, args)
        if verb == "begin":
            self._begin = (call,)
            return self._send(self._begin).answer(on_event)
        return self._send((*self._begin, call)).answer(on_event)

    def ended_runs(self) -> list[str]:
        """As `Channel.ended_runs`: no lock outlasts a task."""
        return []


class Workspace:
    """The copies of trees, and the plans made on them, for one command on a cluster."""

    def __init__(self, session: Session, here: Environment, folder: Path, cluster: Cluster, limit: float) -> None:
        """Copies go below `folder`, which exists; a node has `limit` seconds for each question.

        `here` is what is installed on this machine. Where a node has the same version of a package, its symbols are
        looked up in the sources here.
        """
        self._session = session
        self._here = here
        self._folder = folder
        self._cluster = cluster
        self._limit = limit
        self._contents: dict[str, Path] = {}
        """Files with contents that were read here or fetched from a node, by their digest."""
        self._sessions: dict[str, Session] = {}
        self._plans: dict[tuple[str, Wanted | None, Level], NodePlan] = {}

    def unread(self, seen: Seen, known: Iterable[str]) -> tuple[set[str], set[str]]:
        """Folders with records, and files, that the tree's own settings and records name and that are not `known`.

        Nothing for a tree whose settings or records are wrong: the plan reports that.
        """
        assert seen.tree is not None
        known = {*known, *seen.tree["plan"]}
        try:
            session = self.session(seen)
            folders = {path.relative_to(session.tree.root).as_posix() for path in session.config.patches} - known
            return folders, set(record_file_names(session)) - known
        except (UkyError, ValueError):
            return set(), set()

    def plan(self, seen: Seen, wanted: Wanted | None, level: Level) -> NodePlan:
        """The plan for the node's tree: the outcome of each record, the checks of a level, and what an apply would do
        if one is `wanted`. An error is a part of it, and is not raised.
        """
        key = (seen.key, wanted, level)
        if key not in self._plans:
            try:
                session = self.session(seen)
                self._plans[key] = _there(_plan(session, wanted, level), session, str(seen.answer["root"]))
            except UkyError as error:
                root = seen.answer["root"]
                failure = NodePlan(error=_reason(error), fix=error.advice)
                self._plans[key] = _there(failure, self._sessions.get(seen.key), root)
        return self._plans[key]

    def session(self, seen: Seen) -> Session:
        """A session on a copy of the node's tree. Raises HostError where the node does not give a file."""
        key = seen.key
        if key not in self._sessions:
            self._sessions[key] = self._copy(seen, self._folder / key[:16])
        return self._sessions[key]

    def _copy(self, seen: Seen, root: Path) -> Session:
        """Make the copy at `root`, and a session on it that believes the node's packages and git instead of this
        machine's.
        """
        assert seen.tree is not None
        wanted = {path: (sha, mode) for path, (sha, mode) in seen.tree["plan"].items()}
        self._fetch(seen, {path: sha for path, (sha, _) in wanted.items() if sha not in self._contents})
        for path, (sha, mode) in wanted.items():
            place = root / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(self._contents[sha].read_bytes())
            place.chmod(mode)
        python = parse_interpreter(seen.answer["interpreter"])
        there = environment_under(python, seen.answer["root"], root, self._session.assume)
        connection = Connection(
            Host(HERE, HERE), cast("Channel", NodeConnection(lambda calls: self.ask(seen.node, calls)))
        )
        return replace(
            self._session,
            root_option=root,
            python=Path(python.python),
            output="json",
            given_environment=there,
            given_lookup=HostLookup(there, self._here, connection),
            given_delivered=frozenset(seen.tree["delivered"]),
        )

    def ask(self, node: Node, calls: Sequence[Call]) -> Reply:
        """The reply of one node to the last of `calls`. Raises HostError where it gives none."""
        for found, replies in self._cluster.ask(calls, self._limit, only=[node]):
            if replies:
                return replies[-1]
            raise HostError(phrase("{node} gives no answer any more", node=node.name), cause=str(found.detail))
        raise HostError(phrase("{node} gives no answer any more", node=node.name))

    def _fetch(self, seen: Seen, wanted: Mapping[str, str]) -> None:
        """Get the contents of these files, whose digests are given: from the tree here, else from the node.

        Raises HostError where a file has changed on the node since it was looked at.
        """
        here = self._session.root_option or self._session.root_if_any
        missing = []
        for path, sha in wanted.items():
            content = _read(here / path) if here is not None else b""
            if not self._keep(sha, content):
                missing.append(path)
        if not missing:
            return
        root = seen.answer["root"]
        answer = self.ask(seen.node, [("node_texts", {"root": root, "paths": missing})]).answer()
        body, start = zlib.decompress(answer.body), 0
        for path, size in zip(missing, answer["sizes"], strict=True):
            content, start = body[start : start + max(size, 0)], start + max(size, 0)
            if not self._keep(wanted[path], content):
                raise HostError(
                    phrase("{path}: changed while the cluster was being asked", path=path),
                    advice=phrase("Run the command again."),
                )

    def _keep(self, sha: str, content: bytes) -> bool:
        """Keep the content if it has that digest, and tell whether it has."""
        if digest_of(content) != sha:
            return False
        place = self._folder / "contents" / sha
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        self._contents[sha] = place
        return True


def _read(path: Path) -> bytes:
    """The content of a file; nothing where it cannot be read: its digest then tells that it is another."""
    try:
        return files.read(path, files.SOURCE_BYTES)
    except OSError:
        return b""


def _plan(session: Session, wanted: Wanted | None, level: Level) -> NodePlan:
    """The plan for the copy that `session` works on. Raises UkyError."""
    tree, commit = None, dict[str, Any]()
    if wanted is not None:
        session.require_environment()
        request = session.request(wanted.ids, wanted.tags, wanted.skip)
        order = Order(request, allow_dirty=wanted.allow_dirty, merge=wanted.merge)
        done, found = preview_with_snapshot(session, order)
        tree = TreePlan({one.id: one.detail for one in done.plan.failed}, done.would_change)
        _, ledger = as_written(session, order, done.plan, found)
        forgotten = found.forgotten(done.plan.files)
        release = (dump(forgotten).decode(), found.replaced.before) if forgotten else None
        commit = {
            "changes": [
                (each.path, each.expect_sha, None if each.content is None else _as_text(each.content))
                for each in changes(done.plan, found)
            ],
            "planned_on": {path: found.sha256(path) for path in found.situation.files},
            "ledger_before": digest_of(dump(session.tree.ledger())),
            "ledger": dump(ledger).decode(),
            "originals": {sha: _as_text(content) for sha, content in found.originals.items()},
            "release": release,
            "allow_dirty": order.allow_dirty,
        }
    outcomes = records_status(session).outcomes
    checks = marker_checks(session) if level == "markers" else checks_here(session)
    return NodePlan(
        session.versions,
        {one.id: one.kind for one in outcomes},
        node_checks(checks),
        tree,
        commit,
    )


def node_checks(checks: Iterable[Check]) -> tuple[Check, ...]:
    """The checks of a node that are shown: of the level `markers` only those that fail."""
    return tuple(one for one in checks if one.level != "markers" or one.status in ("warn", "fail"))


def _as_text(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def error_of(error: UkyError, facts: Facts) -> Facts:
    """`facts` with the error for which nothing can be done with the node's tree."""
    return replace(facts, error=_reason(error), fix=error.advice)


def _reason(error: UkyError) -> Phrases:
    return Phrases(tuple(part for part in (error.title, error.cause) if part))


def _there(plan: NodePlan, session: Session | None, root: str) -> NodePlan:
    """The plan with the tree's path on the node in all sentences, in place of the copy's.

    A sentence may hold the path in a field of a phrase within a phrase, so it is replaced in the sentence's JSON form.
    """
    if session is None or session.root_option is None:
        return plan
    copy = str(session.root_option)

    def moved(value: Any) -> Any:
        return decode(json.loads(json.dumps(encode(value)).replace(json.dumps(copy)[1:-1], json.dumps(root)[1:-1])))

    failed = {name: moved(why) for name, why in plan.tree.failed.items()} if plan.tree is not None else {}
    return replace(
        plan,
        checks=tuple(replace(one, detail=moved(one.detail), fix=moved(one.fix)) for one in plan.checks),
        tree=replace(plan.tree, failed=failed) if plan.tree is not None else None,
        error=moved(plan.error) if plan.error else NOTHING,
        fix=moved(plan.fix) if plan.fix else NOTHING,
    )
