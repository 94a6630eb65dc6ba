"""Plan here for the trees of nodes, once for all nodes that have the same tree and the same packages.

Nodes tell the digests of the files that a plan reads (`patcher.cluster.agent.node.look`). From these a copy of the tree
is made in a folder of this machine. A file comes from the tree here if that has the same bytes, else from one node that
has it. A session on the copy then answers what `status`, `verify` and `apply` would answer on the node, and what is to
be written there goes back as bytes, with the digests that it was planned on.
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
    """What the command line says about an apply."""

    ids: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    allow_dirty: bool = False
    merge: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """A node, and the answer of its `node_look`."""

    node: Node
    answer: Mapping[str, Any]

    @property
    def tree(self) -> Mapping[str, Any] | None:
        """What it tells of its tree; None where it has no usable one."""
        found: Mapping[str, Any] | None = self.answer.get("tree")
        return found

    @property
    def key(self) -> str:
        """Equal for nodes that can share a plan: same files, packages and paths."""
        assert self.tree is not None
        parts = [self.answer["root"], self.answer["interpreter"], self.tree["plan"], self.tree["delivered"]]
        return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class NodePlan:
    """What was found out for nodes that are alike."""

    session: Session
    versions: Mapping[str, str] = field(default_factory=dict)
    records: Mapping[str, str] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()
    tree: TreePlan | None = None
    commit: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of `node_commit`."""
    error: Phrase | Phrases | str = NOTHING
    fix: Phrase | Phrases | str = NOTHING

    def facts(self, facts: Facts) -> Facts:
        """`facts` of one of the nodes, with what follows from the plan."""
        if self.error:
            return replace(facts, error=self.error, fix=self.fix, plan=self.tree)
        return replace(facts, versions=self.versions, records=self.records, checks=self.checks, plan=self.tree)


class NodeConnection:
    """Stands for a connection to a node, where one call is one task there. It opens the tree anew before each."""

    run = ""

    def __init__(self, send: Callable[[Sequence[Call]], Reply]) -> None:
        """`send` has the node answer calls, and gives the reply to the last."""
        self._send = send
        self._begin: tuple[Call, ...] = ()

    def ask(self, verb: str, *, body: bytes = b"", on_event: OnEvent = lambda *_: None, **args: Any) -> Answer:
        """As `Channel.ask`. Raises also HostError where the node gives no answer."""
        assert not body, "no verb that nodes are asked for takes a body"
        call = (verb, args)
        if verb == "begin":
            self._begin = (call,)
            return self._send(self._begin).answer(on_event)
        return self._send((*self._begin, call)).answer(on_event)

    def ended_runs(self) -> list[str]:
        return []


class Workspace:
    """The copies of trees, and the plans made on them, for one command on a cluster."""

    def __init__(self, session: Session, here: Environment, folder: Path, cluster: Cluster, limit: float) -> None:
        """Copies go below `folder`, which exists; a node has `limit` seconds for each question.

        `here` is what is installed on this machine: its sources are read where a node has the same version.
        """
        self._session = session
        self._here = here
        self._folder = folder
        self._cluster = cluster
        self._limit = limit
        self._contents: dict[str, Path] = {}
        self._sessions: dict[str, Session] = {}
        self._plans: dict[tuple[str, Wanted | None, Level], NodePlan] = {}

    def unread(self, seen: Seen, known: Iterable[str]) -> tuple[set[str], set[str]]:
        """Folders of records and files that the tree's own settings and records name beyond `known`."""
        assert seen.tree is not None
        known = {*known, *seen.tree["plan"]}
        try:
            session = self.session(seen)
            folders = {path.relative_to(session.tree.root).as_posix() for path in session.config.patches} - known
            return folders, set(record_file_names(session)) - known
        except (UkyError, ValueError):
            return set(), set()  # The plan will tell what is wrong with them.

    def plan(self, seen: Seen, wanted: Wanted | None, level: Level) -> NodePlan:
        """How the node's tree stands, and what an apply would do there if one is `wanted`. Errors are part of it."""
        key = (seen.key, wanted, level)
        if key not in self._plans:
            try:
                session = self.session(seen)
                self._plans[key] = _there(_plan(session, wanted, level), session, str(seen.answer["root"]))
            except UkyError as error:
                root = seen.answer["root"]
                failure = NodePlan(self._session, error=_reason(error), fix=error.advice)
                self._plans[key] = _there(failure, self._sessions.get(seen.key), root)
        return self._plans[key]

    def session(self, seen: Seen) -> Session:
        """A session on a copy of the node's tree. Raises HostError where a file cannot be had from the node."""
        key = seen.key
        if key not in self._sessions:
            self._sessions[key] = self._copy(seen, self._folder / key[:16])
        return self._sessions[key]

    def _copy(self, seen: Seen, root: Path) -> Session:
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
        """Have the contents of these files, by the digest of each: from the tree here, else from the node."""
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
        """Whether this is the content with that digest; then it is kept."""
        if digest_of(content) != sha:
            return False
        place = self._folder / "contents" / sha
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        self._contents[sha] = place
        return True


def _read(path: Path) -> bytes:
    try:
        return files.read(path, files.SOURCE_BYTES)
    except OSError:
        return b""


def _plan(session: Session, wanted: Wanted | None, level: Level) -> NodePlan:
    tree, commit = None, dict[str, Any]()
    if wanted is not None:
        session.require_environment()
        request = session.request(wanted.ids, wanted.tags, wanted.skip)
        order = Order(request, allow_dirty=wanted.allow_dirty, merge=wanted.merge)
        done, found = preview_with_snapshot(session, order)
        tree = TreePlan({one.id: one.detail for one in done.plan.failed}, done.would_change)
        _, ledger = as_written(session, order, done.plan, found)
        release = (dump(found.forgotten).decode(), found.replaced.before) if found.forgotten else None
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
        session,
        session.versions,
        {one.id: one.kind for one in outcomes},
        node_checks(checks),
        tree,
        commit,
    )


def node_checks(checks: Iterable[Check]) -> tuple[Check, ...]:
    """Those that are shown of a node: of its markers, only what does not hold."""
    return tuple(one for one in checks if one.level != "markers" or one.status in ("warn", "fail"))


def _as_text(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def error_of(error: UkyError, facts: Facts) -> Facts:
    """`facts` of a node whose tree cannot be worked on."""
    return replace(facts, error=_reason(error), fix=error.advice)


def _reason(error: UkyError) -> Phrases:
    return Phrases(tuple(part for part in (error.title, error.cause) if part))


def _there(plan: NodePlan, session: Session | None, root: str) -> NodePlan:
    """The plan with the tree's path on the node in place of the copy's."""
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
