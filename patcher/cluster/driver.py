"""The program that joins a Ray cluster, in the interpreter that has Ray, and asks its nodes.

Of this project it has `patcher.cluster.worker` beside it, which is sent to the nodes, and nothing else. Requests come
as lines of JSON on standard input, events go as lines of JSON to the descriptor that its argument names; what Ray
prints is left to standard output and standard error.

A request is `{"op": "round", "cargo": PATH, "ask": {…}, "limit": SECONDS, "only": [NODE ID…] or null, "without":
[NODE ID…]}`. Events:

- `{"event": "joined", "version", "python", "gcs"}`, once, or `{"event": "refused", "kind", "told"}` and the end;
- `{"event": "node", "id", "name", "address", "head", "resources", "added"}` for each node that is asked;
- `{"event": "answer", "id", "answer", "clock": [offset, uncertainty]}`: seconds that the node's clock is ahead;
- `{"event": "lost", "id", "why": "died" | "late" | "failed", "told"}`;
- `{"event": "end"}` when no node of the round is open any more.

`{"op": "see", "sources": PATH, "verb", "args", "limit", "only", "leave"}` asks an actor on each node, which lasts:
`node` comes when it is made, then `{"event": "seen", "id", "told"}` or `lost`. Those of `leave` are ended.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any, NoReturn, TextIO

from patcher.cluster import worker

PINGS = 3
LOOK = 0.5
"""Seconds between looks at which nodes there are."""
CONNECT = 20.0
"""Seconds that Ray may try to join."""


class Driver:
    def __init__(self, ray: Any, sink: TextIO) -> None:
        self.ray = ray
        self.sink = sink
        self._parcels: dict[str, Any] = {}
        self._samplers: dict[str, Any] = {}

    def tell(self, **event: Any) -> None:
        self.sink.write(json.dumps(event) + "\n")
        self.sink.flush()

    def alive(self) -> dict[str, dict[str, Any]]:
        return {node["NodeID"]: node for node in self.ray.nodes() if node.get("Alive", node.get("alive"))}

    def round(self, request: dict[str, Any]) -> None:
        """Ask the nodes at once; whoever dies, joins or is late meanwhile is told, and not waited for."""
        Round(self, request).run()
        self.tell(event="end")

    def see(self, request: dict[str, Any]) -> None:
        """Ask the actors of some nodes, or of all, each made when it is first asked; who is late is told as lost."""
        only, open_ = request.get("only"), {}
        for node in request.get("leave", ()):
            self.ray.kill(self._samplers.pop(node))
        for node, told in sorted(self.alive().items()):
            if only is not None and node not in only:
                continue
            if node not in self._samplers:
                self.tell(event="node", **facts(node, told))
                sources = json.loads(Path(request["sources"]).read_text(encoding="utf-8"))
                self._samplers[node] = self.remote(worker.Sampler, node, tries=False).remote(sources)
            open_[self._samplers[node].ask.remote(request["verb"], request["args"])] = node
        ready, _ = self.ray.wait(list(open_), num_returns=len(open_), timeout=request["limit"]) if open_ else ([], [])
        for ref, node in open_.items():
            try:
                if ref not in ready:
                    raise TimeoutError
                self.tell(event="seen", id=node, told=self.ray.get(ref))
            except Exception as error:
                self.tell(event="lost", id=node, why="late", told=f"{type(error).__name__}: {error}"[:500])
        for node in sorted(set(only or ()) - set(open_.values())):
            self.tell(event="lost", id=node, why="died", told="")
        self.tell(event="end")

    def remote(self, function: Any, node: str, *, tries: bool = True) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        strategy = NodeAffinitySchedulingStrategy(node, soft=False)
        once = {"max_retries": 0} if tries else {}
        return self.ray.remote(function).options(scheduling_strategy=strategy, num_cpus=0, **once)

    def parcel(self, path: str) -> Any:
        if path not in self._parcels:
            self._parcels[path] = self.ray.put(Path(path).read_bytes())
        return self._parcels[path]


def facts(node: str, told: dict[str, Any]) -> dict[str, Any]:
    """What Ray itself knows of a node."""
    resources = told.get("Resources", {})
    return {
        "id": node,
        "name": told.get("NodeManagerHostname", ""),
        "label": told.get("NodeName", ""),
        "address": told.get("NodeManagerAddress", ""),
        "head": "node:__internal_head__" in resources,
        "resources": {name: resources[name] for name in ("CPU", "GPU") if name in resources},
    }


class Pings:
    """A node's answer, and what its clock has said since: seconds there and back, seconds ahead."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.answer = answer
        self.sent = 0.0
        self.clocks: list[tuple[float, float]] = []


