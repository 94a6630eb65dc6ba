"""A Ray of our own, or the one that the job would join: a task in a worker, and the environment that it sees there.

A Ray of our own ends with this process, as everything below it is ended.
"""

from __future__ import annotations

import importlib
import os
import secrets
import socket
import sys
from typing import Any

from patcher.messages import phrase
from patcher.preflight.agent.check_report import ARGS, PYTHON, Check, last_words
from patcher.worktree import files

CURRENT = "/tmp/ray/ray_current_cluster"
STORE = 100 * 2**20
"""Bytes of the object store of a Ray of our own: near the least that Ray accepts, 75 MB."""
ONE_BY_ONE = phrase("stop what is left over with: ray stop, as the user who started it")


def look(names: list[str]) -> dict[str, Any]:
    """Runs inside a worker."""
    import importlib.util
    import os
    import sys

    verl = importlib.util.find_spec("verl")
    return {
        "variables": {name: os.environ.get(name) for name in names},
        "python": sys.executable,
        "verl": verl.origin if verl is not None else None,
    }


def running() -> tuple[str, str]:
    """The address that ray.init() of a job would join, and where it is from; two empty texts where there is none."""
    address = os.environ.get("RAY_ADDRESS", "")
    if address == "local":
        return "", ""
    if address and address != "auto":
        return address, "RAY_ADDRESS"
    try:
        return files.read_text(CURRENT, files.SETTINGS_BYTES).strip(), CURRENT
    except (OSError, ValueError):
        return "", ""


def answers(address: str) -> bool:
    """Whether anybody listens at `host:port`, within 2 s."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.rpartition("/")[2], int(port)), timeout=2):
            return True
    except (OSError, ValueError):
        return False


def foreign(source: str) -> bool:
    """Whether the running cluster that `source` names is of another user."""
    return source == CURRENT and os.stat(source).st_uid != os.getuid()


def start(ray: Any, folder: str) -> None:
    """A Ray on this machine alone, that nobody else can join and that tells nobody."""
    os.environ.pop("RAY_ADDRESS", None)
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_AUTH_TOKEN=secrets.token_hex(32))
    options = {"include_dashboard": False, "configure_logging": False, "log_to_driver": False}
    ray.init(address="local", num_cpus=1, object_store_memory=STORE, _temp_dir=folder, **options)


def about_workers(check: Check, worker: dict[str, Any], cluster: bool) -> None:
    """Whether a worker sees what the run script sets, and the tree's verl."""
    wanted: dict[str, str] = ARGS.get("env", {})
    seen = worker["variables"]
    lost = ", ".join(name for name in sorted(wanted) if seen.get(name) != wanted[name])
    tree = os.path.realpath(os.path.join(ARGS["root"], "verl"))
    verl = os.path.dirname(os.path.realpath(worker["verl"])) if worker["verl"] else None
    restart = phrase("workers take their environment from the raylet: set these before ray start, on every node")
    if lost:
        check.fail(phrase("not seen inside a worker: {names}", names=lost), restart)
    elif verl != tree:
        detail = phrase("a worker imports verl from {place}, and not from this tree", place=verl or "-")
        check.fail(detail, restart if cluster else phrase("export PYTHONPATH={root}", root=ARGS["root"]))
    elif not cluster and worker["python"] != sys.executable:
        check.warn(phrase("workers run {other}, and not {python}", other=worker["python"], python=sys.executable))
    else:
        check.ok(
            phrase(
                "{count} {count:variable|variables} and this tree's verl are seen inside a worker", count=len(wanted)
            )
        )


def check_workers() -> None:
    """A task in a Ray worker, and whether the worker sees the run script's variables and this tree's verl."""
    with Check("ray", fix=ONE_BY_ONE) as check:
        try:
            ray = importlib.import_module("ray")
        except ImportError as error:
            check.fail(last_words(error), phrase("{python} -m pip install {names}", python=PYTHON, names="ray"))
        address, source = running()
        joined = bool(address) and answers(address) and not foreign(source)
        if joined:
            os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
            ray.init(configure_logging=False, log_to_driver=False)
        else:
            start(ray, os.path.join(ARGS["scratch"], "ray"))
        names = sorted(ARGS.get("env", {}))
        worker = ray.get(ray.remote(num_cpus=0)(look).remote(names))
        report(check, ray, address, source, joined)
    with Check("ray workers", needed=False) as check:
        about_workers(check, worker, joined)
    if joined:
        ray.shutdown()


def report(check: Check, ray: Any, address: str, source: str, joined: bool) -> None:
    """The verdict about the cluster that was joined or started."""
    version = ray.__version__
    if joined:
        template = "{version}; a task ran in the cluster at {address} ({source}), which the job joins"
        check.ok(phrase(template, version=version, address=address, source=source))
    elif address and foreign(source):
        other = "{version}; the cluster at {address} is another user's, and a job would try to join it"
        check.warn(
            phrase(other, version=version, address=address),
            phrase("set RAY_ADDRESS=local for the job, and it starts its own"),
        )
    elif address:
        silent = "{version}; nobody answers at {address} ({source}), and a job would wait for it"
        check.warn(
            phrase(silent, version=version, address=address, source=source),
            phrase("unset RAY_ADDRESS, or run ray stop, which clears a cluster's leftovers"),
        )
    else:
        check.ok(phrase("{version}; a task ran", version=version))
