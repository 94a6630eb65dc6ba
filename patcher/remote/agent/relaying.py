"""The verb `relay`: a second agent on a compute node of Slurm answers a request in place of this one on the login node.

srun starts it, on the tree that is open here: that lies on storage which all nodes share. Its events and its answer are
passed on as they are.

srun does not read its input before it has a node, and prints `srun: job 7 queued and waiting for resources` meanwhile.
So writing must not block, and Slurm is asked why the job waits.
"""

from __future__ import annotations

import os
import re
import select
import selectors
import subprocess
import tempfile
import time
import uuid
from typing import IO, TYPE_CHECKING, Any

from patcher.messages import Refusal, listed, phrase, why
from patcher.remote.agent import frames, slurm
from patcher.remote.agent.serving import BEAT

if TYPE_CHECKING:
    from patcher.remote.agent.serving import Request

POLL = 5.0
"""Seconds between two questions to Slurm why there is no node yet: its controller serves the whole cluster."""
FAREWELL = 10.0
"""Seconds that the agent on the node has to end by itself. A guess."""
_PIECE = select.PIPE_BUF
"""Bytes that a pipe which is ready takes without blocking."""
_QUEUED = re.compile(rb"job (\d+) queued")
_LONGEST = 600
"""Characters that an error shows of the end of what srun has printed."""


def relay(request: Request) -> dict[str, Any]:
    """Answer the verb `passed` with `args` on a compute node. The body is the agent's program; it greets with `nonce`.

    `options` are srun's, `command` starts a Python that reads the program. An event `queue` tells why there is no node
    yet. Raises Refusal of kind `slurm` where there is none, `shared` where the tree is not visible there, and what the
    verb refuses.
    """
    args = request.args
    name = f"uky-patch-check-{uuid.uuid4().hex[:8]}"
    command = ["srun", "--nodes=1", "--ntasks=1", f"--job-name={name}", *args["options"], *args["command"]]
    with tempfile.TemporaryFile() as errors:
        try:
            node = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
        except OSError as error:
            raise Refusal("slurm", phrase("{program} cannot be started there", program="srun"), why(error)) from error
        relayed = _Relay(request, node, errors)
        try:
            return relayed.answer()
        finally:
            _end(node, name, FAREWELL if relayed.greeted else 0.0)


class _Relay:
    """The connection to one agent on a compute node, while it answers."""

    def __init__(self, request: Request, node: subprocess.Popen[bytes], errors: IO[bytes]) -> None:
        self._request, self._node, self._errors = request, node, errors
        self._splitter = frames.Splitter()
        self._unsent = b""
        """What srun has not taken yet: the agent's program is larger than the 64 KiB that a pipe holds."""
        self._told = ""
        """The reason to wait that the client was told last, in Slurm's word."""
        self._beat = self._asked = time.monotonic()
        self.greeted = False
        """Whether the agent there has begun; before that srun waits for a node."""

    def answer(self) -> dict[str, Any]:
        """Start the agent, open the tree there, and pass the request on. Raises as `relay` does."""
        args, root = self._request.args, str(self._request.kept["root"])
        self._send(self._request.body)
        self._await_greeting(frames.GREETING + str(args["nonce"]).encode("ascii") + b"\n")
        found = self._ask(1, "begin", {"path": root})
        if not found["exists"]:
            cause = phrase("the tree has to lie on storage that login and compute nodes share")
            raise Refusal("shared", phrase("{path} is not visible on a compute node", path=root), cause)
        return self._ask(2, args["passed"], args["args"])

    def _ask(self, number: int, verb: str, args: dict[str, Any]) -> dict[str, Any]:
        self._send(frames.head({"id": number, "verb": verb, "args": args}, 0))
        while True:
            found = self._splitter.next()
            if found is None:
                self._splitter.feed(self._receive())
                continue
            message, body = found
            if message.get("id") != number:
                continue
            if "event" in message:
                self._request.emit_body(body, **message["event"])
            elif "refusal" in message:
                raise Refusal(**message["refusal"])
            elif "bug" in message:
                raise RuntimeError(f"on a compute node:\n{message['bug']}")
            else:
                self._request.reply_body = body
                return dict(message["result"])

    def _await_greeting(self, greeting: bytes) -> None:
        """Read up to the greeting. What comes before it was printed by a prolog script of the cluster."""
        seen = b""
        while greeting not in seen:
            seen += self._receive()
        self.greeted = True
        self._splitter.feed(seen.partition(greeting)[2])

    def _receive(self) -> bytes:
        """The next bytes from the node; meanwhile send it what is unsent, and beats.

        Raises Refusal of kind `slurm` where srun has ended.
        """
        assert self._node.stdin is not None
        assert self._node.stdout is not None
        while True:
            self._keep_up()
            with selectors.DefaultSelector() as ready:
                ready.register(self._node.stdout, selectors.EVENT_READ)
                if self._unsent:
                    ready.register(self._node.stdin, selectors.EVENT_WRITE)
                found = [key.fileobj for key, _ in ready.select(1.0)]
            if self._node.stdin in found:
                self._write()
            if self._node.stdout in found:
                break
        piece = os.read(self._node.stdout.fileno(), 1 << 16)
        if not piece:
            self._node.wait()
            advice = phrase("Correct the host's table in uky-patch.toml, or look at the cluster: sinfo, squeue.")
            raise Refusal("slurm", phrase("no check could be run on a compute node"), listed(self._srun_said()), advice)
        return piece

    def _keep_up(self) -> None:
        """Send a beat to the agent on the node, or tell the client why there is no node yet, where that is due."""
        now = time.monotonic()
        if self._request.gone():
            raise Refusal("slurm", phrase("nobody waits for the answer any more"))
        if self.greeted and now - self._beat >= BEAT:
            self._beat = now
            self._send(frames.head({"id": 0, "verb": "beat"}, 0))
        if not self.greeted and (now - self._asked >= POLL or not self._told):
            self._asked = now
            self._tell_queue()

    def _tell_queue(self) -> None:
        """Send the event `queue` where Slurm gives another reason to wait than before."""
        found = _QUEUED.search(self._read_said())
        if found is None:
            return
        try:
            queue = slurm.ask(found[1].decode("ascii"))
        except slurm.AwayError:
            return
        if queue.get("state") in slurm.WAITING and queue["reason"] != self._told:
            self._told = queue["reason"]
            self._request.emit(queue=queue)

    def _srun_said(self) -> str:
        text = self._read_said().decode("utf-8", "replace").strip()
        return text[-_LONGEST:] or f"srun: exit code {self._node.returncode}"

    def _read_said(self) -> bytes:
        return os.pread(self._errors.fileno(), 1 << 20, 0)

    def _send(self, content: bytes) -> None:
        self._unsent += content

    def _write(self) -> None:
        assert self._node.stdin is not None
        try:
            self._unsent = self._unsent[os.write(self._node.stdin.fileno(), self._unsent[:_PIECE]) :]
        except OSError:
            self._unsent = b""  # The process has ended, which `_receive` notices.


def _end(node: subprocess.Popen[bytes], name: str, within: float) -> None:
    """Hang up, so that the agent on the node ends by itself. After `within` seconds cancel the job and end srun.

    The job is cancelled by its name, as its number may not be known yet.
    """
    assert node.stdin is not None
    assert node.stdout is not None
    try:
        node.stdin.close()
    except OSError:
        pass
    try:
        node.wait(timeout=within)
    except subprocess.TimeoutExpired:
        try:
            slurm.call(["scancel", f"--name={name}"])
        except slurm.AwayError:
            pass
        node.terminate()
        node.wait()
    node.stdout.close()
