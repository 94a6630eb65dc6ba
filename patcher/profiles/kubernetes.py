"""Manifests for KubeRay: a `RayCluster` whose head a host's `via` reaches, and a `RayJob` that runs a run script.

They follow from `[hosts.NAME]` and its table `kubernetes`; nothing is asked of the cluster, which need not be there.
"""

from __future__ import annotations

import re
import shlex
from typing import Any

from patcher.errors import UsageError
from patcher.i18n import Phrase, phrase
from patcher.profiles.rendered_file import Rendered
from patcher.profiles.run_script import script_name
from patcher.remote.host import Host, Kubernetes

NAMES = ("ray-cluster.yaml", "ray-job.yaml")
_NAME = re.compile(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?")
"""KubeRay puts words of its own behind it (`-head-svc`), and Kubernetes ends a name at 63 characters."""
_PORTS = {"gcs-server": 6379, "dashboard": 8265, "client": 10001}
_GPU = "nvidia.com/gpu"


def manifest(host: Host, name: str) -> Rendered:
    """The file `name`, one of `NAMES`, for `kubectl apply`. Raises UsageError where the table says too little."""
    import yaml

    table = host.kubernetes
    if table is None:
        raise UsageError(
            phrase("{host}: nothing is known of its containers", host=host.name),
            advice=phrase("Add a table with their image to uky-patch.toml: [hosts.{host}.kubernetes]", host=host.name),
        )
    if not _NAME.fullmatch(host.name):
        raise UsageError(
            phrase("{host}: is no name that Kubernetes takes", host=host.name),
            advice="Give the table in [hosts] a name of at most 40 lower-case letters, digits and hyphens.",
        )
    cluster = _cluster(host, table)
    job = name == "ray-job.yaml"
    spec = _job(host, cluster) if job else cluster
    metadata = {"name": host.name} | ({"namespace": table.namespace} if table.namespace else {})
    content = {"apiVersion": "ray.io/v1", "kind": "RayJob" if job else "RayCluster", "metadata": metadata, "spec": spec}
    return Rendered(name, yaml.safe_dump(content, sort_keys=False, width=120), notes=tuple(_notes(host, table)))


def _notes(host: Host, table: Kubernetes) -> list[Phrase]:
    notes = []
    if not table.claim:
        notes.append(phrase("no claim is named: each container has a disk of its own, and the tree goes with it"))
    left = sorted(host.secrets) if not table.secret else []
    if left:
        template = "left out, secrets: {names}; name a Secret that holds them in kubernetes.secret"
        notes.append(phrase(template, names=", ".join(left)))
    return notes


def _cluster(host: Host, table: Kubernetes) -> dict[str, Any]:
    """The head trains too, as one of `nodes`."""
    head = {"rayStartParams": {"dashboard-host": "0.0.0.0"}, "template": _pod(host, table, "ray-head")}  # noqa: S104
    spec: dict[str, Any] = ({"rayVersion": table.ray} if table.ray else {}) | {"headGroupSpec": head}
    rest = table.nodes - 1
    if rest:
        size = {"groupName": "workers", "replicas": rest, "minReplicas": rest, "maxReplicas": rest}
        spec["workerGroupSpecs"] = [{**size, "rayStartParams": {}, "template": _pod(host, table, "ray-worker")}]
    return spec


def _pod(host: Host, table: Kubernetes, name: str) -> dict[str, Any]:
    own = {"cpu": str(table.cpus) if table.cpus else None, "memory": table.memory}
    resources: dict[str, Any] = {_GPU: str(table.gpus), **{key: value for key, value in own.items() if value}}
    volumes: list[dict[str, Any]] = [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": table.shm}}]
    mounts = [{"name": "shm", "mountPath": "/dev/shm"}]  # noqa: S108
    if table.claim:
        volumes.append({"name": "shared", "persistentVolumeClaim": {"claimName": table.claim}})
        mounts.append({"name": "shared", "mountPath": table.mount})
    env = [{"name": variable, "value": value} for variable, value in sorted(host.env.items())]
    container = {
        "name": name,
        "image": table.image,
        **({"env": env} if env else {}),
        **({"envFrom": [{"secretRef": {"name": table.secret}}]} if table.secret else {}),
        "resources": {"limits": dict(resources), "requests": dict(resources)},
        "volumeMounts": mounts,
    }
    if name == "ray-head":
        container["ports"] = [{"name": port, "containerPort": number} for port, number in _PORTS.items()]
    return {"spec": {"containers": [container], "volumes": volumes}}


def _job(host: Host, cluster: dict[str, Any]) -> dict[str, Any]:
    """The run script, in the tree that a migration has brought to `path`; the cluster goes when it has ended."""
    if host.path is None or not host.path.startswith("/"):
        raise UsageError(
            phrase("{host}: it is not known where the tree is there", host=host.name),
            advice=phrase("Name it in [hosts.{host}]: path = {place!r}", host=host.name, place="/workspace/verl_fork"),
        )
    script = host.script or script_name(host.profile)
    entry = shlex.join(["bash", f"{host.path.rstrip('/')}/{script}"])
    return {"entrypoint": entry, "shutdownAfterJobFinishes": True, "rayClusterSpec": cluster}
