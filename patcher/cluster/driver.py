"""The program that joins a Ray cluster, in the interpreter that has Ray, and asks its nodes.

Of this project it has `patcher.cluster.worker` beside it, which is sent to the nodes, and nothing else. Requests come
as lines of JSON on standard input, events go as lines of JSON to the descriptor that its argument names; what Ray
prints is left to standard output and standard error.

A request is `{"op": "ask", "program": PATH, "start": TEXT, "requests": {NODE ID or "": BASE64}, "limit": SECONDS,
"only": [NODE ID…] or null, "without": [NODE ID…]}`: `patcher.cluster.worker.work` runs on each node, with the
requests that are listed for it, else with those under "". Events:

- `{"event": "joined", "version", "python", "gcs"}`, once, or `{"event": "refused", "kind", "text"}` and the end;
- `{"event": "node", "id", "name", "label", "address", "head", "resources", "added"}` for each node that is asked;
- `{"event": "answer", "id", "answers": BASE64, "failed", "python", "clock": [offset, uncertainty] or null}`: seconds
  that the node's clock is ahead;
- `{"event": "lost", "id", "why": "died" | "late" | "failed", "text"}`;
- `{"event": "end"}` when no node that was asked is open any more.

`{"op": "see", "program": PATH, "of": "MODULE:CLASS", "verb", "args", "limit", "only", "leave"}` asks an actor on each
node, which lasts: `node` comes when it is made, then `{"event": "seen", "id", "text"}` or `lost`. Those of `leave` are
ended.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any, NoReturn, TextIO

from patcher.cluster import worker

LOOK = 0.5
"""Seconds between looks at which nodes there are."""
CONNECT = 20.0
"""Seconds that Ray may try to join."""
ATTEMPTS = 3
"""How often joining is tried. A guess: see `join`."""
_NOT_BEGUN = "Starting Ray client server failed"


class Driver:
    def __init__(self, ray: Any, sink: TextIO) -> None:
        self.ray = ray
        self.sink = sink
        self._programs: dict[str, Any] = {}
        self._actors: dict[str, Any] = {}

    def tell(self, **event: Any) -> None:
        self.sink.write(json.dumps(event) + "\n")
        self.sink.flush()

    def alive(self) -> dict[str, dict[str, Any]]:
        return {node["NodeID"]: node for node in self.ray.nodes() if node.get("Alive", node.get("alive"))}

    def ask(self, request: dict[str, Any]) -> None:
        """Ask the nodes at once; whoever dies, joins or is late meanwhile is reported, and not waited for."""
        Asking(self, request).run()
        self.tell(event="end")

    def see(self, request: dict[str, Any]) -> None:
        """Ask the actors of some nodes, or of all, each made when it is first asked; who is late counts as lost."""
        only, open_ = request.get("only"), {}
        for node in request.get("leave", ()):
            self.ray.kill(self._actors.pop(node))
        for node, entry in sorted(self.alive().items()):
            if only is not None and node not in only:
                continue
            if node not in self._actors:
                self.tell(event="node", **facts(node, entry))
                actor = self.remote(worker.Actor, node, tries=False)
                self._actors[node] = actor.remote(self.program(request["program"]), request["of"])
            open_[self._actors[node].ask.remote(request["verb"], request["args"])] = node
        ready, _ = self.ray.wait(list(open_), num_returns=len(open_), timeout=request["limit"]) if open_ else ([], [])
        for ref, node in open_.items():
            try:
                if ref not in ready:
                    raise TimeoutError
                self.tell(event="seen", id=node, text=self.ray.get(ref))
            except Exception as error:
                self.tell(event="lost", id=node, why="late", text=f"{type(error).__name__}: {error}"[:500])
        for node in sorted(set(only or ()) - set(open_.values())):
            self.tell(event="lost", id=node, why="died", text="")
        self.tell(event="end")

    def remote(self, function: Any, node: str, *, tries: bool = True) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        strategy = NodeAffinitySchedulingStrategy(node, soft=False)
        once = {"max_retries": 0} if tries else {}
        return self.ray.remote(function).options(scheduling_strategy=strategy, num_cpus=0, **once)

    def program(self, path: str) -> Any:
        """What the file holds, as an object that Ray sends to each node once."""
        if path not in self._programs:
            self._programs[path] = self.ray.put(Path(path).read_bytes())
        return self._programs[path]


def facts(node: str, entry: dict[str, Any]) -> dict[str, Any]:
    """What Ray itself knows of a node."""
    resources = entry.get("Resources", {})
    return {
        "id": node,
        "name": entry.get("NodeManagerHostname", ""),
        "label": entry.get("NodeName", ""),
        "address": entry.get("NodeManagerAddress", ""),
        "head": "node:__internal_head__" in resources,
        "resources": {name: resources[name] for name in ("CPU", "GPU") if name in resources},
    }


class Asking:
    """One request to many nodes. A node is done when its task has ended, and one more that reads its clock.

    The second one also tells why a task has crashed: where the whole node is gone, it cannot run either.
    """

    def __init__(self, driver: Driver, request: dict[str, Any]) -> None:
        self.driver = driver
        self.request = request
        self.asked: set[str] = set()
        self.open: dict[Any, str] = {}
        self.begun: dict[str, float] = {}
        self.ended: dict[str, dict[str, Any]] = {}
        """What a task came to, by node; under "crashed" what Ray says of one that came to nothing."""
        self.sent: dict[str, float] = {}

    def run(self) -> None:
        only = self.request.get("only")
        self.meet(self.driver.alive(), only, added=False)
        for node in sorted(set(only or ()) - self.asked):
            self.driver.tell(event="lost", id=node, why="died", text="")
        looked = time.monotonic()
        while self.open:
            ready, _ = self.driver.ray.wait(list(self.open), num_returns=len(self.open), timeout=0.05)
            for ref in ready:
                self.take(ref)
            if time.monotonic() - looked >= LOOK:
                looked = time.monotonic()
                alive = self.driver.alive()
                self.meet(alive, only, added=True)
                self.leave(alive)

    def meet(self, alive: dict[str, dict[str, Any]], only: list[str] | None, *, added: bool) -> None:
        """Ask the nodes that are new."""
        request, requests = self.request, self.request["requests"]
        for node, entry in sorted(alive.items()):
            if node in self.asked or node in request.get("without", ()) or (only is not None and node not in only):
                continue
            self.asked.add(node)
            self.driver.tell(event="node", added=added, **facts(node, entry))
            given = base64.b64decode(requests.get(node) or requests[""])
            program = self.driver.program(request["program"])
            task = self.driver.remote(worker.work, node)
            self.open[task.remote(request["start"], program, given, request["limit"])] = node
            self.begun[node] = time.monotonic()

    def leave(self, alive: dict[str, dict[str, Any]]) -> None:
        """Stop waiting for nodes that are gone, or that have had their time."""
        for ref, node in list(self.open.items()):
            late = time.monotonic() - self.begun[node] > self.request["limit"]
            if node in alive and not late:
                continue
            del self.open[ref]
            if node in alive and node in self.ended:
                self.end(node, None)
            else:
                self.driver.tell(event="lost", id=node, why="late" if node in alive else "died", text="")

    def take(self, ref: Any) -> None:
        from ray import exceptions

        node, received = self.open.pop(ref), time.time()
        error: Exception | None = None
        answer: Any = None
        try:
            answer = self.driver.ray.get(ref)
        except exceptions.RayError as caught:
            error = caught
        if node in self.ended:
            pinged = self.sent[node]
            gone = error is not None and "crashed" in self.ended[node] and self.is_gone(node, error)
            clock = None if error else [answer - (pinged + received) / 2, (received - pinged) / 2]
            if gone:
                self.driver.tell(event="lost", id=node, why="died", text="")
            else:
                self.end(node, clock)
        elif error is not None and self.is_gone(node, error):
            self.driver.tell(event="lost", id=node, why="died", text="")
        else:
            self.ended[node] = {"crashed": _summary(error)} if error is not None else answer
            self.sent[node] = time.time()
            self.open[self.driver.remote(worker.now, node).remote()] = node

    def is_gone(self, node: str, error: Exception) -> bool:
        from ray import exceptions

        return isinstance(error, exceptions.NodeDiedError) or node not in self.driver.alive()

    def end(self, node: str, clock: list[float] | None) -> None:
        answer = self.ended[node]
        if "crashed" in answer:
            self.driver.tell(event="lost", id=node, why="failed", text=answer["crashed"])
            return
        answers = base64.b64encode(answer["answers"]).decode("ascii")
        self.driver.tell(event="answer", id=node, **{**answer, "answers": answers}, clock=clock)


def _summary(error: Exception) -> str:
    """The kind of an error and the last line of what it says: above it are the frames of Ray's own code."""
    text = next((line for line in reversed(str(error).strip().splitlines()) if line.strip()), "")
    return f"{type(error).__name__}: {text.strip()[:500]}"