class Round:
    def __init__(self, driver: Driver, request: dict[str, Any]) -> None:
        self.driver = driver
        self.request = request
        self.asked: set[str] = set()
        self.open: dict[Any, str] = {}
        self.begun: dict[str, float] = {}
        self.pings: dict[str, Pings] = {}
        self.crashed: dict[str, str] = {}
        """What became of the worker, by node: whether the node itself is gone is seen by asking for another."""

    def run(self) -> None:
        ray = self.driver.ray
        only = self.request.get("only")
        self.meet(self.driver.alive(), only, added=False)
        if only is not None:
            for node in sorted(set(only) - self.asked):
                self.driver.tell(event="lost", id=node, why="died", told="")
        looked = time.monotonic()
        while self.open:
            ready, _ = ray.wait(list(self.open), num_returns=len(self.open), timeout=0.05)
            for ref in ready:
                self.take(ref)
            if time.monotonic() - looked >= LOOK:
                looked = time.monotonic()
                alive = self.driver.alive()
                self.meet(alive, only, added=True)
                self.leave(alive)

    def meet(self, alive: dict[str, dict[str, Any]], only: list[str] | None, *, added: bool) -> None:
        without = self.request.get("without", ())
        for node, told in sorted(alive.items()):
            if node in self.asked or node in without or (only is not None and node not in only):
                continue
            self.asked.add(node)
            self.driver.tell(event="node", added=added, **facts(node, told))
            limit = self.request["limit"]
            parcel = self.driver.parcel(self.request["cargo"])
            self.open[self.driver.remote(worker.work, node).remote(parcel, self.request["ask"], limit)] = node
            self.begun[node] = time.monotonic()

    def leave(self, alive: dict[str, dict[str, Any]]) -> None:
        """Stop waiting for nodes that are gone, or that have had their time."""
        for ref, node in list(self.open.items()):
            if node not in alive:
                self.lose(ref, "died", "")
            elif time.monotonic() - self.begun[node] > self.request["limit"]:
                if node in self.pings:
                    self.end(ref, node)
                elif node in self.crashed:
                    self.lose(ref, "failed", self.crashed[node])
                else:
                    self.lose(ref, "late", "")

    def lose(self, ref: Any, why: str, told: str) -> None:
        node = self.open.pop(ref)
        self.driver.tell(event="lost", id=node, why=why, told=told)

    def take(self, ref: Any) -> None:
        """An answer, or a ping behind it: the clock is asked a few times, and the quickest answer counts."""
        from ray import exceptions

        node = self.open[ref]
        received = time.time()
        try:
            told = self.driver.ray.get(ref)
        except exceptions.RayError as error:
            if node in self.pings:
                self.end(ref, node)
                return
            text = next((line for line in reversed(str(error).strip().splitlines()) if line.strip()), "")
            said = f"{type(error).__name__}: {text.strip()[:500]}"
            if isinstance(error, exceptions.NodeDiedError) or node not in self.driver.alive():
                self.lose(ref, "died", "")
            elif isinstance(error, exceptions.RayTaskError) or node in self.crashed:
                self.lose(ref, "failed", self.crashed.get(node, said))
            else:
                self.crashed[node] = said
                self.ping(ref, node)
            return
        if node in self.crashed:
            self.lose(ref, "failed", self.crashed[node])
            return
        pings = self.pings.get(node)
        if pings is None:
            pings = self.pings[node] = Pings(told)
        else:
            pings.clocks.append((received - pings.sent, told - (pings.sent + received) / 2))
        if len(pings.clocks) >= PINGS:
            self.end(ref, node)
            return
        pings.sent = time.time()
        self.ping(ref, node)

    def ping(self, ref: Any, node: str) -> None:
        del self.open[ref]
        self.open[self.driver.remote(worker.now, node).remote()] = node

    def end(self, ref: Any, node: str) -> None:
        pings = self.pings[node]
        best = min(pings.clocks, default=None)
        clock = None if best is None else [best[1], best[0] / 2]
        del self.open[ref]
        self.driver.tell(event="answer", id=node, answer=pings.answer, clock=clock)


def main() -> None:
    address, sink = sys.argv[1], os.fdopen(int(sys.argv[2]), "w", encoding="utf-8")

    def refuse(kind: str, told: str) -> NoReturn:
        sink.write(json.dumps({"event": "refused", "kind": kind, "told": told}) + "\n")
        sink.flush()
        sys.exit(0)

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.setdefault("RAY_gcs_rpc_server_connect_timeout_s", str(int(CONNECT)))
    try:
        import ray
    except ImportError as error:
        refuse("ray", str(error))
    try:
        ray.init(address=address, log_to_driver=False, configure_logging=False, namespace="uky-patch")
    except Exception as error:
        refuse("join", f"{type(error).__name__}: {error}"[:2000])
    ray.cloudpickle.register_pickle_by_value(worker)  # The nodes need not have it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    driver = Driver(ray, sink)
    gcs = ray.get_runtime_context().gcs_address
    driver.tell(event="joined", version=ray.__version__, python=sys.version.split()[0], gcs=gcs)
    for line in sys.stdin:
        request = json.loads(line)
        (driver.see if request["op"] == "see" else driver.round)(request)
    ray.shutdown()
