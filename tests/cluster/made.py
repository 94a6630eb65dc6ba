"""Nodes as values, for tests that need no cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from patcher.cluster.model import Clock, Facts, Identity, Node, Room, named

GIB = 1 << 30
PLENTY = Room(100 * GIB, 200 * GIB)


def facts(**changes: Any) -> Facts:
    plain = Facts(
        hostname="box",
        root="/fork",
        imported="/fork/verl",
        python="3.11.7",
        versions={"verl": "0.6.1", "vllm": "0.20.2"},
        variables={"NCCL_DEBUG": "WARN"},
        gpus=(),
        driver="",
        disks={"tree": PLENTY, "tmp": PLENTY, "shm": PLENTY},
        seconds=0.5,
        files={"verl/a.py": "1", "verl/b.py": "2"},
        records={"one": "applied", "two": "not-needed"},
        identity=identity(),
    )
    return replace(plain, **changes)


def identity(**changes: Any) -> Identity:
    return replace(Identity(boot="k1", device=1, inode=10, born=5, kind="ext4"), **changes)


def node(name: str, there: Facts | None = None, **changes: Any) -> Node:
    plain = Node(
        id=f"id-of-{name}",
        label=name,
        hostname="box",
        address="10.0.0.1",
        head=name == "head",
        gpus=0,
        added=False,
        state="answered",
        facts=there,
        clock=Clock(0.0, 0.001) if there else None,
        name=name,
    )
    return replace(plain, **changes)


def alike(*names: str, **odd: Facts) -> tuple[Node, ...]:
    """Nodes in the order in which they are shown, plain ones and odd ones, each tree on a disk of its own."""
    nodes = [node(name, facts()) for name in names] + [node(name, there) for name, there in odd.items()]
    apart = []
    for number, one in enumerate(nodes):
        assert one.facts is not None
        apart.append(replace(one, facts=replace(one.facts, identity=identity(device=number))))
    return named(apart)
