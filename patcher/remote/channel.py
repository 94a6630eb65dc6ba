"""The connection's protocol, seen from the client: requests to the agent on a host, one at a time.

The agent is a Python process (`patcher.agent`), started by ssh on a host, or by us on this machine. All goes over its
standard input and output. Its standard error is kept apart, to tell why a connection failed.

Start
    The client writes what the shell on the host reads (one line: the Python to use), then the size of the agent's
    program on a line and the program itself (`patcher.remote.agent_program`). A nonce is in the program. The agent
    answers with `GREETING`, the nonce and a newline. What comes before that is the output of a login shell.

Frames (`patcher.remote.agent.frames`)
    A message is one line of JSON in ASCII, then as many bytes as its key `body` says. A line has 64 MiB at most, a
    body 1 GiB. In paths, bytes that are no UTF-8 are lone surrogates, as `os.fsdecode` makes them.

Messages of the client
    {"id": 7, "verb": "compare", "args": {...}}  A request. `patcher.agent.VERBS` lists the verbs and the function
                                                 that answers each; its docstring describes arguments and answer.
    {"id": 0, "verb": "beat"}                    A beat: sent every `BEAT` seconds, never answered.

Messages of the agent, each with the id of the request
    {"id": 7, "event": {...}}     Progress before the answer, such as the lines of a log; any number of them.
    {"id": 7, "result": {...}}    The answer. The request is over.
    {"id": 7, "refusal": {"kind", "title", "cause", "advice"}}
                                  The agent says why not; it becomes `RefusedError`. `kind` is one word of a closed set
                                  per verb ("locked", "path", "in-the-way"), "machine" for an error of the operating
                                  system. The sentences are templates with fields (`patcher.messages`), put into the
                                  user's language here.
    {"id": 7, "bug": "..."}       A traceback: the agent failed. It becomes RuntimeError.
    {"id": 0, "event": {}}        A beat: sent every `BEAT` seconds while a request is answered.

The end
    The client hangs up by closing the agent's input. The agent finishes the request that it works on, closes what
    requests have opened (the tree's lock), and exits. If the agent hears nothing for `SILENCE` seconds (45), it takes
    the client for gone. If the client hears nothing for `SILENT_SECONDS` (20) while it waits for an answer, it takes
    the connection for cut: `CutError`, after which a new connection goes on.

Both sides always have the same version, as the client sends the agent anew for each connection.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO, Any, TypeVar

from patcher.errors import ExitCode, HostError
from patcher.i18n import Phrase, Phrases, phrase
from patcher.i18n.codec import decode
from patcher.remote import agent_program
from patcher.remote.agent import frames
from patcher.remote.agent.serving import BEAT
from patcher.remote.failures import ProcessEnd

GREETING_SECONDS = 60.0
"""Seconds until the agent has to greet, without those in which a user types a password. A guess: a login may load its
start-up files, and Python, from a busy network disk."""
SILENT_SECONDS = 20.0
"""Seconds without a sign of life, while an answer is awaited, after which the connection counts as cut."""
_PIECE = 1 << 20
"""Bytes that are read or written at once."""
_ENDED: list[str] = []
"""The names (`Channel.run`) of this process's connections that are closed."""
T = TypeVar("T")
OnEvent = Callable[[Mapping[str, Any], bytes], None]
"""Is called with each event that comes before an answer, and its body."""


def _ignore(event: Mapping[str, Any], body: bytes) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request: values by name, and a body. `answer[name]` raises HostError where there is none."""

    values: Mapping[str, Any]
    body: bytes = b""

    def __getitem__(self, name: str) -> Any:
        try:
            return self.values[name]
        except KeyError:
            raise not_understood(f"no {name}") from None


def understood(read: Callable[[], T]) -> T:
    """What `read` makes of an answer. Raises HostError where the answer does not have the form that it expects.

    An agent of ours always sends that form, so a traceback would blame the wrong program.
    """
    try:
        return read()
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise not_understood(f"{type(error).__name__}: {error}"[:200]) from error


def not_understood(what: str) -> HostError:
    """The error for an answer that no agent of ours sends; `what` is wrong with it."""
    return HostError(
        phrase("the host answers what no agent of ours does"),
        cause=what,
        advice="Look at what its login scripts and its python3 print; then run the command again.",
    )


class RefusedError(HostError):
    """The agent refused a request; `kind` is the verb's own word for the reason."""

    def __init__(self, kind: str, title: Phrase, cause: Phrase | Phrases | str, advice: Phrase | str) -> None:
        super().__init__(title, cause=cause, advice=advice)
        self.kind = kind


class MistakenRequestError(RefusedError):
    """The user asks for what is not there: a job by its id, a script."""

    exit_code = ExitCode.USAGE


_MISTAKES = ("no-job", "unknown", "script")
"""Kinds of refusals that are mistakes of the user, and no trouble of the host."""


