"""Manifests for KubeRay, as the command prints them; against the published schema where a folder with it is named."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from patcher.errors import UsageError
from patcher.profiles import kubernetes
from patcher.remote.host import Host, Kubernetes

SCHEMAS = "UKY_PATCH_KUBERAY_CRDS"
"""A folder with KubeRay's own ray.io_rayclusters.yaml and ray.io_rayjobs.yaml."""
SMALL = Host("verl", "", path="/workspace/fork", kubernetes=Kubernetes("registry.example/verl:1"))
WHOLE = Host(
    "verl-2",
    "",
    path="/data/my fork",
    env={"HF_HOME": "/data/hf", "FLAG": "on"},
    secrets={"WANDB_API_KEY": "not to be seen"},
    kubernetes=Kubernetes(
        "registry.example/verl:1", 3, 4, 32, "256Gi", "16Gi", "train", "shared", "/data", "tokens", "2.49.0"
    ),
)


def made(host: Host, name: str) -> Any:
    return yaml.safe_load(kubernetes.manifest(host, name).text)


def test_a_cluster_of_one_node_has_no_workers() -> None:
    found = made(SMALL, "ray-cluster.yaml")
    assert (found["apiVersion"], found["kind"], found["metadata"]) == ("ray.io/v1", "RayCluster", {"name": "verl"})
    assert "workerGroupSpecs" not in found["spec"]
    (container,) = found["spec"]["headGroupSpec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "8"}
    notes = kubernetes.manifest(SMALL, "ray-cluster.yaml").notes
    assert any("no claim" in str(note) for note in notes)


def test_every_node_has_the_hosts_settings() -> None:
    spec = made(WHOLE, "ray-cluster.yaml")["spec"]
    (group,) = spec["workerGroupSpecs"]
    assert [group[key] for key in ("replicas", "minReplicas", "maxReplicas")] == [2, 2, 2]
    for part in (spec["headGroupSpec"], group):
        inner = part["template"]["spec"]
        (container,) = inner["containers"]
        assert container["resources"]["requests"] == {"nvidia.com/gpu": "4", "cpu": "32", "memory": "256Gi"}
        assert {"name": "HF_HOME", "value": "/data/hf"} in container["env"]
        assert {"name": "FLAG", "value": "on"} in container["env"]
        assert container["envFrom"] == [{"secretRef": {"name": "tokens"}}]
        assert {"name": "shared", "mountPath": "/data"} in container["volumeMounts"]
        assert inner["volumes"][1]["persistentVolumeClaim"] == {"claimName": "shared"}
    assert "not to be seen" not in kubernetes.manifest(WHOLE, "ray-job.yaml").text


def test_a_job_runs_the_run_script_on_such_a_cluster() -> None:
    found = made(WHOLE, "ray-job.yaml")
    assert found["kind"] == "RayJob"
    assert found["spec"]["entrypoint"] == "bash '/data/my fork/run_debug.sh'"
    assert found["spec"]["rayClusterSpec"] == made(WHOLE, "ray-cluster.yaml")["spec"]


@pytest.mark.parametrize(
    ("host", "said"),
    [
        (Host("verl", "verl"), "kubernetes"),
        (Host("Verl_1", "", kubernetes=SMALL.kubernetes), "lower-case"),
        (Host("verl", "", path="~/fork", kubernetes=SMALL.kubernetes), "path ="),
    ],
)
def test_what_is_missing_is_named(host: Host, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        kubernetes.manifest(host, "ray-job.yaml")
    assert said in str(caught.value.advice)


@pytest.mark.skipif(SCHEMAS not in os.environ, reason=f"{SCHEMAS} names no folder with KubeRay's schemas")
@pytest.mark.parametrize("name", kubernetes.NAMES)
@pytest.mark.parametrize("host", [SMALL, WHOLE], ids=lambda host: host.name)
def test_the_published_schema_takes_them(host: Host, name: str) -> None:
    import jsonschema

    kind = name.removesuffix(".yaml").replace("-", "") + "s"
    crd = yaml.safe_load(Path(os.environ[SCHEMAS], f"ray.io_{kind}.yaml").read_text())
    (version,) = (each for each in crd["spec"]["versions"] if each["name"] == "v1")
    schema = closed(version["schema"]["openAPIV3Schema"])
    jsonschema.Draft7Validator.check_schema(schema)
    assert [error.message for error in jsonschema.Draft7Validator(schema).iter_errors(made(host, name))] == []


def closed(schema: Any, path: tuple[str, ...] = ()) -> Any:
    """The schema, taking no key that it does not name: Kubernetes would drop such a key without a word."""
    if isinstance(schema, list):
        return [closed(item, path) for item in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: closed(value, (*path, key)) for key, value in schema.items()}
    is_open = path == ("properties", "metadata") or "additionalProperties" in schema
    is_schema = isinstance(schema.get("properties"), dict) and schema.get("type") == "object"
    return inner | ({"additionalProperties": False} if is_schema and not is_open else {})
