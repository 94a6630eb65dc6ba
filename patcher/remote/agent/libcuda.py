"""Where the driver's library libcuda.so.1 lies: in the order in which a program would find it."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Mapping
from typing import Any

from patcher.remote.agent.facts import Untold, run
from patcher.worktree import files

_NAME = "libcuda.so.1"
_SECONDS = 1.0


def libcuda(environ: Mapping[str, str]) -> dict[str, Any]:
    """`places`: of the driver's own; `compat`: of the toolkit's forward compatibility; `stubs`: to link with alone."""
    arch = platform.machine()
    folders = [folder for folder in environ.get("LD_LIBRARY_PATH", "").split(":") if folder.startswith("/")]
    known = [f"/usr/lib/{arch}-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/nvidia/lib64", "/usr/lib/wsl/lib"]
    toolkit = environ.get("CUDA_HOME") or "/usr/local/cuda"
    cached = parse_ldconfig(_ldconfig(), arch)
    places = [f"{folder}/{_NAME}" for folder in folders] + cached
    places += [f"{folder}/{_NAME}" for folder in (*known, f"{toolkit}/compat")]
    there = _distinct(path for path in places if _is_64_bit(path))
    links = (f"{toolkit}/lib64/stubs", f"{toolkit}/targets/{arch}-linux/lib/stubs", *folders)
    stubs = [f"{folder}/libcuda.so" for folder in links if is_stub(folder) and os.path.exists(f"{folder}/libcuda.so")]
    return {
        "places": [path for path in there if not is_stub(path) and "/compat/" not in path],
        "compat": [path for path in there if "/compat/" in path],
        "stubs": list(dict.fromkeys(stubs)) + [path for path in there if is_stub(path)],
    }


def _distinct(paths: Iterable[str]) -> list[str]:
    """Each folder once, by the name that comes first: /lib is often /usr/lib."""
    found: dict[str, str] = {}
    for path in paths:
        found.setdefault(os.path.realpath(os.path.dirname(path)), os.path.normpath(path))
    return list(found.values())


def _is_64_bit(path: str) -> bool:
    try:
        with files.open_binary(path) as file:
            return file.read(5) == b"\x7fELF\x02"
    except OSError:
        return False


def is_stub(path: str) -> bool:
    """Whether it is a library to link with that does nothing when it is loaded."""
    return "stubs" in path.split("/")


def parse_ldconfig(text: str, arch: str) -> list[str]:
    """The paths of `ldconfig -p` for programs of this architecture."""
    wanted = {"x86_64": "x86-64", "aarch64": "AArch64"}.get(arch, "")
    lines = re.findall(rf"^\s*{re.escape(_NAME)} \(([^)]*)\) => (\S.*)$", text, re.MULTILINE)
    return [path for kind, path in lines if wanted in kind]


def _ldconfig() -> str:
    for program in ("/sbin/ldconfig", "/usr/sbin/ldconfig", "ldconfig"):
        try:
            return run([program, "-p"], _SECONDS).out
        except Untold:
            continue
    return ""
