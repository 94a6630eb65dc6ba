"""What looks at the processes of one machine again and again, and remembers them between two looks."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from patcher.watch.agent.finding import Members, Order
from patcher.watch.agent.pulse import Watch
from patcher.watch.agent.taking import take

_BOOT = "/proc/sys/kernel/random/boot_id"


def where() -> str:
    """This kernel and this space of process numbers: two looks from one place see the same processes."""
    with open(_BOOT, encoding="ascii") as stream:
        return f"{stream.read().strip()} {os.readlink('/proc/self/ns/pid')}"


class Eye:
    """Answers `where`, `pulse` and `stacks`; what is looked for comes with each question."""

    def __init__(self) -> None:
        self._watches: dict[str, Watch] = {}

    def ask(self, verb: str, args: dict[str, Any]) -> Any:
        """Raises ValueError for another verb."""
        if verb == "where":
            return where()
        order: Order = {"folders": [os.path.dirname(sys.executable)], **args["order"]}
        key = json.dumps(order, sort_keys=True)
        if key not in self._watches:
            self._watches[key] = Watch(Members(order))
        watch = self._watches[key]
        if verb == "pulse":
            return watch.look(bool(args.get("gpus")))
        if verb == "stacks":
            return take(watch.members, order, bool(args.get("native")))
        raise ValueError(verb)
