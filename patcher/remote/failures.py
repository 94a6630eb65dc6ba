"""Why a connection failed: one error for each cause that can be told apart.

The evidence is how the process on this machine ended, which is ssh, the client of a container, or the agent itself: its
exit code, what came in place of the agent's greeting, and its standard error. Exit code 255 is ssh's own, and its
messages tell why (`_SSH_CAUSES`); other codes come from the host (`patcher.remote.agent_program`).
"""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass, replace

from patcher.errors import CutError, HostError, LoginError, UnknownHostError, UnreachableError
from patcher.i18n import Phrase, Phrases, phrase
from patcher.remote import agent_program
from patcher.remote.host import Host
from patcher.secrets.redacting import Redactor

_LINES = 6
"""How many of the last lines are shown. A guess: the reason of a failure is among the last lines."""
_CUT_SHORT = re.compile(r"^zlib\.error: .*incomplete or truncated stream", re.MULTILINE)
"""What the Python on the host says where only a part of the agent's program has come."""
_NOISE = re.compile(r"@{5,}.*|\s*|Warning: Permanently added .*|\*\* .*")
"""Lines that tell nothing: ssh's frame of `@@@@`, a key that it has stored, a `** WARNING` about old ciphers."""


@dataclass(frozen=True, slots=True)
class ProcessEnd:
    """How the process on this machine ended that a connection runs over."""

    code: int | None
    """The exit code; None while the process still runs."""
    errors: str
    """What it wrote to standard error."""
    before_greeting: str = ""
    """What came in place of the agent's greeting: most often the output of a login shell's start-up files."""
    greeted: bool = False
    """Whether the agent had greeted before."""
    silent: bool = False
    """Whether the connection was given up because nothing came any more."""

    @property
    def lines(self) -> str:
        """The last lines that it printed, without secrets."""
        lines = [line.rstrip() for line in (self.before_greeting + "\n" + self.errors).splitlines()]
        kept = [line for line in lines if not _NOISE.fullmatch(line)]
        return Redactor().text("\n  ".join(kept[-_LINES:]))


def connection_error(host: Host, end: ProcessEnd) -> HostError:
    """The error to raise for a process that ended this way."""
    if end.greeted or _CUT_SHORT.search(end.errors):
        return _cut_error(host, end)
    code = end.code
    if end.silent:
        return UnreachableError(
            phrase("{host}: the connection stands, and nothing answers", host=host.name),
            cause=end.lines or "a start-up file of the login shell may wait for input, or a disk there may hang",
            advice=phrase("Try it with: {command}", command=host.command("true")),
        )
    if code == 255 and host.target and not host.here:
        return _ssh_error(host, end)
    if code == agent_program.NO_PYTHON:
        return HostError(
            phrase("{host}: no Python is found there", host=host.name),
            cause="neither python3 nor python is in the PATH of a login without a terminal, nor in the usual places",
            advice=_other_python(host),
        )
    if code == agent_program.OLD_PYTHON:
        return HostError(
            phrase("{host}: Python there is too old: 3.8 or later is needed", host=host.name),
            cause=end.lines,
            advice=_other_python(host),
        )
    if code == agent_program.CRASHED:
        return HostError(
            phrase("{host}: the agent failed as it started", host=host.name),
            cause=end.lines,
            advice="Its Python may lack a part of the standard library; name another one.",
        )
    if host.via:
        return _client_error(host, end)
    return HostError(
        phrase("{host}: the login shell there does not run commands", host=host.name),
        cause=end.lines or phrase("it ended with {code} and wrote nothing", code=code),
        advice=phrase(
            "Look at the user's login shell and its start-up files. This must print ok: {command}",
            command=host.command("echo", "ok"),
        ),
    )


_AWAY = re.compile(
    r"cannot connect to the docker daemon|unable to connect to|connection refused|was refused|no route to host"
    r"|i/o timeout|handshake timeout|client\.timeout|deadline exceeded|error dialing backend|no such host",
    re.IGNORECASE,
)
"""What docker, podman and kubectl say where the daemon or the cluster cannot be reached; the container may be fine."""


def _client_error(host: Host, end: ProcessEnd) -> HostError:
    """The container's client started nothing: the container does not exist, does not run, or has no sh."""
    kind = UnreachableError if _AWAY.search(end.errors) else HostError
    return kind(
        phrase("{host}: {program} starts no program there", host=host.name, program=host.via[0]),
        cause=end.lines or phrase("it ended with {code} and wrote nothing", code=end.code),
        advice=phrase(
            "Look whether the container runs, and at via in [hosts.{host}]. This must print ok: {command}",
            host=host.name,
            command=host.command("echo", "ok"),
        ),
    )


def _cut_error(host: Host, end: ProcessEnd) -> CutError:
    """The connection stood, or the agent's program was on its way."""
    code = end.code
    cause: Phrase | str = end.lines
    if _CUT_SHORT.search(end.errors):
        cause = "the agent's program was on its way, and only a part of it came"
    elif end.silent:
        cause = "no sign of life came any more: the host may be asleep, or the network gone"
    elif code is not None and (code < 0 or code > 128) and code != 255:
        # Ended by a signal: -15 as Popen tells it of this machine's agent, 143 as a shell on the host does.
        number = -code if code < 0 else code - 128
        names = {each.value: each.name for each in signal.Signals}
        cause = phrase("the agent there was ended by {signal}", signal=names.get(number, str(number)))
    elif not cause:
        cause = phrase("it ended with {code}", code=code)
    return CutError(
        phrase("{host}: the connection was cut", host=host.name),
        cause=cause,
        advice="Run the command again: it goes on where it stopped.",
    )


