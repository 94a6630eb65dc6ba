"""The other nodes of a cluster: whoever does not answer is told, and the others are watched."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patcher.cluster import joining
from patcher.cluster.model import named, node_of
from patcher.session.session import Session
from patcher.watch.machines import other_nodes

if TYPE_CHECKING:
    import pytest

NODES = {
    node.id: node
    for node in named(
        tuple(
            replace(node_of({"id": name, "name": name, "label": name, "address": name}), state="late")
            for name in ("near", "mute")
        )
    )
}


class Half:
    """A cluster of two nodes, one of which says nothing."""

    gcs = "10.0.0.1:6379"
    looked_at = NODES

    def see(self, *_: object, **__: object) -> dict[str, Any]:
        return {"near": (NODES["near"], "another machine")}


def test_a_node_that_does_not_begin_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextlib.contextmanager
    def joined(*_: object) -> Iterator[Half]:
        yield Half()

    monkeypatch.setattr(joining, "joined", joined)
    told: list[str] = []
    with contextlib.ExitStack() as stack:
        session = Session(root_option=Path(), python=Path("python"))
        monkeypatch.setattr("patcher.cluster.nodes.interpreter", lambda _: Path("python"))
        address, nodes = other_nodes(session, "auto", None, lambda said: told.append(str(said)), stack)
    assert address == "10.0.0.1:6379"
    assert [node.name for node in nodes] == ["near"]
    assert told == ["mute gives no answer: it is watched without"]