def answer_of(verb: str, message: Mapping[str, Any], body: bytes) -> Answer:
    """The answer in the message that ends a request.

    Raises RefusedError for a refusal, RuntimeError for a bug of the agent, HostError for any other message.
    """
    match message:
        case {"result": dict(result)}:
            return Answer(result, body)
        case {"refusal": {"kind": str(kind), "title": title, "cause": cause, "advice": advice}}:
            refusal = MistakenRequestError if kind in _MISTAKES else RefusedError
            raise refusal(kind, *understood(lambda: (decode(title), decode(cause), decode(advice))))
        case {"bug": str(trace)}:
            raise RuntimeError(f"the agent failed at {verb}:\n{trace}")
        case _:
            raise not_understood(", ".join(sorted(map(str, message)))[:200])


class Channel:
    """The client's end of a connection to an agent that has greeted."""

    def __init__(
        self,
        command: list[str],
        first: bytes,
        error_of: Callable[[ProcessEnd], HostError],
        *,
        timeout: float = GREETING_SECONDS,
    ) -> None:
        """Start `command`, write `first` and the agent's program to it, and wait for the greeting.

        `error_of` makes the error to raise when that process ends too early; `timeout` is in seconds.

        Raises HostError if no greeting comes, FileNotFoundError if there is no such command.
        """
        self.run = os.urandom(8).hex()
        """A name for this connection that no other has. It stands in the note of the tree's lock."""
        self._error_of = error_of
        self._stderr = bytearray()
        self._number = 0
        self.trips = 0
        """Requests so far."""
        self._broken = False
        """Whether the connection is lost, so that the process is not waited for at the end."""
        self._process = subprocess.Popen(
            command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._draining = threading.Thread(target=self._drain, daemon=True)
        self._closed = threading.Event()
        self._draining.start()
        try:
            self._pipes = Pipes(self._process.stdin, self._process.stdout)
            self._greet(first, timeout)
        except BaseException:
            self._broken = True
            self.close()
            raise
        threading.Thread(target=self._beat, daemon=True).start()

    def ask(self, verb: str, *, body: bytes = b"", on_event: OnEvent = _ignore, **args: Any) -> Answer:
        """Send a request and wait for its answer.

        Raises:
            CutError: the connection ended first.
            RefusedError: the agent refuses.
            HostError: it answers what no agent of ours does.
            RuntimeError: the agent has failed.
        """
        self._number += 1
        self.trips += 1
        self._send({"id": self._number, "verb": verb, "args": args}, body)
        while True:
            message, content = self._receive()
            if message.get("id") != self._number:
                continue  # A beat, or what is left of a request that was interrupted here.
            if "event" not in message:
                return answer_of(verb, message, content)
            on_event(message["event"], content)

    def ended_runs(self) -> list[str]:
        """The last connections of this process that are closed. An agent may still hold the tree's lock for one of
        them; it ends by itself, so the lock is worth waiting for (`patcher.remote.agent.place.begin`).
        """
        return _ENDED[-20:]

    def hang_up(self) -> None:
        """Close the agent's input, without waiting for its end. After that only `close` may be called."""
        self._closed.set()
        assert self._process.stdin is not None
        if hasattr(self, "_pipes"):
            self._pipes.hang_up()
        with contextlib.suppress(OSError):
            self._process.stdin.close()

    def close(self) -> None:
        """Hang up. The agent finishes the request that it works on, and then ends; it is waited for, up to a limit."""
        _ENDED.append(self.run)
        self.hang_up()
        assert self._process.stdout is not None
        with contextlib.suppress(OSError):
            self._process.stdout.close()  # A process that writes to a full pipe would never end.
        self._await(0.5 if self._broken else 5.0, self._process.terminate)
        self._process.send_signal(signal.SIGCONT)  # A stopped process does not act on SIGTERM.
        self._await(10.0 if self._broken else 60.0, self._process.kill)
        self._process.wait()
        self._draining.join(timeout=2)
        assert self._process.stderr is not None
        if not self._draining.is_alive():
            self._process.stderr.close()

    def _await(self, seconds: float, stop: Callable[[], None]) -> None:
        """Wait for the process to end, and `stop` it if it has not after so many seconds.

        In a thread, as `Popen.wait` with a timeout looks only now and then, and an end comes up to 50 ms late.
        """
        waiting = threading.Thread(target=self._process.wait, daemon=True)
        waiting.start()
        waiting.join(seconds)
        if waiting.is_alive():
            stop()

    def _greet(self, first: bytes, timeout: float) -> None:
        nonce = os.urandom(8).hex()
        try:
            with contextlib.suppress(OSError):  # The process has ended; what it has printed tells why.
                self._pipes.write(first + agent_program.program(nonce), timeout)
            instead = self._pipes.read_greeting(frames.GREETING + nonce.encode() + b"\n", timeout)
        except SilentError:
            raise self._gone(greeted=False, silent=True) from None
        if instead is not None:
            raise self._gone(greeted=False, before_greeting=instead)

    def _send(self, message: Mapping[str, Any], body: bytes) -> None:
        try:
            self._pipes.send(message, body, SILENT_SECONDS)
        except SilentError:
            raise self._gone(silent=True) from None
        except (OSError, ValueError) as error:
            raise self._gone() from error

    def _receive(self) -> tuple[Mapping[str, Any], bytes]:
        try:
            found = self._pipes.receive(SILENT_SECONDS)
        except SilentError:
            raise self._gone(silent=True) from None
        except (OSError, ValueError) as error:
            raise self._gone() from error
        if found is None:
            raise self._gone()
        return found

    def _beat(self) -> None:
        while not self._closed.wait(BEAT):
            with contextlib.suppress(SilentError, OSError, ValueError):
                self._pipes.send({"id": 0, "verb": "beat"}, b"", BEAT)

    def _drain(self) -> None:
        """Keep the end of what the process writes to standard error, so that it never waits for a reader."""
        assert self._process.stderr is not None
        with contextlib.suppress(ValueError, OSError):
            while piece := self._process.stderr.read(65536):
                self._stderr += piece
                del self._stderr[:-20_000]

    def _gone(self, *, greeted: bool = True, silent: bool = False, before_greeting: bytes = b"") -> HostError:
        """The error for a lost connection, which it counts as from now on.

        `silent`: it was given up because nothing came, so the process may still run.
        """
        self._broken = True
        if not silent:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=2)
            self._draining.join(timeout=0.5)
        errors = self._stderr.decode("utf-8", "replace")
        instead = before_greeting.decode("utf-8", "replace")
        return self._error_of(ProcessEnd(self._process.poll(), errors, instead, greeted, silent))


