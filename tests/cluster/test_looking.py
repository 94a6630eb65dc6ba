"""`verify --ray` on a real cluster."""

from __future__ import annotations

import pytest

from tests.cluster.conftest import Uky
from tests.cluster.raylets import Node, RealCluster

pytestmark = pytest.mark.hosts


def test_nodes_that_are_alike(cluster: RealCluster, uky: Uky) -> None:
    with cluster.nodes("near", "far", far=Node(far=True)) as (_, far):
        applied = uky("apply")
        assert applied.code == 0, applied.out
        done = uky("verify")
        assert done.code == 0, done.out
        assert list(done.nodes) == ["head", "far", "near"]
        assert done.nodes["far"]["address"] == far.address
        print(done.out)
