"""Take the stacks of all processes of a job, each in the best way that is open."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from patcher.jobs.agent import hook
from patcher.jobs.agent.processes import Process
from patcher.jobs.agent.runner import start_of
from patcher.watch.agent import facts, links, spy
from patcher.watch.agent.finding import Members, Order
from patcher.watch.agent.order import ordered

if TYPE_CHECKING:
    from patcher.remote.agent.serving import Request

BUDGET = 8.0
"""Seconds after which no further process is asked for its stacks; /proc is read of all."""
MOST = 400
"""Processes that are told of."""
AT_ONCE = 4


def stacks(request: Request) -> dict[str, Any]:
    """The processes of what `order` names, each with facts, `stack`, and how it was come by.

    `native`: frames of compiled code too, for which py-spy stops each process for a moment. `bare`: leave out py-spy,
    or the hook, by name. Answers `processes`, `host`, `locks`, `spy`: the py-spy that was used.
    """
    args = request.args
    order = ordered(request)
    return take(Members(order), order, bool(args.get("native")), tuple(args.get("bare") or ()))


def take(members: Members, order: Order, native: bool = False, bare: tuple[str, ...] = ()) -> dict[str, Any]:
    """As `stacks`."""
    found = members.all()[:MOST]
    told = [facts.facts(process) for process in found]
    for process, one in zip(found, told):
        one["env"] = one["env"] or hook.variables(process, order.get("stacks"))
    wanted = [(process, one) for process, one in zip(found, told) if one["python"] and not one["system"]]
    folders = order.get("folders") or ()
    program = None if "py-spy" in bare else spy.find([process.pid for process, _ in wanted[:8]], folders)
    deadline = time.monotonic() + BUDGET * (3 if native else 1)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for _ in pool.map(lambda pair: _stack(pair[0], pair[1], program, native, order, bare, deadline), wanted):
            pass
    left = [one for process, one in zip(found, told) if start_of(process.pid) == process.start]
    _link(left)
    pids = [one["pid"] for one in left]
    return {"host": os.uname()[1], "processes": left, "locks": links.locks(pids), "spy": program, "user": os.getuid()}


def _stack(
    process: Process,
    told: dict[str, Any],
    program: str | None,
    native: bool,
    order: Order,
    bare: tuple[str, ...],
    deadline: float,
) -> None:
    """Put `how`, `stack` and `failed` into what is told of a process."""
    told.update(how="proc", stack=None, failed=[])
    if time.monotonic() > deadline:
        told["failed"].append(["py-spy", "no time was left"])
        return
    if program is not None and start_of(process.pid) == process.start:
        threads, why = spy.dump(program, process.pid, native)
        if threads:
            told.update(how="py-spy", stack=threads)
            return
        told["failed"].append(["py-spy", why])
    if "hook" in bare or told["state"] in "TtDZ":
        return
    text, why = hook.dump(process, order.get("stacks"))
    if text:
        told.update(how="faulthandler", stack=text)
    elif why != "no hook":
        told["failed"].append(["faulthandler", why])


def _link(told: list[dict[str, Any]]) -> None:
    """Say of what a process waits for who is at its other end."""
    pids = [one["pid"] for one in told]
    files = {one["waits"]["file"] for one in told} - {None}
    ends = links.ends(pids, {file for file in files if file.startswith("pipe:")})
    for one in told:
        file = one["waits"]["file"] or ""
        if file.startswith("pipe:"):
            one["waits"]["ends"] = [end for end in ends.get(file, []) if end[0] != one["pid"]]
        elif file.startswith("socket:"):
            one["waits"]["peer"] = links.peers(one["pid"], {file}).get(file)
        if one["python"] and not one["system"]:
            one["connecting"] = links.connecting(one["pid"])
