"""Events of the driver -> nodes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

from patcher.checks import Check
from patcher.cluster.model import Clock, Facts, Identity, Node, Room, Round, State
from patcher.i18n import NOTHING, Phrases, phrase
from patcher.i18n.codec import decode


def node_of(told: Mapping[str, Any], end: Mapping[str, Any]) -> Node:
    """A node by the event that it was asked, `told`, and the one that ended it."""
    node = Node(
        id=told["id"],
        label=told.get("label", ""),
        hostname=told.get("name", ""),
        address=told.get("address", ""),
        head=bool(told.get("head")),
        gpus=int(told.get("resources", {}).get("GPU", 0)),
        added=bool(told.get("added")),
        state="answered",
    )
    if end["event"] == "lost":
        state: State = end["why"] if end["why"] in get_args(State) else "failed"
        return replace(node, state=state, detail=end.get("told") or NOTHING)
    answer = end["answer"]
    if "crashed" in answer:
        return replace(node, state="failed", detail=_crash(answer))
    clock = Clock(*end["clock"]) if end.get("clock") else None
    return replace(node, facts=facts_of(answer), clock=clock, hostname=answer["hostname"])


def _crash(answer: Mapping[str, Any]) -> Any:
    version = tuple(int(part) for part in str(answer["python"]).split(".")[:2])
    if version < (3, 10):
        return phrase("its workers run Python {version}; 3.10 or later is needed", version=answer["python"])
    return str(answer["crashed"]).splitlines()[-1][:500]


def facts_of(answer: Mapping[str, Any]) -> Facts:
    """What a node's program said."""
    error = answer.get("error")
    found = answer.get("round")
    identity = answer.get("identity")
    return Facts(
        hostname=answer["hostname"],
        root=answer["root"],
        imported=answer["imported"],
        python=answer["python"]["version"],
        executable=answer["python"]["executable"],
        versions=answer.get("versions", {}),
        variables=answer["variables"],
        gpus=tuple(gpu["name"] for gpu in answer["gpus"]),
        driver=next((gpu["driver"] for gpu in answer["gpus"]), "") or "",
        disks={name: Room(room["free"], room["size"]) for name, room in answer["disks"].items() if room is not None},
        seconds=answer["seconds"],
        files=answer.get("files", {}),
        records={name: told["kind"] for name, told in answer.get("records", {}).items()},
        checks=tuple(Check.decode(told) for told in answer.get("checks", ())),
        identity=Identity(**identity) if identity else None,
        round=_round(found) if found else None,
        error=Phrases(tuple(decode(error[part]) for part in ("title", "cause") if error[part])) if error else NOTHING,
        fix=decode(error["advice"]) if error else NOTHING,
    )


def _round(told: Mapping[str, Any]) -> Round:
    failed = {name: decode(detail) for name, detail in told["failed"].items()}
    return Round(failed, tuple(told["would_change"]), tuple(told["written"]))


def named(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """In order, the head first, and each with a name that no other has: the one that it was given, else its host's.

    The address, and then a part of its id, follow where that is not enough.
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
    """What a node is called without regard to others."""
    return node.label if node.label not in ("", node.address) else node.hostname or node.address or node.id[:8]


def _numbers(name: str) -> tuple[tuple[str, int], ...]:
    """A key by which `n2` comes before `n10`."""
    return tuple((text, int(digits or 0)) for text, digits in re.findall(r"(\D*)(\d*)", name))
