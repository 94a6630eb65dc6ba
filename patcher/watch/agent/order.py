"""What a request means: the job of the tree, or processes and a log that it names."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from patcher.jobs.agent import folder, hook
from patcher.remote.agent import place
from patcher.watch.agent.finding import Order

if TYPE_CHECKING:
    from patcher.remote.agent.serving import Request


def ordered(request: Request) -> Order:
    """The request's `order`, with the job that its `job` names in place of the name."""
    order: Order = dict(request.args.get("order") or {})
    if "job" in order:
        at = folder.folder_of(place.root(request), order["job"])
        order["job"] = folder.look(at)
        order["stacks"] = os.path.join(at, hook.FOLDER)
    return order
