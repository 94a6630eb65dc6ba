"""What runs on a node, in a process of its own under a Ray worker: look at the node and its tree, or apply there.

One JSON object comes on standard input and one goes to standard output:
`{"verb": "look" | "preview" | "apply", "root": PATH or null, "imported": PATH or null, "assume", "ids", "tags",
"skip", "allow_dirty", "merge", "level", "budget", "limit"}`. The answer is what `patcher.cluster.reading` reads.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from patcher.cluster.cargo import OWN
from patcher.cluster.trees import contents, identity
from patcher.errors import UkyError, UsageError
from patcher.i18n import phrase
from patcher.i18n.codec import encode
from patcher.remote.agent import gpus, resources
from patcher.remote.agent.facts import Fact, gather
from patcher.remote.agent.variables import shown
from patcher.session.session import Session
from patcher.session.tree_access import limited_lock_timeout

_SHORT = 2.0
_SHARE = 3
"""Of its time, what a node waits at most for another run that holds the tree: so that it can say so."""


def main() -> None:
    """Answer the one request, as a line of its own. What is printed meanwhile goes to standard error."""
    ask = json.loads(sys.stdin.buffer.read())
    sink, sys.stdout = sys.stdout, sys.stderr
    with limited_lock_timeout(ask["limit"] / _SHARE):
        sink.write(f"\n{json.dumps(answer(ask))}\n")
    sink.flush()


def answer(ask: Mapping[str, Any]) -> dict[str, Any]:
    """Facts about the machine, and about its tree where there is one."""
    started = time.monotonic()
    root = ask["root"] or (str(Path(ask["imported"]).parent) if ask["imported"] else None)
    told = {**_machine(root), "root": root, "imported": ask["imported"]}
    session = Session(
        root_option=Path(root) if root else None,
        python=Path(sys.executable),
        assume=ask["assume"],
        folders=_own_folders(),
        output="json",
    )
    try:
        told |= _tree(session, ask)
    except UkyError as error:
        told["error"] = {"title": encode(error.title), "cause": encode(error.cause), "advice": encode(error.advice)}
    told["seconds"] = time.monotonic() - started
    return told


def _machine(root: str | None) -> dict[str, Any]:
    at = root or "/"
    found, missing = gather(
        {
            "gpus": Fact(gpus.gpus, gpus.SECONDS + 0.5),
            "tree": Fact(lambda: resources.room(at), _SHORT),
            "tmp": Fact(lambda: resources.room("/tmp"), _SHORT),  # noqa: S108
            "shm": Fact(lambda: resources.room("/dev/shm"), _SHORT),  # noqa: S108
        }
    )
    return {
        "hostname": platform.node(),
        "python": {"executable": sys.executable, "version": platform.python_version()},
        "variables": shown(dict(os.environ)),
        "gpus": [{name: gpu.get(name) for name in ("name", "memory", "driver")} for gpu in found.get("gpus", ())],
        "disks": {name: found.get(name) for name in ("tree", "tmp", "shm")},
        "missing": missing,
    }


def _tree(session: Session, ask: Mapping[str, Any]) -> dict[str, Any]:
    from patcher.patching.status import records_status

    if session.root_option is None:
        raise UsageError(
            phrase("no tree was named, and a worker finds no verl"),
            advice=phrase("Name it with --root DIR, as its path is on the nodes."),
        )
    tree = session.tree
    told: dict[str, Any] = {}
    if ask["verb"] != "look":
        told["round"] = _round(session, ask)
    found = records_status(session)
    told["records"] = {one.id: {"kind": one.kind, "detail": encode(one.detail)} for one in found.outcomes}
    told["versions"] = session.versions
    told["checks"] = _checks(session, ask)
    told["files"] = contents(tree.root)
    told["identity"] = identity(tree.root)
    return told


def _round(session: Session, ask: Mapping[str, Any]) -> dict[str, Any]:
    """What an apply came to, or would come to."""
    from patcher.patching.applying import Order, apply, preview

    request = session.request(tuple(ask["ids"]), tuple(ask["tags"]), tuple(ask.get("skip", ())))
    order = Order(request, allow_dirty=ask["allow_dirty"], merge=ask["merge"])
    done = (apply if ask["verb"] == "apply" else preview)(session, order)
    return {
        "failed": {one.id: encode(one.detail) for one in done.plan.failed},
        "would_change": done.would_change,
        "written": done.written,
    }


def _checks(session: Session, ask: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The checks of the level. Those of the markers that hold are not told."""
    level = ask["level"]
    if ask["verb"] != "look" or level == "markers":
        from patcher.patching.verifying import marker_checks

        checks = marker_checks(session)
    else:
        from patcher.migrate.verify import verify_host
        from patcher.preflight.preflight import PreflightOptions
        from patcher.session.hosts import this_machine

        wish = PreflightOptions(ask.get("data"), ask.get("model"), ask.get("budget"))
        checks = verify_host(session, level, this_machine(session), wish, lambda _: None)
    return [one.encode() for one in checks if one.level != "markers" or one.status in ("warn", "fail")]


def _own_folders() -> tuple[Path, ...]:
    import patcher

    return tuple(sorted((Path(patcher.__file__).parents[1] / OWN).glob("*")))