class SilentError(Exception):
    """The other side has neither read nor written anything for too long."""


class Pipes:
    """Messages over the two pipes of a child process. Several threads may send, one may receive.

    An exception while it receives, such as KeyboardInterrupt, loses nothing that has come. One while it sends may leave
    half a message in the pipe; then nothing more is sent (`_torn`).
    """

    def __init__(self, to_child: IO[bytes], from_child: IO[bytes]) -> None:
        self._to, self._from = to_child.fileno(), from_child.fileno()
        os.set_blocking(self._to, False)
        os.set_blocking(self._from, False)
        self._sending = threading.Lock()
        self._torn = False
        self._splitter = frames.Splitter()

    def send(self, message: Mapping[str, Any], body: bytes, timeout: float) -> None:
        """Send one message. Raises SilentError after `timeout` seconds without progress, OSError for a closed pipe."""
        with self._sending:
            self.write(frames.head(dict(message), len(body)) + body, timeout)

    def write(self, content: bytes, timeout: float) -> None:
        """Send bytes that are no message, before the agent runs. Raises as `send` does."""
        if self._torn:
            raise BrokenPipeError
        left = memoryview(content)
        try:
            while left:
                _wait_for(self._to, select.POLLOUT, timeout)
                try:
                    left = left[os.write(self._to, left[:_PIECE]) :]
                except BlockingIOError:
                    continue
        except BaseException:
            self._torn = True
            raise

    def hang_up(self) -> None:
        """Send nothing more, so that the caller can close the child's input: its number may be another file's then."""
        with self._sending:
            self._torn = True

    def receive(self, timeout: float) -> tuple[Mapping[str, Any], bytes] | None:
        """The next message and its body; None at the end.

        Raises SilentError after `timeout` seconds without a byte, ValueError for what is no message.
        """
        while (found := self._splitter.next()) is None:
            _wait_for(self._from, select.POLLIN, timeout)
            if not self._read():
                return None
        return found

    def read_greeting(self, expected: bytes, timeout: float) -> bytes | None:
        """Read up to `expected`, the greeting. None if it came, else what came instead until the end.

        What comes before it, such as the output of `~/.bashrc`, is skipped; only its last 100,000 bytes are kept.

        Raises SilentError after `timeout` seconds in all.
        """
        deadline = time.monotonic() + timeout
        received = b""
        while expected not in received:
            _wait_for(self._from, select.POLLIN, deadline - time.monotonic())
            try:
                piece = os.read(self._from, _PIECE)
            except BlockingIOError:
                continue
            if not piece:
                return received
            received = (received + piece)[-100_000:]
        self._splitter.feed(received.partition(expected)[2])
        return None

    def _read(self) -> bool:
        """Take in what there is to read; False at the end."""
        try:
            piece = os.read(self._from, _PIECE)
        except BlockingIOError:
            return True
        self._splitter.feed(piece)
        return bool(piece)


def _wait_for(fd: int, event: int, timeout: float) -> None:
    poll = select.poll()
    poll.register(fd, event)
    if timeout <= 0 or not poll.poll(timeout * 1000):
        raise SilentError
