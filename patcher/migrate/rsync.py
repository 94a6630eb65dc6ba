"""The system's rsync over the open connection: how it is called, and what its ends mean."""

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
"""Called with how many more bytes have come."""
OLDEST = (3, 1)
"""Has `--info=progress2` and protects its arguments from the remote shell."""
SILENCE = 120
"""Seconds without a byte after which rsync gives up. A guess: a busy network disk is silent for a minute."""
_LONGEST_MESSAGE = 4000
"""Characters of what rsync says that are kept: it names each file that failed."""


@dataclass(frozen=True, slots=True)
class Paths:
    """Where files come from here, and go to there. All absolute."""

    source: Path
    incoming: str
    partial: str
    basis: str | None
    """The tree there: what is to be replaced, so that only differences are sent."""


@dataclass(frozen=True, slots=True)
class RsyncEnd:
    """How rsync ended: its exit code, negative for the signal that killed it, and its error messages."""

    code: int
    message: str

    @property
    def full(self) -> bool:
        return self._has(errno.ENOSPC)

    @property
    def quota(self) -> bool:
        return self._has(errno.EDQUOT)

    @property
    def refused(self) -> bool:
        """Whether a right is missing, or the file system is read-only."""
        return self._has(errno.EACCES, errno.EPERM, errno.EROFS)

    def _has(self, *numbers: int) -> bool:
        """Whether a line ends in one of these error numbers, as rsync tells them."""
        return any(int(found) in numbers for found in re.findall(r": [^:\n]+ \((\d+)\)$", self.message, re.MULTILINE))

    @property
    def vanished(self) -> tuple[str, ...]:
        """Files that could not be read here any more."""
        found = re.findall(
            r'(?:link_stat|send_files failed to open|has vanished:|errors mapping) "([^"]*)"', self.message
        )
        return tuple(dict.fromkeys(found))


def here() -> tuple[int, ...] | None:
    """The version of rsync on this machine; None where there is none that is as we know it."""
    found = installed_rsync()
    return version(found) if found else None


def version(text: str) -> tuple[int, ...]:
    """The numbers of a version."""
    return tuple(int(number) for number in re.findall(r"\d+", text)[:3])


def transfer(ssh: Ssh, paths: Paths, names: Iterable[str], *, compress: bool, on_bytes: OnBytes) -> RsyncEnd:
    """Send the files at `names`, below `paths.source`. Names go over standard input, places as rsync's own data."""
    command = _command(ssh, paths, compress=compress)
    env = {name: value for name, value in os.environ.items() if not name.startswith("RSYNC_")} | {"LC_ALL": "C"}
    with tempfile.TemporaryFile() as listed, tempfile.TemporaryFile() as errors:
        listed.write(b"".join(os.fsencode(name) + b"\0" for name in names))
        listed.seek(0)
        with subprocess.Popen(command, stdin=listed, stdout=subprocess.PIPE, stderr=errors, env=env) as process:
            try:
                assert process.stdout is not None
                _follow(process.stdout, on_bytes)
            except BaseException:
                process.terminate()
                raise
        errors.seek(0)
        return RsyncEnd(process.returncode, errors.read(_LONGEST_MESSAGE).decode("utf-8", "replace").strip())


def _command(ssh: Ssh, paths: Paths, *, compress: bool) -> list[str]:
    # The name of the host is given to ssh by us and not by rsync, which would take parts of it for a place or an
    # option. In the name's stead rsync has the word that comes first on the remote command line: `exec rsync …`.
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
    """For rsync's own splitting of `--rsh`, which knows quotes but no backslash."""
    return part if re.fullmatch(r"[\w@%+=:,./-]+", part) else "'" + part.replace("'", "''") + "'"


def _follow(out: IO[bytes], on_bytes: OnBytes) -> None:
    rest, reported = b"", 0
    while piece := os.read(out.fileno(), 65536):
        *lines, rest = re.split(rb"[\r\n]", rest + piece)
        for line in lines:
            if found := re.match(rb"\s*([\d,]+)\s+\d+%", line):
                done = int(found.group(1).replace(b",", b""))
                if done > reported:
                    on_bytes(done - reported)
                    reported = done
