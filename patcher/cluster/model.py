"""A node of a cluster and what it tells of itself, as values; which nodes share a tree, and what nodes are called."""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from patcher.checks import Check
from patcher.i18n import NOTHING, Phrase, Phrases, phrase
from patcher.i18n.codec import decode
from patcher.remote.agent import frames
from patcher.remote.channel import Answer, OnEvent, answer_of

State = Literal["answered", "died", "late", "failed"]
"""`died`: the node has left the cluster; `late`: it gave no answer within the limit; `failed`: Ray's worker, or the
agent on it, has failed."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Tells which tree a path leads to, from any node that sees it."""

    boot: str
    """The id of the kernel's start: device numbers mean nothing on another machine."""
    device: int
    inode: int
    born: int
    """When the folder's inode last changed, in ns."""
    kind: str
    """The type of the file system: ext4, nfs4."""


@dataclass(frozen=True, slots=True)
class Room:
    """Bytes of a file system, free and in all; None where it does not tell."""

    free: int | None
    size: int | None


@dataclass(frozen=True, slots=True)
class TreePlan:
    """What an apply would do to a node's tree."""

    failed: Mapping[str, Phrase | Phrases | str]
    """By record that cannot be applied, the reason."""
    would_change: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """What a node that answered tells. Where it has no usable tree, `error` says why, and what is about the tree is
    empty.
    """

    hostname: str
    root: str | None
    """The tree's path on the node."""
    imported: str | None
    """Folder of the verl that a worker imports."""
    python: str
    """The version of Python that workers run."""
    versions: Mapping[str, str]
    """By package."""
    variables: Mapping[str, str]
    """As a worker sees them; only those that may be shown."""
    gpus: tuple[str, ...]
    """The name of each GPU that nvidia-smi lists."""
    driver: str
    disks: Mapping[str, Room]
    """`tree`, `tmp` and `shm`."""
    seconds: float
    """How long the answer took there."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Digests of the files in the tree's packages, by path; an empty digest for one that cannot be read."""
    records: Mapping[str, str] = field(default_factory=dict)
    """The kind of outcome by record, such as `pending` or `applied`."""
    checks: tuple[Check, ...] = ()
    identity: Identity | None = None
    plan: TreePlan | None = None
    error: Phrase | Phrases | str = NOTHING
    fix: Phrase | Phrases | str = NOTHING

    @property
    def failed(self) -> bool:
        """Whether the tree cannot be looked at, or records cannot be applied."""
        return bool(self.error) or (self.plan is not None and bool(self.plan.failed))

    @property
    def pending(self) -> tuple[str, ...]:
        """Records that are needed and not applied."""
        return tuple(sorted(name for name, kind in self.records.items() if kind == "pending"))


@dataclass(frozen=True, slots=True)
class Clock:
    """Seconds that a node's clock is ahead of this machine's, give or take `uncertain` seconds."""

    ahead: float
    uncertain: float


@dataclass(frozen=True, slots=True)
class Node:
    """One node of the cluster, by the id that Ray gives it."""

    id: str
    label: str
    """The name given by `ray start --node-name`; the address where none was given."""
    hostname: str
    address: str
    head: bool
    gpus: int
    """As Ray counts them."""
    added: bool
    """Whether it joined while the others were being asked."""
    state: State
    detail: Phrase | Phrases | str = NOTHING
    facts: Facts | None = None
    clock: Clock | None = None
    name: str = ""
    """What it is called in reports: the shortest name that no other node has (`named`)."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the agent on a node answered to one call."""

    verb: str
    message: Mapping[str, Any]
    body: bytes
    events: tuple[tuple[Mapping[str, Any], bytes], ...] = ()

    def answer(self, on_event: OnEvent = lambda *_: None) -> Answer:
        """The answer, after `on_event` was called with each event. Raises what `answer_of` raises."""
        for event, body in self.events:
            on_event(event, body)
        return answer_of(self.verb, self.message, self.body)


def node_of(entry: Mapping[str, Any]) -> Node:
    """A node as the driver's event `node` tells of it. It counts as answered until something else is known."""
    return Node(
        id=entry["id"],
        label=entry.get("label", ""),
        hostname=entry.get("name", ""),
        address=entry.get("address", ""),
        head=bool(entry.get("head")),
        gpus=int(entry.get("resources", {}).get("GPU", 0)),
        added=bool(entry.get("added")),
        state="answered",
    )


def failed_node(node: Node, event: Mapping[str, Any]) -> Node:
    """The node with the state and the reason of the driver's event `lost`."""
    state: State = event["why"] if event.get("why") in get_args(State) else "failed"
    return replace(node, state=state, detail=event.get("text") or NOTHING)


