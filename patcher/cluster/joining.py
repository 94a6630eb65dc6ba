"""Join a Ray cluster, and run verbs of the agent on its nodes.

This process does not import Ray, whose version and Python have to be those of the cluster. It starts a child process in
the interpreter that has that Ray (`patcher.cluster.driver`), and exchanges lines of JSON with it. The driver runs a
task on each node (`patcher.cluster.worker`), which runs the agent from memory and brings back its answers.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, Any

import patcher
import patcher.cluster
from patcher.cluster import driver, worker
from patcher.cluster.model import Node, Reply, failed_node, named, node_of, replies_of
from patcher.errors import HostError, UsageError
from patcher.i18n import phrase
from patcher.remote.agent import frames
from patcher.remote.agent_program import BOOTSTRAP, SENT, program_of, sources_of
from patcher.worktree.json_text import parse_json

CLIENT = "ray://"
"""What the address of a Ray Client begins with, by which a machine outside of the cluster joins it."""
JOINING = 180.0
"""Seconds for Ray to be imported and to join. A guess: for a Ray Client the head starts a process, which took over 90 s
on a busy machine."""
GRACE = 30.0
"""Seconds beyond the limit of the nodes after which the driver itself counts as hung. A guess."""
_START_DRIVER = "import sys; sys.path.insert(0, sys.argv.pop(1)); from patcher.cluster.driver import main; main()"
SENT_TO_NODES = (*SENT, "__init__.py", "cluster/node.py", "errors.py", "i18n/*.py", "visible.py", "tree", "git")
"""What a node is sent, as patterns below `patcher`: the agent, and what `patcher.cluster.node` needs. It uses the
standard library alone, that of Python 3.10 for the latter."""
START = "from patcher.agent import VERBS; from patcher.cluster.node import main; main(VERBS)"
"""The statements with which the agent begins on a node."""
_KNOCK = 5.0
"""Seconds in which somebody has to accept a connection at the cluster's address. A guess."""
_ENDING = 10.0
"""Seconds for the driver to end once nothing more is asked of it; then it is killed. A guess."""
_LONGEST = 600
"""The most characters of Ray's own message that an error shows."""


Call = tuple[str, Mapping[str, Any]]
"""A verb of the agent, and its arguments."""
Answered = tuple[Node, tuple[Reply, ...]]
"""A node, and its reply to each call; none where it has not answered."""


@lru_cache(maxsize=1)
def program() -> bytes:
    """What the Python on a node that runs `patcher.remote.agent_program.BOOTSTRAP` reads before the requests.

    The bytes are the same for each call, so that Ray sends them to a node once.
    """
    return program_of(sources_of(SENT_TO_NODES), START)


class Cluster:
    """A cluster, as the driver has joined it."""

    def __init__(self, process: subprocess.Popen[str], events: IO[bytes], output: IO[bytes], program: Path) -> None:
        """`process` is the driver, `events` what it tells, `output` the file with what it prints; `program` is the file
        with the program for nodes.
        """
        self._process = process
        self._events = events
        self._output = output
        self._program = program
        self._rest = b""
        self.gcs = ""
        """The address that the cluster's raylets were started with."""
        self._seen: dict[str, Node] = {}

    @property
    def looked_at(self) -> Mapping[str, Node]:
        """By id, the nodes on which an actor was made by `see`, whether it has answered or not."""
        return self._seen

    def joined(self, address: str) -> None:
        """Wait until the driver has joined the cluster.

        Raises UsageError where its interpreter has no Ray, HostError where the cluster cannot be joined.
        """
        event = self._event(JOINING)
        if event["event"] == "joined":
            self.gcs = event["gcs"]
            return
        if event.get("kind") == "ray":
            raise UsageError(
                phrase("there is no Ray under {python}", python=str(self._process.args[0])),  # type: ignore[index]
                cause=event["text"],
                advice="Name the interpreter that the cluster runs with --python.",
            )
        raise HostError(
            phrase("the cluster at {address} cannot be joined", address=address),
            cause=" ".join(event.get("text", "").split())[:_LONGEST],
            advice=phrase("Run it on a node of the cluster, with its Ray and Python; from elsewhere: ray://HEAD:10001"),
        )

    def ask(
        self,
        calls: Sequence[Call],
        limit: float,
        *,
        only: Sequence[Node] | None = None,
        without: Sequence[Node] = (),
        own: Mapping[str, Sequence[Call]] | None = None,
        on_node: Callable[[Node], None] = lambda _: None,
    ) -> tuple[Answered, ...]:
        """Have the agent answer `calls`, one after another, on all nodes that are alive or on those of `only`.

        Args:
            limit: seconds that a node has; one that takes longer is `late`.
            own: other calls for some nodes, by the node's id.
            on_node: is called with each node as its answer comes.

        Returns each node that was asked, with its `state`, and its replies. Raises HostError where the driver fails.
        """
        own = own or {}
        self._send(
            {
                "op": "ask",
                "program": str(self._program),
                "start": BOOTSTRAP,
                "requests": {"": _frames(calls), **{node: _frames(theirs) for node, theirs in own.items()}},
                "limit": limit,
                "only": None if only is None else [node.id for node in only],
                "without": [node.id for node in without],
            }
        )
        asked = {node.id: node for node in only or ()}
        found: dict[str, Answered] = {}
        while (event := self._event(limit + GRACE))["event"] != "end":
            if event["event"] == "node":
                asked[event["id"]] = node_of(event)
                continue
            node = asked[event["id"]]
            if event["event"] == "answer":
                found[node.id] = replies_of(node, event, [verb for verb, _ in own.get(node.id, calls)])
            else:
                found[node.id] = failed_node(node, event), ()
            on_node(found[node.id][0])
        return tuple(found.values())

    def see(
        self,
        of: type,
        verb: str,
        args: Mapping[str, Any],
        limit: float,
        *,
        only: Sequence[str] | None = None,
        leave: Sequence[str] = (),
    ) -> dict[str, tuple[Node, Any]]:
        """Ask an actor on each node, or on those whose ids are `only`: by the node's id, the node and the answer.

        The actor is an object of the class `of`, one of those that are sent to nodes. It is made when its node is first
        asked, and lasts for further calls. The actors on the nodes `leave` are ended before. A node that gives no
        answer within `limit` seconds is missing in what is returned.

        Raises HostError where the driver fails.
        """
        request = {"op": "see", "program": str(self._program), "verb": verb, "args": args, "limit": limit}
        self._send({**request, "of": f"{of.__module__}:{of.__qualname__}", "only": only, "leave": leave})
        found = {}
        while (event := self._event(limit + GRACE))["event"] != "end":
            if event["event"] == "node":
                self._seen[event["id"]] = replace(node_of(event), state="late")
                self._seen = {node.id: node for node in named(tuple(self._seen.values()))}
            elif event["event"] == "seen":
                found[event["id"]] = (self._seen[event["id"]], event["text"])
        return found

    def _send(self, request: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()

    def _event(self, seconds: float) -> dict[str, Any]:
        """The driver's next event. Raises HostError where none comes within so many seconds."""
        until = time.monotonic() + seconds
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self._events], [], [], max(0.0, until - time.monotonic()))
            piece = os.read(self._events.fileno(), 1 << 20) if ready else None
            if not piece:
                self._fail(hung=piece is None)
            else:
                self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        found: dict[str, Any] = parse_json(line)
        return found

    def _fail(self, *, hung: bool) -> None:
        cause = phrase("Ray gives no answer any more")
        if not hung:
            cause = phrase("its driver has ended: {message}", message=self._last_words())
        raise HostError(phrase("the cluster was lost"), cause=cause, advice="Look at it with: ray status")

    def _last_words(self) -> str:
        """The last line that the driver has printed, or its exit code: for one that has closed its events."""
        self._output.seek(0)
        lines = [line for line in self._output.read().decode("utf-8", "replace").splitlines() if line.strip()]
        if lines:
            return lines[-1].strip()[:500]
        with contextlib.suppress(subprocess.TimeoutExpired):
            return f"exit code {self._process.wait(_ENDING)}"
        return "-"


