"""The types of a host, as `[hosts.NAME]` or the command line describes it, and which names ssh may be given."""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from patcher.errors import UsageError
from patcher.i18n import Phrase, phrase
from patcher.remote.slurm import Slurm

Profile: TypeAlias = Literal["standard", "debug", "fast-load"]
HERE = "here"
"""The name of this machine; its agent runs as a child process, without ssh."""
_V6 = re.compile(r"[0-9A-Fa-f]*:[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*(?:%[A-Za-z0-9_.-]{1,32})?")
"""An IPv6 address, with a zone if any: `fe80::1%eth0`."""
_LONGEST = 255
"""The most characters of a user or host: as many as DNS allows for a full name."""
_NAME_MARKS = "._-"
_USER_MARKS = "._-+@"
"""What a host and a user may have besides letters and digits. `me@corp.example` is a user where a domain has users."""


@dataclass(frozen=True, slots=True)
class Kubernetes:
    """The Ray cluster of KubeRay whose manifest is rendered: `[hosts.NAME.kubernetes]`. Each node is one container."""

    image: str
    nodes: int = 1
    gpus: int = 8
    """Of each node."""
    cpus: int | None = None
    """Of each node; None: no limit is written."""
    memory: str | None = None
    """Of each node, as Kubernetes writes it: `512Gi`."""
    shm: str = "64Gi"
    """Size of /dev/shm of each node."""
    namespace: str | None = None
    claim: str | None = None
    """A PersistentVolumeClaim that all nodes mount at `mount`."""
    mount: str = "/workspace"
    secret: str | None = None
    """A Secret of the cluster whose keys become variables."""
    ray: str | None = None
    """The version of Ray in the image; None: the manifest does not name it."""


@dataclass(frozen=True, slots=True)
class Host:
    """What is known of a host before it is asked. Everything but the name and the target may be left out."""

    name: str
    """As the user calls it: a key of `[hosts]`, or what ssh is to be given."""
    target: str
    """What ssh is given: an alias of its configuration, a host, or user@host. Empty where `via` needs no ssh."""
    port: int | None = None
    via: tuple[str, ...] = ()
    """The client that starts a program in a container, word by word: `("docker", "exec", "-i", "verl")`.

    It runs on this machine, or on `target` where there is one.
    """
    path: str | None = None
    """Where the tree is to be there; None: a folder in the home, named as the local one."""
    python: str | None = None
    """An interpreter, or the folder of a virtual or conda environment; None: found there."""
    data: str | None = None
    models: str | None = None
    output: str | None = None
    """Folders for data sets, models, and what training writes (checkpoints included)."""
    constants: Mapping[str, str] = field(default_factory=dict)
    """Further paths for git_ignore.py, by constant."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables for the job that may be shown and written into run scripts."""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables for the job that are never shown, written or journalled; they go to the job's process alone."""
    unset: tuple[str, ...] = ()
    """Secrets that the configuration names and this machine's environment does not have."""
    overrides: tuple[str, ...] = ()
    """Hydra overrides, added to every run script."""
    setup: tuple[str, ...] = ()
    """Lines for a shell there, run before checks and jobs: `module load cuda/12.4`."""
    include: tuple[str, ...] = ()
    """Files and folders of the tree that are sent though git ignores them, or another repository holds them."""
    slurm: Slurm | None = None
    """What its jobs ask of Slurm, where Slurm starts them; the host is then the login node."""
    profile: Profile = "debug"
    script: str | None = None
    """The fork's own script to run as the job, below the tree's root; None: the rendered one."""
    kubernetes: Kubernetes | None = None

    reached_by: tuple[str, ...] = ()
    """Options of the command line that say how to reach it and where its tree is: `--port 2222`."""

    @property
    def words(self) -> str:
        """How a command for the user's shell names this host: its name, and the options that were given for it."""
        return shlex.join((self.name, *self.reached_by))

    @property
    def setup_args(self) -> Mapping[str, Any]:
        """Arguments of each verb that starts programs of the host's environment (`patcher.remote.agent.setup`)."""
        return {"setup": list(self.setup), "login": not self.here}

    @property
    def here(self) -> bool:
        """Whether it is this machine."""
        return self.name == HERE

    def command(self, *words: str) -> str:
        """The command for a person's shell on this machine that runs `words` on the host."""
        port = ["-p", str(self.port)] if self.port else []
        inner = (*self.via, *words)
        return shlex.join((*("ssh", *port, self.target), *inner) if self.target else inner)


@dataclass(frozen=True, slots=True)
class SshTarget:
    """`ssh` is what ssh is given: a host, an alias or user@host; an IPv6 address has no brackets."""

    ssh: str
    port: int | None = None


def parse_target(text: str) -> SshTarget:
    """Parse `[user@]host[:port]`. An IPv6 address is in brackets if a port follows: `me@[fe80::1%eth0]:22`.

    ssh passes the name on to commands of the user's configuration (`ProxyCommand nc %h %p`), where a shell reads it. So
    everything that is not plainly a name is refused: `-oProxyCommand=x`, `host;id`, `$(id)`. Raises UsageError.
    """
    user, at, rest = text.rpartition("@")
    if at:
        _check(text, user, _USER_MARKS)
    host, port = rest, ""
    if rest.startswith("["):
        host, bracket, after = rest[1:].partition("]")
        if not bracket or not _V6.fullmatch(host) or (after and not after.startswith(":")):
            raise _wrong(text, phrase("an IPv6 address goes in brackets: [fe80::1%eth0]:22"))
        port = after[1:]
        if after and not port:
            raise _wrong(text, phrase("a port is a number from 1 to 65535"))
    elif not _V6.fullmatch(rest):
        host, colon, port = rest.partition(":")
        _check(text, host, _NAME_MARKS)
        if colon and not port:
            raise _wrong(text, phrase("a port is a number from 1 to 65535"))
    if port and not (port.isascii() and port.isdigit() and len(port) <= 5 and 0 < int(port) < 65536):
        raise _wrong(text, phrase("a port is a number from 1 to 65535"))
    return SshTarget(user + at + host, int(port) if port else None)


def _check(text: str, part: str, marks: str) -> None:
    """Raise UsageError unless the user or host `part` of `text` is a name of letters, digits and `marks`."""
    if not part:
        raise _wrong(text, phrase("it is empty, or a part of it is"))
    if part.startswith("-"):
        raise _wrong(text, phrase("a part that begins with '-' would be taken for an option"))
    if len(part) > _LONGEST:
        raise _wrong(text, phrase("it is longer than {count} characters", count=_LONGEST))
    for letter in part:
        if letter not in marks and not _is_word(letter):
            raise _wrong(text, phrase("{letter!r} is not allowed in it", letter=letter))
    if not any(_is_word(letter) for letter in part):
        raise _wrong(text, phrase("it has neither a letter nor a digit"))


def _is_word(letter: str) -> bool:
    """Whether it is a letter, a digit or a combining mark of any script: `gpu-机器` is an alias that people use."""
    return unicodedata.category(letter) in ("Lu", "Ll", "Lt", "Lm", "Lo", "Nd", "Mn", "Mc")


def _wrong(text: str, cause: Phrase) -> UsageError:
    return UsageError(
        phrase("{text!r} is no host that ssh can be given", text=text),
        cause=cause,
        advice="Give it a plain name in ~/.ssh/config (Host, HostName, User, Port), and use that.",
    )
