"""Ask a host what it has, and type the answer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patcher.i18n.codec import decode
from patcher.remote.channel import understood
from patcher.remote.opening import place_of
from patcher.remote.survey import Gpu, GpuProcess, Interpreter, Package, Place, Survey

if TYPE_CHECKING:
    from patcher.remote.connection import Connection
    from patcher.remote.host import Host


def survey(connection: Connection, host: Host) -> Survey:
    """What the host has, where `begin` has opened the tree's folder; in one round trip, without writing anything.

    Raises:
        RefusedError: of kind `python`: the interpreter that `host` names is not usable there.
        CutError: the connection ended.
    """
    told = connection.channel.ask("survey", python=host.python, in_tree=_in_tree(connection.host)).values
    return understood(lambda: survey_of(told))


def _in_tree(host: Host) -> str:
    """What the environment in the tree's own folder is there for.

    Here the tree is somebody's data until the user trusts it. On a host it is the folder that the user has us write to.
    """
    from patcher.trust import is_trusted

    if not host.here:
        return "read"
    return "run" if host.path is not None and is_trusted(Path(host.path)) else "left"


def survey_of(told: Mapping[str, Any]) -> Survey:
    """The agent's answer, typed."""
    found: Mapping[str, Any] = told["found"]
    pythons = found.get("interpreters", {"chosen": None, "others": (), "passed": ()})
    driver = found.get("driver", {})
    libraries = found.get("libcuda", {"places": (), "compat": (), "stubs": ()})
    disk = found.get("disk", {})
    free = [size for size in (disk.get("free"), found.get("quota")) if size is not None]
    gpus = found.get("gpus", ())
    return Survey(
        hostname=told["hostname"],
        user=told["user"],
        home=told["home"],
        agent_python=told["python"]["version"],
        place=place_of(found["place"]) if "place" in found else Place(told["at"], False, False, False),
        interpreter=_interpreter(pythons["chosen"]) if pythons["chosen"] is not None else None,
        others=tuple(_interpreter(one) for one in pythons["others"]),
        gpus=tuple(_gpu(gpu, found.get("processes", ())) for gpu in gpus),
        driver=driver.get("driver") or next((gpu["driver"] for gpu in gpus), None),
        cuda=driver.get("cuda"),
        libcuda=tuple(libraries["places"]),
        free=min(free, default=None),
        shm=found.get("shm", {}).get("size"),
        rsync=found.get("rsync"),
        tmux=found.get("tmux"),
        cpus=told["cpus"],
        memory=told["memory"],
        limits=told["limits"],
        clock=told["clock"],
        missing={name: decode(reason) for name, reason in told["missing"].items()},
        passed=tuple(decode(reason) for reason in pythons["passed"]),
        inodes=disk.get("inodes"),
        tmp=found.get("tmp", {}).get("free"),
        filesystem=found.get("mount", ("", ""))[0],
        compat=tuple(libraries["compat"]),
        stubs=tuple(libraries["stubs"]),
        visible=found.get("environ", {}).get("CUDA_VISIBLE_DEVICES"),
        available=told["available"],
        container=told["system"]["container"],
        kernel=told["system"]["kernel"],
        machine=told["system"]["machine"],
        applied=found.get("applied", {}),
        raw=told,
    )


def _interpreter(told: Mapping[str, Any]) -> Interpreter:
    packages = {name: Package(**package) for name, package in told["packages"].items()}
    problems = tuple(decode(problem) for problem in told["problems"])
    return Interpreter(told["python"], told["version"], packages, told["origin"], problems)


def _gpu(told: Mapping[str, Any], processes: Any) -> Gpu:
    busy = tuple(
        GpuProcess(process["pid"], process["memory"], process["user"], process["name"])
        for process in processes
        if process["uuid"] == told["uuid"]
    )
    return Gpu(
        told["index"],
        told["name"],
        told["memory"],
        told["used"],
        busy,
        use=told["use"],
        uuid=told["uuid"],
        mig=told["mig"],
        odd=told["odd"],
    )