def _frames(calls: Sequence[Call]) -> str:
    """Requests of the agent's protocol, as base64 for a line of JSON."""
    heads = [frames.head({"id": number, "verb": verb, "args": args}, 0) for number, (verb, args) in enumerate(calls)]
    return base64.b64encode(b"".join(heads)).decode("ascii")


@contextlib.contextmanager
def joined(address: str, python: Path) -> Iterator[Cluster]:
    """Join the cluster at `address`, as `ray.init` takes it, with the Ray of the interpreter `python`.

    The driver and the module for the workers are copied into a folder of their own, because that interpreter may not
    have this project, or another version of it.

    Raises UsageError for an invalid address and an interpreter without Ray, HostError where nobody answers at the
    address or the cluster cannot be joined.
    """
    _knock(address)
    with TemporaryDirectory(prefix="uky-patch-cluster-") as folder, TemporaryFile() as output:
        sources, sent = Path(folder) / "sources", Path(folder) / "program"
        for module in (patcher, patcher.cluster, driver, worker):
            assert module.__file__ is not None
            copy = sources / Path(module.__file__).relative_to(Path(patcher.__path__[0]).parent)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(module.__file__, copy)
        sent.write_bytes(program())
        nowhere = Path(folder) / "nowhere"  # `python -c` imports from the working folder, which may be a tree.
        nowhere.mkdir()
        source, sink = os.pipe()
        with os.fdopen(source, "rb", buffering=0) as events:
            try:
                process = subprocess.Popen(
                    [str(python), "-c", _START_DRIVER, str(sources), address, str(sink)],
                    stdin=subprocess.PIPE,
                    stdout=output,
                    stderr=output,
                    pass_fds=[sink],
                    cwd=nowhere,
                    text=True,
                    start_new_session=True,
                )
            finally:
                os.close(sink)
            try:
                cluster = Cluster(process, events, output, sent)
                cluster.joined(address)
                yield cluster
            except BaseException:
                process.terminate()
                raise
            finally:
                _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        process.stdin.close()
    try:
        process.wait(_ENDING)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _knock(address: str) -> None:
    """Raise HostError where nobody listens at the address: Ray itself would try for a minute, and tell less.

    Raises UsageError for what is no address.
    """
    place = address.removeprefix(CLIENT)
    if place == "auto":
        return
    host, separator, port = place.rpartition(":")
    if not (separator and host and port.isdigit() and int(port) < 1 << 16):
        raise UsageError(
            phrase("{address!r} is no address of a cluster", address=address),
            advice=phrase("Write it as HOST:PORT, ray://HOST:PORT, or auto for the one that this machine belongs to."),
        )
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_KNOCK):
            pass
    except OSError as error:
        raise HostError(
            phrase("nobody answers at {address}", address=address),
            cause=error.strerror or str(error),
            advice=phrase("The head's address is shown by: ray status"),
        ) from error
