"""The program that joins a Ray cluster and asks its nodes. It runs in the interpreter that has Ray.

That interpreter need not have this project: only `patcher.cluster.worker`, which is sent to the nodes, lies beside it.
Requests come as lines of JSON on standard input. Events go as lines of JSON to the descriptor that the program's second
argument names, because Ray prints to standard output and standard error.

A request is `{"op": "ask", "program": PATH, "start": TEXT, "requests": {NODE ID or "": BASE64}, "limit": SECONDS,
"only": [NODE ID…] or null, "without": [NODE ID…]}`: `patcher.cluster.worker.work` runs on each node, with the
requests that are listed for it, else with those under "". Events:

- `{"event": "joined", "version", "python", "gcs"}`, once, or `{"event": "refused", "kind", "text"}` and the end;
- `{"event": "node", "id", "name", "label", "address", "head", "resources", "added"}` for each node that is asked;
- `{"event": "answer", "id", "answers": BASE64, "failed", "python", "clock": [offset, uncertainty] or null}`; `clock`
  is the seconds that the node's clock is ahead of this machine's;
- `{"event": "lost", "id", "why": "died" | "late" | "failed", "text"}`;
- `{"event": "end"}` when no node that was asked is open any more.

`{"op": "see", "program": PATH, "of": "MODULE:CLASS", "verb", "args", "limit", "only", "leave"}` asks an actor on each
node, which lives on for the next such request. `node` comes when it is made, then `{"event": "seen", "id", "text"}` or
`lost`. The actors on the nodes of `leave` are ended.
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
"""Seconds between two looks at which nodes there are."""
CONNECT = 20.0
"""Seconds that Ray may try to reach the cluster. A guess."""
ATTEMPTS = 3
"""How often joining is tried. A guess: see `join`."""
_NOT_BEGUN = "Starting Ray client server failed"


class Driver:
    """The cluster that was joined, by the module `ray`; `sink` takes the events."""

    def __init__(self, ray: Any, sink: TextIO) -> None:
        self.ray = ray
        self.sink = sink
        self._programs: dict[str, Any] = {}
        """Programs that were put into Ray's object store, by the path of the file."""
        self._actors: dict[str, Any] = {}
        """Actors by the id of their node."""

    def tell(self, **event: Any) -> None:
        """Send one event."""
        self.sink.write(json.dumps(event) + "\n")
        self.sink.flush()

    def alive(self) -> dict[str, dict[str, Any]]:
        """What Ray tells of each node that is alive, by the node's id."""
        return {node["NodeID"]: node for node in self.ray.nodes() if node.get("Alive", node.get("alive"))}

    def ask(self, request: dict[str, Any]) -> None:
        """Ask the nodes at the same time. One that joins meanwhile is asked too; one that dies or is late is told."""
        Asking(self, request).run()
        self.tell(event="end")

    def see(self, request: dict[str, Any]) -> None:
        """Ask the actors of some nodes, or of all. An actor is made when its node is first asked."""
        only, open_ = request.get("only"), {}
        for node in request.get("leave", ()):
            self.ray.kill(self._actors.pop(node))
        for node, entry in sorted(self.alive().items()):
            if only is not None and node not in only:
                continue
            if node not in self._actors:
                self.tell(event="node", **facts(node, entry))
                actor = self.remote(worker.Actor, node)
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

    def remote(self, function: Any, node: str, **options: Any) -> Any:
        """A function as a task, or a class as an actor, that Ray runs on this very node.

        It asks for no CPU, so that it also runs where a training has taken all of them.
        """
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        strategy = NodeAffinitySchedulingStrategy(node, soft=False)
        return self.ray.remote(function).options(scheduling_strategy=strategy, num_cpus=0, **options)

    def task(self, function: Any, node: str) -> Any:
        """The same for a function that runs once: where its worker crashes, Ray does not start it again."""
        return self.remote(function, node, max_retries=0)

    def program(self, path: str) -> Any:
        """The content of a file as an object of Ray, which sends it to each node once."""
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
    """One request to many nodes. On each node a task does the work, and then a second one reads the clock.

    The second one also tells a crashed task from a lost node: on that it cannot run either.
    """

    def __init__(self, driver: Driver, request: dict[str, Any]) -> None:
        self.driver = driver
        self.request = request
        self.asked: set[str] = set()
        self.open: dict[Any, str] = {}
        """The tasks that have not ended, by Ray's reference, with their nodes."""
        self.begun: dict[str, float] = {}
        """By node, when it was asked, by the monotonic clock."""
        self.ended: dict[str, dict[str, Any]] = {}
        """By node, what the first task has given; under "crashed" what Ray says of one that has crashed."""
        self.sent: dict[str, float] = {}
        """By node, when its clock was asked for, in seconds since 1970."""

    def run(self) -> None:
        """Ask the nodes, and tell of each what has become of it; return when none is open any more."""
        only = self.request.get("only")
        self.ask_new(self.driver.alive(), only, added=False)
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
                self.ask_new(alive, only, added=True)
                self.drop_lost(alive)

    def ask_new(self, alive: dict[str, dict[str, Any]], only: list[str] | None, *, added: bool) -> None:
        """Start the task on nodes that were not asked yet."""
        request, requests = self.request, self.request["requests"]
        for node, entry in sorted(alive.items()):
            if node in self.asked or node in request.get("without", ()) or (only is not None and node not in only):
                continue
            self.asked.add(node)
            self.driver.tell(event="node", added=added, **facts(node, entry))
            given = base64.b64decode(requests.get(node) or requests[""])
            program = self.driver.program(request["program"])
            task = self.driver.task(worker.work, node)
            self.open[task.remote(request["start"], program, given, request["limit"])] = node
            self.begun[node] = time.monotonic()

    def drop_lost(self, alive: dict[str, dict[str, Any]]) -> None:
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
        """Take the result of a task that has ended.

        The offset of a node's clock is what it tells less the middle between question and answer; half of the time
        between these is the uncertainty.
        """
        from ray import exceptions

        node, received = self.open.pop(ref), time.time()
        error: Exception | None = None
        answer: Any = None
        try:
            answer = self.driver.ray.get(ref)
        except exceptions.RayError as caught:
            error = caught
        if node in self.ended:
            sent = self.sent[node]
            gone = error is not None and "crashed" in self.ended[node] and self.is_gone(node, error)
            clock = None if error else [answer - (sent + received) / 2, (received - sent) / 2]
            if gone:
                self.driver.tell(event="lost", id=node, why="died", text="")
            else:
                self.end(node, clock)
        elif error is not None and self.is_gone(node, error):
            self.driver.tell(event="lost", id=node, why="died", text="")
        else:
            self.ended[node] = {"crashed": _summary(error)} if error is not None else answer
            self.sent[node] = time.time()
            self.open[self.driver.task(worker.now, node).remote()] = node

    def is_gone(self, node: str, error: Exception) -> bool:
        """Whether a task has failed because its whole node is lost."""
        from ray import exceptions

        return isinstance(error, exceptions.NodeDiedError) or node not in self.driver.alive()

    def end(self, node: str, clock: list[float] | None) -> None:
        """Tell what the first task of a node has given."""
        answer = self.ended[node]
        if "crashed" in answer:
            self.driver.tell(event="lost", id=node, why="failed", text=answer["crashed"])
            return
        answers = base64.b64encode(answer["answers"]).decode("ascii")
        self.driver.tell(event="answer", id=node, **{**answer, "answers": answers}, clock=clock)


def _summary(error: Exception) -> str:
    """The kind of an error and its last line: above that Ray's errors have the traceback of the worker."""
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
    """Join the cluster at the address in the first argument, and answer requests until standard input ends."""
    address, sink = sys.argv[1], os.fdopen(int(sys.argv[2]), "w", encoding="utf-8")

    def refuse(kind: str, why: str) -> NoReturn:
        sink.write(json.dumps({"event": "refused", "kind": kind, "text": why}) + "\n")
        sink.flush()
        sys.exit(0)

    # Before Ray is imported, which reads them.
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
