"""A git command that runs: its time limit, and its failure as a `TreeError`."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from patcher.errors import TreeError
from patcher.i18n import phrase

LIMIT = 120.0
"""Seconds that a git command may take: it would wait for ever for a pipe in place of a `.gitignore`. A guess."""
_LET_GO = 2.0
"""Seconds between SIGTERM, at which git removes its lock files, and SIGKILL. A guess."""


class Process:
    """A git command that runs."""

    def __init__(
        self, command: Sequence[str], name: str, root: Path, *, folder: Path, env: Mapping[str, str], given: bytes = b""
    ) -> None:
        """Start `command` in `folder`. `given` is its standard input; `name` and `root` are for error messages.

        Raises:
            OSError: it cannot be started.
        """
        self._name, self._root, self._given, self._errors = name, root, given, b""
        self._popen = subprocess.Popen(
            command,
            cwd=folder,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def end(self, fine: Collection[int] = (0,)) -> bytes:
        """Wait for the end and return what the command printed. `fine` are the exit codes that are no failure.

        Raises:
            TreeError: another exit code, or it takes longer than `LIMIT`.
        """
        code, out = self.outcome()
        if code not in fine:
            raise self._refused(self._errors)
        return out

    def outcome(self) -> tuple[int, bytes]:
        """Wait for the end and return the exit code and what the command printed.

        Raises:
            TreeError: it takes longer than `LIMIT`.
        """
        try:
            out, self._errors = self._popen.communicate(self._given, timeout=LIMIT)
        except subprocess.TimeoutExpired as error:
            self.stop()
            raise self._stuck() from error
        except BaseException:
            self.stop()
            raise
        return self._popen.returncode, out

    def converse(self, line: str, answer: str) -> None:
        """Send `line` to a command that reads on, such as `git update-ref --stdin`, and wait for the line `answer`.

        Raises:
            TreeError: git answers something else, ends, or takes longer than `LIMIT`.
        """
        send, output = self._popen.stdin, self._popen.stdout
        assert send is not None
        assert output is not None
        with contextlib.suppress(BrokenPipeError):
            send.write(f"{line}\n".encode())
            send.flush()
        reply = b""
        while not reply.endswith(b"\n"):
            if not select.select([output], [], [], LIMIT)[0]:
                self.stop()
                raise self._stuck()
            part = os.read(output.fileno(), 4096)
            if not part:
                break
            reply += part
        if reply.decode("utf-8", "replace").strip() != answer:
            errors = self._popen.communicate(timeout=LIMIT)[1]
            raise self._refused(errors or reply)

    def stop(self) -> None:
        """End the command if it still runs. It gets time to remove its lock files."""
        if self._popen.poll() is None:
            self._popen.terminate()
            try:
                self._popen.wait(_LET_GO)
            except subprocess.TimeoutExpired:
                self._popen.kill()
                self._popen.wait()
        for stream in (self._popen.stdin, self._popen.stdout, self._popen.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def _stuck(self) -> TreeError:
        return TreeError(
            phrase(
                "git {command} in {root} did not end within {seconds} s",
                command=self._name,
                root=self._root,
                seconds=f"{LIMIT:.0f}",
            ),
            cause=phrase("something that git reads holds it up: a pipe in the place of a file, or a slow disk"),
            advice=phrase("Look for pipes: find {root} -name '.git*' -type p", root=self._root),
        )

    def _refused(self, stderr: bytes) -> TreeError:
        title = phrase("git {command} failed in {root}", command=self._name, root=self._root)
        message = stderr.decode("utf-8", "replace").strip()
        if "dubious ownership" in message:
            return TreeError(
                title,
                cause=phrase("the checkout belongs to another user, so git does not trust it"),
                advice=phrase(
                    "Run as its owner, or say that you trust it: git config --global --add safe.directory {root}",
                    root=self._root,
                ),
            )
        if "tell me who you are" in message or "identity" in message or "ident name" in message:
            return TreeError(
                title,
                cause=phrase("git does not know in whose name to commit"),
                advice=phrase("Say who you are: git config --global user.name NAME, and user.email likewise."),
            )
        return TreeError(title, cause=message, advice="Set right what git names and run the command again.")
