"""What ssh says when it fails before anything has run on the host, and what that means. The first that fits counts."""

from __future__ import annotations

import re
from dataclasses import dataclass

from patcher.errors import HostError, LoginError, UnknownHostError, UnreachableError
from patcher.i18n import Phrase, phrase


@dataclass(frozen=True, slots=True)
class Cause:
    """`pattern` is searched in what ssh said. The sentences have gaps for `host` and `target`."""

    pattern: str
    kind: type[HostError]
    title: Phrase
    advice: Phrase


def cause_of(said: str) -> Cause | None:
    """The cause that ssh's own words name."""
    return next((cause for cause in CAUSES if re.search(cause.pattern, said)), None)


CAUSES: tuple[Cause, ...] = (
    Cause(
        r"revoked",
        LoginError,
        phrase("{host}: its host key is revoked"),
        phrase("Do not go on. Ask the machine's owner."),
    ),
    Cause(
        r"Host key verification failed|host key is known for",
        LoginError,
        phrase("{host}: its host key is not known yet"),
        phrase("Connect once by hand, compare the fingerprint with its owner's, and accept it: ssh {target}"),
    ),
    Cause(
        r"Could not resolve hostname|Name or service not known|Temporary failure in name resolution",
        UnknownHostError,
        phrase("{host}: there is no host of this name"),
        phrase("Look at the name, at HostName in ~/.ssh/config, and whether the network or VPN is up."),
    ),
    Cause(
        r"Connection refused",
        UnreachableError,
        phrase("{host}: it refuses the connection"),
        phrase("No sshd listens there at this port. Look at the port; a machine that starts may need a minute."),
    ),
    Cause(
        r"timed out|No route to host|Network is unreachable|Host is down",
        UnreachableError,
        phrase("{host}: it does not answer"),
        phrase("The machine may be off or asleep, or a firewall or a missing VPN in between."),
    ),
    Cause(
        r"Permission denied|Too many authentication failures|No more authentication methods",
        LoginError,
        phrase("{host}: it does not let you in"),
        phrase("Look at the user, and at IdentityFile in ~/.ssh/config; what is tried is told by: ssh -v {target}"),
    ),
    Cause(
        r"[Bb]ad configuration option|Bad owner or permissions on|terminating, \d+ bad|keyword \S+ extra arguments",
        LoginError,
        phrase("{host}: ssh does not accept its configuration"),
        phrase("Mend the file and line that it names."),
    ),
    Cause(
        r"unix_listener|ControlPath|ControlSocket|muxserver",
        LoginError,
        phrase("{host}: ssh cannot make the socket of the connection"),
        phrase("Set TMPDIR to a folder on a local disk with a short path that you may write to."),
    ),
    Cause(
        r"[Uu]nable to negotiate|no matching .* found",
        LoginError,
        phrase("{host}: its sshd and this ssh have no method in common"),
        phrase("One of them is very old. Update it, or allow the method for this host in ~/.ssh/config."),
    ),
    Cause(
        r"kex_exchange_identification|banner exchange|Connection (?:closed|reset)|closed by remote host|Broken pipe",
        UnreachableError,
        phrase("{host}: it hung up before the login"),
        phrase("Its sshd may be overloaded or bar this address, or something else listens at this port."),
    ),
)
