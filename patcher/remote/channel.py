"""Requests to the agent on a host, one at a time, over one process: ssh, or on this machine Python itself."""

from __future__ import annotations

import contextlib
import secrets
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from patcher.errors import HostError
from patcher.i18n import Phrase, Phrases, phrase
from patcher.i18n.codec import decode as decode  # Others import it from here.
from patcher.remote import payload
from patcher.remote.agent import frames
from patcher.remote.agent.serving import BEAT
from patcher.remote.ending import Ending
from patcher.remote.pipes import Pipes, SilentError

GREETING_SECONDS = 60.0
"""How long a host may take to answer at first, the user's typing of a password not counted in."""
SILENT_SECONDS = 20.0
"""Seconds without a sign of life, while an answer is awaited, after which the connection counts as cut."""
_ENDED: list[str] = []
T = TypeVar("T")
OnEvent = Callable[[Mapping[str, Any], bytes], None]


def _ignore(event: Mapping[str, Any], body: bytes) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Answer:
    """What a verb gave: values, and bytes where it has any."""

    values: Mapping[str, Any]
    body: bytes = b""

    def __getitem__(self, name: str) -> Any:
        try:
            return self.values[name]
        except KeyError:
            raise not_understood(f"no {name}") from None


def understood(read: Callable[[], T]) -> T:
    """What `read` makes of a host's answer. Raises HostError where the answer does not have that form."""
    try:
        return read()
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise not_understood(f"{type(error).__name__}: {error}"[:200]) from error


def not_understood(what: str) -> HostError:
    return HostError(
        phrase("the host answers what no agent of ours does"),
        cause=what,
        advice="Look at what its login scripts and its python3 print; then run the command again.",
    )


class RefusedError(HostError):
    """The agent refused; `kind` is the verb's own word for the reason."""

    def __init__(self, kind: str, title: Phrase, cause: Phrase | Phrases | str, advice: Phrase | str) -> None:
        super().__init__(title, cause=cause, advice=advice)
        self.kind = kind


class Channel:
    """An agent that has greeted. `make` makes the error from the way in which the process ended too early."""

    def __init__(
        self,
        command: list[str],
        first: bytes,
        make: Callable[[Ending], HostError],
        *,
        patience: float = GREETING_SECONDS,
    ) -> None:
        """Start `command`, write `first` and the agent, and wait for its greeting, `patience` seconds at most.

        Raises HostError where it does not come, FileNotFoundError where there is no such command.
        """
        self.run = secrets.token_hex(8)
        """A name for this connection that no other has."""
        self._make = make
        self._stderr = bytearray()
        self._number = 0
        self.trips = 0
        """Requests so far."""
        self._broken = False
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
            self._greet(first, patience)
        except BaseException:
            self._broken = True
            self.close()
            raise
        threading.Thread(target=self._beat, daemon=True).start()

    def ask(self, verb: str, *, body: bytes = b"", on_event: OnEvent = _ignore, **args: Any) -> Answer:
        """Send a request and wait for its answer.

        Raises:
            CutError: the connection ended first.
            RefusedError: the agent says why not.
        """
        self._number += 1
        self.trips += 1
        self._send({"id": self._number, "verb": verb, "args": args}, body)
        while True:
            message, content = self._receive()
            if message.get("id") != self._number:
                continue
            match message:
                case {"event": event}:
                    on_event(event, content)
                case {"result": dict(result)}:
                    return Answer(result, content)
                case {"refusal": {"kind": str(kind), "title": title, "cause": cause, "advice": advice}}:
                    raise RefusedError(kind, *understood(lambda: (decode(title), decode(cause), decode(advice))))
                case {"bug": str(trace)}:
                    raise RuntimeError(f"the agent failed at {verb}:\n{trace}")
                case _:
                    raise not_understood(", ".join(sorted(map(str, message)))[:200])

    def ended_runs(self) -> list[str]:
        """Connections of this process that are closed: whoever still works for them can be waited for."""
        return _ENDED[-20:]

    def close(self) -> None:
        """Hang up; the agent ends what it is doing, and then itself."""
        _ENDED.append(self.run)
        self._closed.set()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        if hasattr(self, "_pipes"):
            self._pipes.hang_up()
        with contextlib.suppress(OSError):
            self._process.stdin.close()
            self._process.stdout.close()  # What nobody reads any more would hold the other side up.
        self._await(0.5 if self._broken else 5.0, self._process.terminate)
        self._process.send_signal(signal.SIGCONT)  # One that is stopped would never hear of it.
        self._await(10.0 if self._broken else 60.0, self._process.kill)
        self._process.wait()
        self._draining.join(timeout=2)
        assert self._process.stderr is not None
        if not self._draining.is_alive():
            self._process.stderr.close()

    def _await(self, seconds: float, stop: Callable[[], None]) -> None:
        try:
            self._process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            stop()

    def _greet(self, first: bytes, patience: float) -> None:
        nonce = secrets.token_hex(8)
        try:
            with contextlib.suppress(OSError):  # What it says then tells why.
                self._pipes.write(first + payload.payload(nonce), patience)
            said = self._pipes.greeting(frames.GREETING + nonce.encode() + b"\n", patience)
        except SilentError:
            raise self._gone(greeted=False, silent=True) from None
        if said is not None:
            raise self._gone(greeted=False, said=said)

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
        assert self._process.stderr is not None
        with contextlib.suppress(ValueError, OSError):
            while piece := self._process.stderr.read(65536):
                self._stderr += piece
                del self._stderr[:-20_000]

    def _gone(self, *, greeted: bool = True, silent: bool = False, said: bytes = b"") -> HostError:
        """The error for an agent that is lost. From now on the process is not waited for."""
        self._broken = True
        if not silent:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=2)
            self._draining.join(timeout=0.5)
        errors = self._stderr.decode("utf-8", "replace")
        return self._make(Ending(self._process.poll(), errors, said.decode("utf-8", "replace"), greeted, silent))
