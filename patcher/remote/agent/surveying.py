"""The verb `survey`: what this machine has, such as interpreters, GPUs, disks and limits. It writes nothing.

Everything that may hang is a `Fact` with its own time limit; the whole survey takes as long as the slowest of them.
"""

from __future__ import annotations

import os
import platform
import resource
import sys
import time
from typing import Any

from patcher.remote.agent import environs, gpus, interpreters, place, resources
from patcher.remote.agent.facts import Fact, gather, rsync_version, user_name, version_of
from patcher.remote.agent.serving import Request
from patcher.remote.agent.setup import set_up
from patcher.worktree import files, places
from patcher.worktree.json_text import parse_json

_SHORT = 1.2
"""Seconds for what a healthy machine tells in milliseconds; a dead network mount never does. A guess."""
_LEDGER_BYTES = 16 << 20
_LIMITS = {"nofile": resource.RLIMIT_NOFILE, "nproc": resource.RLIMIT_NPROC, "memlock": resource.RLIMIT_MEMLOCK}
_CONTAINERS = {
    "/.singularity.d": "apptainer",
    "/run/.containerenv": "podman",
    "/var/run/secrets/kubernetes.io": "kubernetes",
    "/.dockerenv": "docker",
}
"""Files that tell the kind of container, the more particular first: a pod of Kubernetes may have `/.dockerenv` too."""


def survey(request: Request) -> dict[str, Any]:
    """Survey the machine, with the tree that `begin` has opened, if any.

    `python` is the interpreter that the user names; `in_tree` see `interpreters.look`; `setup` are lines that run
    before. `patcher.remote.survey.parse_survey` reads the answer: `found` holds the facts by name, `missing` why the
    others are not in it.

    Raises Refusal of kind `python` where that interpreter is not usable, `setup` where a line fails.
    """
    set_up(request)
    root = request.kept.get("root")
    home = places.home_folder()
    own, login = environs.own(), environs.Login()
    at = root or home
    facts = {
        "gpus": Fact(gpus.gpus, gpus.SECONDS + 0.5),
        "processes": Fact(gpus.processes, gpus.SECONDS + 0.5),
        "driver": Fact(gpus.driver, gpus.SECONDS + 0.5),
        "libcuda": Fact(lambda: gpus.libcuda(environs.both(own, login())), 2.5),
        "interpreters": Fact(lambda: _interpreters(request, home, own, login), 6.0),
        "environ": Fact(lambda: environs.both(own, login()), 1.5),
        "disk": Fact(lambda: resources.room(at), _SHORT),
        "mount": Fact(lambda: resources.mount(at), _SHORT),
        "quota": Fact(lambda: resources.quota(at), _SHORT),
        "tmp": Fact(lambda: resources.room("/tmp"), _SHORT),
        "shm": Fact(lambda: resources.room("/dev/shm"), _SHORT),
        "rsync": Fact(lambda: rsync_version(_SHORT), _SHORT),
        "tmux": Fact(lambda: version_of("tmux", "-V", r"tmux (?:next-)?(\d[\w.]*)", _SHORT), _SHORT),
        "place": Fact(lambda: place.look(at), _SHORT),
        "applied": Fact(lambda: _applied(root), _SHORT),
    }
    found, missing = gather(facts)
    if login.reason is not None:
        missing["login"] = login.reason
    return {
        "at": at,
        "hostname": platform.node(),
        "user": user_name(os.getuid()),
        "home": home,
        "python": {"executable": sys.executable, "version": platform.python_version()},
        "system": {"kernel": platform.release(), "machine": platform.machine(), "container": _container()},
        "cpus": resources.cpus(),
        "memory": resources.memory(),
        "available": resources.available(),
        "limits": {name: _soft_limit(limit) for name, limit in _LIMITS.items()},
        "clock": time.time(),
        "found": found,
        "missing": missing,
    }


def _interpreters(request: Request, home: str, own: dict[str, str], login: interpreters.Login) -> dict[str, Any]:
    named, in_tree = request.args.get("python"), request.args.get("in_tree", "run")
    chosen, others, passed = interpreters.look(named, request.kept.get("root"), home, own, login, in_tree)
    return {"chosen": chosen, "others": others, "passed": passed}


def _applied(root: str | None) -> dict[str, Any]:
    """By record, what the tree's ledger says: its digest, the versions it was applied for, and when."""
    if root is None:
        return {}
    try:
        records = parse_json(files.read(os.path.join(root, ".uky-patch", "ledger.json"), _LEDGER_BYTES))["records"]
        return {name: [entry["digest"], entry["versions"], entry["at"]] for name, entry in records.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _container() -> str | None:
    for path, kind in _CONTAINERS.items():
        if os.path.exists(path):
            return kind
    return os.environ.get("container") or None  # noqa: SIM112  Set in lower case by podman and systemd-nspawn.


def _soft_limit(limit: int) -> int | None:
    soft, _ = resource.getrlimit(limit)
    return None if soft == resource.RLIM_INFINITY else soft
