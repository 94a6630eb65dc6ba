"""The system's rsync over the open ssh connection: its command line, its progress, and what its errors mean."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeAlias

from patcher.migrate.agent.receiving import installed_rsync
from patcher.remote.connection import Ssh

OnBytes: TypeAlias = Callable[[int], None]
"""Called with the number of bytes that have arrived since the last call."""
OLDEST = (3, 1)
"""The oldest version that has `--info=progress2`, and that protects its arguments from the remote shell (`-s`)."""
SILENCE = 120
"""Seconds without a byte after which rsync gives up. A guess: a busy network disk can be silent for a minute."""
_LONGEST_MESSAGE = 4000
"""Bytes of rsync's error messages that are kept: there is a line for each file that failed."""


@dataclass(frozen=True, slots=True)
class Paths:
    """Absolute paths for a transfer."""

    source: Path
    """The folder here."""
    incoming: str
    """The folder on the host that the files go to."""
    partial: str
    """The folder on the host for files that have not arrived whole."""
    basis: str | None
    """The tree on the host: rsync sends only the differences from the files in it."""


@dataclass(frozen=True, slots=True)
class RsyncEnd:
    """How rsync has ended."""

    code: int
    """The exit code; negative for the signal that killed it."""
    message: str
    """Its error messages."""

    @property
    def full(self) -> bool:
        """Whether the disk is full."""
        return self._has(errno.ENOSPC)

    @property
    def quota(self) -> bool:
        """Whether the quota is used up."""
        return self._has(errno.EDQUOT)

    @property
    def refused(self) -> bool:
        """Whether a right is missing, or the file system is read-only."""
        return self._has(errno.EACCES, errno.EPERM, errno.EROFS)

    def _has(self, *numbers: int) -> bool:
        """Whether a line of the messages ends in one of these error numbers: `...: No space left on device (28)`."""
        return any(int(found) in numbers for found in re.findall(r": [^:\n]+ \((\d+)\)$", self.message, re.MULTILINE))

    @property
    def vanished(self) -> tuple[str, ...]:
        """The files here that could not be read any more: `file has vanished: "/home/me/verl/a.py"`."""
        found = re.findall(
            r'(?:link_stat|send_files failed to open|has vanished:|errors mapping) "([^"]*)"', self.message
        )
        return tuple(dict.fromkeys(found))


def here() -> tuple[int, ...] | None:
    """The version of rsync on this machine; None without one."""
    found = installed_rsync()
    return version(found) if found else None


def version(text: str) -> tuple[int, ...]:
    """The first three numbers of a version: (3, 2, 7) for "3.2.7pre1"."""
    return tuple(int(number) for number in re.findall(r"\d+", text)[:3])


def transfer(
    ssh: Ssh,
    paths: Paths,
    names: Iterable[str],
    *,
    compress: bool,
    on_bytes: OnBytes,
    meanwhile: Callable[[], None] = lambda: None,
) -> RsyncEnd:
    """Send the files `names`, paths below `paths.source`. The names go over standard input, so they need no quoting.

    `meanwhile` is called once rsync has been started; what it raises ends rsync and is raised.
    """
    command = _command(ssh, paths, compress=compress)
    env = {name: value for name, value in os.environ.items() if not name.startswith("RSYNC_")} | {"LC_ALL": "C"}
    with tempfile.TemporaryFile() as listed, tempfile.TemporaryFile() as errors:
        listed.write(b"".join(os.fsencode(name) + b"\0" for name in names))
        listed.seek(0)
        with subprocess.Popen(command, stdin=listed, stdout=subprocess.PIPE, stderr=errors, env=env) as process:
            try:
                assert process.stdout is not None
                meanwhile()
                _follow(process.stdout, on_bytes)
            except BaseException:
                process.terminate()
                raise
        errors.seek(0)
        return RsyncEnd(process.returncode, errors.read(_LONGEST_MESSAGE).decode("utf-8", "replace").strip())


def _command(ssh: Ssh, paths: Paths, *, compress: bool) -> list[str]:
    # We give the host's name to ssh ourselves, because rsync would take parts of it for a path or an option. In its
    # place rsync gets "exec", which becomes the first word of the remote command: `exec rsync --server …`.
    shell = " ".join(_quoted(part) for part in (*ssh.shared_command(), "--", ssh.host.target))
    return [
        "rsync",
        "--times",
        "--ignore-times",
        "-s",
        "--files-from=-",
        "--from0",
        "--no-implied-dirs",
        f"--partial-dir={paths.partial}",
        *([f"--copy-dest={paths.basis}"] if paths.basis else []),
        *(["--compress"] if compress else []),
        "--info=progress2",
        "--no-human-readable",
        f"--timeout={SILENCE}",
        f"--rsh={shell}",
        "--",
        f"{paths.source}/",
        f"exec:{paths.incoming}/",
    ]


def _quoted(part: str) -> str:
    """Quote a part of `--rsh`, which rsync splits itself: it knows quotes, doubled inside quotes, and no backslash."""
    return part if re.fullmatch(r"[\w@%+=:,./-]+", part) else "'" + part.replace("'", "''") + "'"


def _follow(out: IO[bytes], on_bytes: OnBytes) -> None:
    """Read rsync's lines of progress until it ends: `  1,234,567  12%   10.31MB/s    0:00:07`."""
    rest, reported = b"", 0
    while piece := os.read(out.fileno(), 65536):
        *lines, rest = re.split(rb"[\r\n]", rest + piece)
        for line in lines:
            if found := re.match(rb"\s*([\d,]+)\s+\d+%", line):
                done = int(found.group(1).replace(b",", b""))
                if done > reported:
                    on_bytes(done - reported)
                    reported = done