def _ssh_error(host: Host, end: ProcessEnd) -> HostError:
    """ssh failed before anything ran on the host."""
    if "HAS CHANGED" in end.errors or "has changed and you have requested strict" in end.errors:
        return _changed_key_error(host, end)
    named = {"host": host.name, "target": _as_ssh_argument(host)}
    if cause := next((cause for cause in _SSH_CAUSES if re.search(cause.pattern, end.errors)), None):
        title, advice = replace(cause.title, fields=named), replace(cause.advice, fields=named)
        return cause.kind(title, cause=end.lines, advice=advice)
    return HostError(
        phrase("{host}: cannot be reached", **named),
        cause=end.lines or phrase("it ended with {code}", code=end.code),
        advice=phrase("Try it with: ssh {target}", **named),
    )


def _changed_key_error(host: Host, end: ProcessEnd) -> HostError:
    """ssh prints `REMOTE HOST IDENTIFICATION HAS CHANGED`, the new fingerprint `SHA256:…`, `Offending ED25519 key in
    FILE:LINE`, and on Debian and Ubuntu the command that removes the old key.
    """
    shown = re.search(r"SHA256:\S+?(?=\.?\s)", end.errors)
    remove = re.search(r"ssh-keygen -f .*", end.errors)
    listed = re.search(r"Offending .* in (.*)", end.errors)
    parts = [phrase("the key that it shows now is {key}", key=shown[0] if shown else "?")]
    if listed:
        parts.append(phrase("another one is kept in {place}", place=listed[1].strip()))
    command = remove[0].strip() if remove else f"ssh-keygen -R {host.target.rpartition('@')[2]}"
    return LoginError(
        phrase("{host}: its host key has changed", host=host.name),
        cause=Phrases(tuple(parts)),
        advice=phrase(
            "Do not go on before you know why: the machine was set up anew, or somebody is in between. "
            "Ask its owner for the fingerprint, or look there: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub. "
            "If they are the same: {command}",
            command=command,
        ),
    )


def _as_ssh_argument(host: Host) -> str:
    return f"-p {host.port} {host.target}" if host.port else host.target


def _other_python(host: Host) -> Phrase:
    template = "Install Python 3.8 or later, or name one: python = {place!r} in [hosts.{host}]"
    return phrase(template, place="/path/to/env", host=host.name)


@dataclass(frozen=True, slots=True)
class _SshCause:
    """A reason that ssh gives. `pattern` is searched in its messages; the sentences have fields `host` and `target`."""

    pattern: str
    kind: type[HostError]
    title: Phrase
    advice: Phrase


_SSH_CAUSES: tuple[_SshCause, ...] = (
    _SshCause(
        r"revoked",
        LoginError,
        phrase("{host}: its host key is revoked"),
        phrase("Do not go on. Ask the machine's owner."),
    ),
    _SshCause(
        r"Host key verification failed|host key is known for",
        LoginError,
        phrase("{host}: its host key is not known yet"),
        phrase("Connect once by hand, compare the fingerprint with its owner's, and accept it: ssh {target}"),
    ),
    _SshCause(
        r"Could not resolve hostname|Name or service not known|Temporary failure in name resolution",
        UnknownHostError,
        phrase("{host}: there is no host of this name"),
        phrase("Look at the name, at HostName in ~/.ssh/config, and whether the network or VPN is up."),
    ),
    _SshCause(
        r"Connection refused",
        UnreachableError,
        phrase("{host}: it refuses the connection"),
        phrase("No sshd listens there at this port. Look at the port; a machine that starts may need a minute."),
    ),
    _SshCause(
        r"timed out|No route to host|Network is unreachable|Host is down",
        UnreachableError,
        phrase("{host}: it does not answer"),
        phrase("The machine may be off or asleep, or a firewall or a missing VPN in between."),
    ),
    _SshCause(
        r"Permission denied|Too many authentication failures|No more authentication methods",
        LoginError,
        phrase("{host}: it does not let you in"),
        phrase("Look at the user, and at IdentityFile in ~/.ssh/config; this shows what is tried: ssh -v {target}"),
    ),
    _SshCause(
        r"[Bb]ad configuration option|Bad owner or permissions on|terminating, \d+ bad|keyword \S+ extra arguments",
        LoginError,
        phrase("{host}: ssh does not accept its configuration"),
        phrase("Mend the file and line that it names."),
    ),
    _SshCause(
        r"unix_listener|ControlPath|ControlSocket|muxserver",
        LoginError,
        phrase("{host}: ssh cannot make the socket of the connection"),
        phrase("Set TMPDIR to a folder on a local disk with a short path that you may write to."),
    ),
    _SshCause(
        r"[Uu]nable to negotiate|no matching .* found",
        LoginError,
        phrase("{host}: its sshd and this ssh have no method in common"),
        phrase("One of them is very old. Update it, or allow the method for this host in ~/.ssh/config."),
    ),
    _SshCause(
        r"kex_exchange_identification|banner exchange|Connection (?:closed|reset)|closed by remote host|Broken pipe",
        UnreachableError,
        phrase("{host}: it hung up before the login"),
        phrase("Its sshd may be overloaded or bar this address, or something else listens at this port."),
    ),
)
"""The first that fits counts: `Connection closed` follows many other messages, so it comes last."""
