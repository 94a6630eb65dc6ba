"""Keep the configuration that worked: what ran, and what it ran with."""

from __future__ import annotations

import errno
import json
import os
import stat
from typing import TYPE_CHECKING, Any

from patcher.jobs.agent import folder
from patcher.jobs.agent.starting import KEPT
from patcher.messages import Refusal, phrase, why
from patcher.remote.agent import place
from patcher.worktree import disk, files

if TYPE_CHECKING:
    from patcher.remote.agent.serving import Request

WORKING = os.path.join(place.OURS, "working")


def keep(request: Request) -> dict[str, Any]:
    """Copy what the job `id` ran into a folder of its name, with `facts` beside it; `latest` points there then."""
    root = place.root(request)
    at = folder.folder_of(root, request.args["id"])
    job = folder.look(at)
    above = os.path.join(root, WORKING)
    to = os.path.join(above, job["id"])
    try:
        os.makedirs(to, 0o700, exist_ok=True)
        if os.path.realpath(to) != os.path.join(os.path.realpath(root), WORKING, job["id"]):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), to)
        for name in (os.path.basename(job["script"]), *KEPT):
            if os.path.isfile(os.path.join(at, name)):
                content, found = files.read_and_status(os.path.join(at, name), files.SOURCE_BYTES)
                files.replace(os.path.join(to, name), content, mode=stat.S_IMODE(found.st_mode))
        facts = dict(job["facts"], **request.args["facts"])
        told = dict(facts, job=job["id"], script=job["script"], arguments=job["arguments"])
        files.replace(os.path.join(to, "working.json"), json.dumps(told, indent=1).encode())
        link = os.path.join(above, "latest.new")
        disk.symlink(os.path.basename(to), link)
        disk.replace(link, os.path.join(above, "latest"))
    except OSError as error:
        cause = phrase("{file}: {reason}", file=str(error.filename or to), reason=why(error))
        raise Refusal("unwritable", phrase("the configuration that worked cannot be kept"), cause) from error
    return {"path": to}


def working(root: str) -> dict[str, Any] | None:
    """The configuration that worked last."""
    found = folder.read(os.path.join(root, WORKING, "latest", "working.json"))
    if not isinstance(found, dict) or not found:
        return None
    return dict(found, path=os.path.realpath(os.path.join(root, WORKING, "latest")))
