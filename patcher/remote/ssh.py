"""How the system's ssh is called, and what its errors mean."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from patcher.remote.host import Host

CONNECT_SECONDS = 15
ALIVE_SECONDS = 5
ALIVE_MISSED = 4
"""A silent connection counts as cut after ALIVE_SECONDS * ALIVE_MISSED seconds."""


@dataclass(frozen=True, slots=True)
class Ssh:
    """The options that every call of ssh for one host shares. `control` is the socket of the one connection."""

    host: Host
    control: Path

    def master(self, command: str) -> list[str]:
        """Open the connection and run `command` on it. The host's name comes last, behind `--`."""
        return ["ssh", *self._options(), "-o", "ControlMaster=yes", "-T", "--", self.host.target, command]

    def rider(self) -> list[str]:
        """ssh over the open connection, without host and command: for rsync's `-e`."""
        return ["ssh", *self._options(), "-o", "ControlMaster=no"]

    @property
    def rsync_host(self) -> str:
        """The host as rsync wants it in HOST:PATH: an IPv6 address in brackets."""
        user, at, host = self.host.target.rpartition("@")
        return f"{user}{at}[{host}]" if ":" in host else self.host.target

    def _options(self) -> list[str]:
        options = [part for name, value in self._values().items() for part in ("-o", f"{name}={value}")]
        return options + (["-p", str(self.host.port)] if self.host.port else [])

    def _values(self) -> Mapping[str, str]:
        """What must hold whatever the user's configuration says."""
        asking = interactive()
        return {
            "ControlPath": str(self.control),
            "ControlPersist": "no",
            "ConnectTimeout": str(CONNECT_SECONDS),
            "ServerAliveInterval": str(ALIVE_SECONDS),
            "ServerAliveCountMax": str(ALIVE_MISSED),
            "BatchMode": "no" if asking else "yes",
            "StrictHostKeyChecking": "ask" if asking else "yes",
            "UpdateHostKeys": "no",
            "RemoteCommand": "none",
            "RequestTTY": "no",
            "ForwardX11": "no",
            "ForwardAgent": "no",
            "PermitLocalCommand": "no",
            "ClearAllForwardings": "yes",
            "LogLevel": "ERROR",
            "EscapeChar": "none",
        }


def interactive() -> bool:
    """Whether ssh can ask its user for a password, or whether a new host's key is right."""
    return sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()
