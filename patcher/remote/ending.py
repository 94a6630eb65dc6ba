"""What it means that the process at our end of a connection has ended: one error for each cause that can be told."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass, replace

from patcher.errors import CutError, HostError, LoginError, UnreachableError
from patcher.i18n import Phrase, Phrases, phrase
from patcher.remote import payload
from patcher.remote.causes import cause_of
from patcher.remote.host import Host
from patcher.secrets.redacting import Redactor

_LINES = 6
_NOISE = re.compile(r"@{5,}.*|\s*|Warning: Permanently added .*|\*\* .*")


@dataclass(frozen=True, slots=True)
class Ending:
    """How the process ended. `code` is None while it runs on; `said` is what came in place of the agent's greeting."""

    code: int | None
    errors: str
    said: str = ""
    greeted: bool = False
    silent: bool = False
    """Whether it was given up, because nothing came from it any more."""

    @property
    def lines(self) -> str:
        """What is worth showing of it, without secrets."""
        lines = [line.rstrip() for line in (self.said + "\n" + self.errors).splitlines()]
        kept = [line for line in lines if not _NOISE.fullmatch(line)]
        return Redactor().text("\n  ".join(kept[-_LINES:]))


def error(host: Host, ending: Ending) -> HostError:
    """The error to raise."""
    if ending.greeted:
        return _cut(host, ending)
    code = ending.code
    if ending.silent:
        return UnreachableError(
            phrase("{host}: the connection stands, and nothing answers", host=host.name),
            cause=ending.lines or "a start-up file of the login shell may wait for input, or a disk there may hang",
            advice=phrase("Try it with: ssh {target} true", target=_spelled(host)),
        )
    if code == 255 and not host.here:
        return _ssh(host, ending)
    if code == payload.NO_PYTHON:
        return HostError(
            phrase("{host}: no Python is found there", host=host.name),
            cause="neither python3 nor python is in the PATH of a login without a terminal, nor in the usual places",
            advice=_other_python(host),
        )
    if code == payload.OLD_PYTHON:
        return HostError(
            phrase("{host}: Python there is too old: 3.8 or later is needed", host=host.name),
            cause=ending.lines,
            advice=_other_python(host),
        )
    if code == payload.CRASHED:
        return HostError(
            phrase("{host}: the agent failed as it started", host=host.name),
            cause=ending.lines,
            advice="Its Python may lack a part of the standard library; name another one.",
        )
    return HostError(
        phrase("{host}: the login shell there does not run commands", host=host.name),
        cause=ending.lines or phrase("it ended with {code} and said nothing", code=code),
        advice=phrase(
            "Look at the user's login shell and its start-up files. This must print ok: ssh {target} echo ok",
            target=_spelled(host),
        ),
    )


def _cut(host: Host, ending: Ending) -> CutError:
    code = ending.code
    cause: Phrase | str = ending.lines
    if ending.silent:
        cause = "no sign of life came any more: the host may be asleep, or the network gone"
    elif code is not None and (code < 0 or code > 128) and code != 255:
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


def _ssh(host: Host, ending: Ending) -> HostError:
    """ssh failed before anything ran there; it says why in its own words."""
    if "HAS CHANGED" in ending.errors or "has changed and you have requested strict" in ending.errors:
        return _changed(host, ending)
    named = {"host": host.name, "target": _spelled(host)}
    if cause := cause_of(ending.errors):
        title, advice = replace(cause.title, fields=named), replace(cause.advice, fields=named)
        return cause.kind(title, cause=ending.lines, advice=advice)
    return HostError(
        phrase("{host}: cannot be reached", **named),
        cause=ending.lines or phrase("it ended with {code}", code=ending.code),
        advice=phrase("Try it with: ssh {target}", **named),
    )


def _changed(host: Host, ending: Ending) -> HostError:
    shown = re.search(r"SHA256:\S+?(?=\.?\s)", ending.errors)
    remove = re.search(r"ssh-keygen -f .*", ending.errors)
    listed = re.search(r"Offending .* in (.*)", ending.errors)
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


def _spelled(host: Host) -> str:
    return f"-p {host.port} {host.target}" if host.port else host.target


def _other_python(host: Host) -> Phrase:
    told = "Install Python 3.8 or later, or name one: python = {place!r} in [hosts.{host}]"
    return phrase(told, place="/path/to/env", host=host.name)