def join(ray: Any, address: str) -> None:
    """Join the cluster, through Ray Client for `ray://…`. Raises what Ray raises.

    For each client the head of the cluster forks a process out of one with many threads; on a busy head that process
    may die before it has begun ("Starting Ray client server failed", with an empty log). The next one is another.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            ray.init(address=address, log_to_driver=False, configure_logging=False, namespace="uky-patch")
            return
        except ConnectionError as error:
            if attempt == ATTEMPTS or _NOT_BEGUN not in str(error):
                raise
            time.sleep(LOOK)


def main() -> None:
    address, sink = sys.argv[1], os.fdopen(int(sys.argv[2]), "w", encoding="utf-8")

    def refuse(kind: str, why: str) -> NoReturn:
        sink.write(json.dumps({"event": "refused", "kind": kind, "text": why}) + "\n")
        sink.flush()
        sys.exit(0)

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.setdefault("RAY_gcs_rpc_server_connect_timeout_s", str(int(CONNECT)))
    try:
        import ray
    except ImportError as error:
        refuse("ray", str(error))
    try:
        join(ray, address)
    except Exception as error:
        refuse("join", f"{type(error).__name__}: {error}"[:2000])
    ray.cloudpickle.register_pickle_by_value(worker)  # The nodes need not have it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    driver = Driver(ray, sink)
    gcs = ray.get_runtime_context().gcs_address
    driver.tell(event="joined", version=ray.__version__, python=sys.version.split()[0], gcs=gcs)
    for line in sys.stdin:
        request = json.loads(line)
        (driver.see if request["op"] == "see" else driver.ask)(request)
    ray.shutdown()