def replies_of(node: Node, event: Mapping[str, Any], verbs: Sequence[str]) -> tuple[Node, tuple[Reply, ...]]:
    """The node and its replies to `verbs`, from the driver's event `answer`.

    Where the agent has crashed, or has not answered all of them, the node is `failed`, and there are no replies.
    """
    ends: dict[int, Reply] = {}
    events: dict[int, list[tuple[Mapping[str, Any], bytes]]] = {}
    try:
        for message, body in frames.read_all(base64.b64decode(event["answers"])):
            number = message["id"]
            if "event" in message:
                events.setdefault(number, []).append((message["event"], body))
            else:
                ends[number] = Reply(verbs[number], message, body, tuple(events.get(number, ())))
    except (ValueError, KeyError, TypeError, IndexError):
        ends = {}
    crash = next((reply.message["bug"] for reply in ends.values() if "bug" in reply.message), None)
    if crash is not None or len(ends) < len(verbs):
        return replace(node, state="failed", detail=_crash(crash or event["failed"], event["python"])), ()
    clock = Clock(*event["clock"]) if event.get("clock") else None
    return replace(node, clock=clock), tuple(ends[number] for number in range(len(verbs)))


def _crash(output: str, python: str) -> Phrase | str:
    """Why the agent has failed: a Python that is too old, else the last line of its output."""
    if tuple(int(part) for part in python.split(".")[:2]) < (3, 10):
        return phrase("its workers run Python {version}; 3.10 or later is needed", version=python)
    return output.strip().splitlines()[-1][:500]


def facts_of(answer: Mapping[str, Any]) -> Facts:
    """The answer of the verb `node_look`, typed. Versions, records and plan are added later, by a plan for the tree."""
    error, tree = answer.get("error"), answer.get("tree")
    identity = tree["identity"] if tree else None
    return Facts(
        hostname=answer["hostname"],
        root=answer["root"],
        imported=answer["imported"],
        python=answer["python"]["version"],
        versions={},
        variables=answer["variables"],
        gpus=tuple(gpu["name"] for gpu in answer["gpus"]),
        driver=next((gpu["driver"] for gpu in answer["gpus"]), "") or "",
        disks={name: Room(room["free"], room["size"]) for name, room in answer["disks"].items() if room is not None},
        seconds=answer["seconds"],
        files=tree["contents"] if tree else {},
        identity=Identity(**identity) if identity else None,
        error=Phrases(tuple(decode(error[part]) for part in ("title", "cause") if error[part])) if error else NOTHING,
        fix=decode(error["advice"]) if error else NOTHING,
    )


def named(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """The nodes in order, the head first, and each with a `name` that no other has.

    That is its own name; where others have the same, the address follows, and then a part of the id: `gpu-7`,
    `box/10.0.0.1`, `box/10.0.0.1/0abcde`.
    """
    nodes = sorted(nodes, key=lambda node: (not node.head, _numbers(own_name(node)), node.address, node.id))
    names = [own_name(node) for node in nodes]
    for more in ("address", "id"):
        counts = Counter(names)
        names = [
            name if counts[name] == 1 else f"{name}/{str(getattr(node, more))[: 15 if more == 'address' else 6]}"
            for name, node in zip(names, nodes, strict=True)
        ]
    return tuple(replace(node, name=name) for name, node in zip(names, nodes, strict=True))


def own_name(node: Node) -> str:
    """The name that `ray start` was given, else the host's, else the address or a part of the id."""
    return node.label if node.label not in ("", node.address) else node.hostname or node.address or node.id[:8]


def _numbers(name: str) -> tuple[tuple[str, int], ...]:
    """A key by which `n2` comes before `n10`."""
    return tuple((text, int(digits or 0)) for text, digits in re.findall(r"(\D*)(\d*)", name))


NETWORK = (
    *("nfs", "nfs3", "nfs4", "lustre", "gpfs", "ceph", "beegfs", "glusterfs", "cifs", "smb2", "smb3", "9p", "afs"),
    *("virtiofs", "wekafs", "orangefs", "pvfs2", "panfs", "vastnfs", "cpfs", "ocfs2", "gfs2"),
)
"""Types of file systems that several machines see."""
_LOCAL_FUSE = ("fuse.fuse-overlayfs", "fuse.lxcfs", "fuse.ntfs", "fuseblk")
"""Types of FUSE that are not: any other one, such as `fuse.juicefs`, is taken for shared."""


def is_shared_storage(identity: Identity) -> bool:
    """Whether a file system is one that several machines see."""
    kind = identity.kind
    return kind in NETWORK or (kind.startswith("fuse") and kind not in _LOCAL_FUSE)


def trees(nodes: Sequence[Node]) -> tuple[tuple[Node, ...], ...]:
    """The nodes that have a tree, in groups that share one; each group in the order of `nodes`.

    On a local disk a tree is known by kernel, device and inode. On a network file system the device number differs from
    machine to machine; there inode and time of change tell.
    """
    groups: dict[tuple[object, ...], list[Node]] = {}
    for node in nodes:
        if node.facts is not None and node.facts.identity is not None:
            groups.setdefault(_key(node.facts.identity), []).append(node)
    return tuple(tuple(group) for group in groups.values())


def _key(one: Identity) -> tuple[object, ...]:
    if is_shared_storage(one):
        return "network", one.inode, one.born
    return one.boot, one.device, one.inode
