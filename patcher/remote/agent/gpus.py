"""The GPUs, what runs on them and the driver, as nvidia-smi tells it, and where the driver's libcuda.so.1 lies."""

from __future__ import annotations

import os
import platform
import re
import shutil
from typing import Any, Iterable, Mapping

from patcher.messages import Message, phrase
from patcher.remote.agent.environs import search
from patcher.remote.agent.facts import Output, UnknownFact, run, user_name
from patcher.worktree import files

SECONDS = 6.0
"""nvidia-smi wakes up GPUs that nobody uses, one after another: seconds where the driver does not stay loaded."""
_NVIDIA_SMI_FOLDERS = ("/usr/bin", "/usr/local/nvidia/bin", "/usr/local/bin", "/usr/lib/wsl/lib", "/opt/nvidia/bin")
"""Folders to search beyond PATH: GKE mounts the driver at /usr/local/nvidia, WSL at /usr/lib/wsl."""
_GPU_FIELDS = "index,uuid,name,memory.total,memory.used,utilization.gpu,mig.mode.current,driver_version"
_APP_FIELDS = "gpu_uuid,pid,process_name,used_gpu_memory"
_MIB = 1 << 20
_LIBCUDA = "libcuda.so.1"
_LDCONFIG_SECONDS = 1.0


def gpus() -> list[dict[str, Any]]:
    """Each GPU, as `parse_gpus` describes it. Raises UnknownFact with nvidia-smi's own sentence where it lists none."""
    return parse_gpus(_ask(f"--query-gpu={_GPU_FIELDS}"))


def processes() -> list[dict[str, Any]]:
    """Each process on a GPU, as `parse_processes` describes it, with its `user`: empty for one of another container."""
    found = parse_processes(_ask(f"--query-compute-apps={_APP_FIELDS}"))
    for process in found:
        process["user"] = _user_of(process["pid"]) if process["name"] else ""
    return found


def driver() -> dict[str, str | None]:
    """The driver's version, and the newest CUDA that it supports as `cuda`.

    Where nvidia-smi fails, as after an update of the driver without a restart, the loaded kernel module tells the
    version. Raises UnknownFact where that does not either.
    """
    try:
        return parse_driver(run([_nvidia_smi()], SECONDS))
    except UnknownFact:
        try:
            with open("/proc/driver/nvidia/version", encoding="utf-8", errors="replace") as file:
                return {"driver": parse_kernel_module(file.read()), "cuda": None}
        except OSError:
            pass
        raise


def parse_gpus(output: Output) -> list[dict[str, Any]]:
    """GPUs from lines such as `0, GPU-4b1c…, NVIDIA H200, 143771, 4, 0, Disabled, 580.65.06`.

    Memory in bytes, use in percent; None for what is not told (`[N/A]`), and then the word in brackets as `odd`.
    """
    found = []
    for line in output.out.splitlines():
        fields = [field.strip() for field in line.split(", ")]
        if len(fields) != len(_GPU_FIELDS.split(",")) or not fields[0].isdigit():
            continue
        index, uuid, name, total, used, use, mig, version = fields
        odd = next((field.strip("[]") for field in (total, used) if _number(field) is None), "")
        found.append(
            {
                "index": int(index),
                "uuid": uuid,
                "name": name,
                "memory": _bytes(total),
                "used": _bytes(used),
                "use": _number(use),
                "mig": mig == "Enabled",
                "driver": version,
                "odd": odd,
            }
        )
    if not found:
        raise UnknownFact(_complaint(output))
    return found


def parse_processes(output: Output) -> list[dict[str, Any]]:
    """Processes from lines such as `GPU-4b1c…, 4711, /usr/bin/python3, 70210`. Memory in bytes; 0 where it is not told.

    The name may hold `, `, so the fields before and behind it are taken off first. A process of another container has
    `[Not Found]` or `-` for a name, which becomes empty.
    """
    found = []
    for line in output.out.splitlines():
        uuid, _, rest = line.partition(", ")
        pid, _, rest = rest.partition(", ")
        name, _, memory = rest.rpartition(", ")
        if pid.strip().isdigit():
            known = not name.startswith("[") and name.strip() not in ("", "-")
            found.append(
                {"uuid": uuid, "pid": int(pid), "name": name.strip() if known else "", "memory": _bytes(memory) or 0}
            )
    if not found and output.code:
        raise UnknownFact(_complaint(output))
    return found


def parse_driver(output: Output) -> dict[str, str | None]:
    """From the head of the table that nvidia-smi prints: `| … Driver Version: 580.65.06   CUDA Version: 13.0 |`.

    Newer ones write `CUDA UMD Version`.
    """
    version = re.search(r"Driver Version\s*:\s*([\d.]+)", output.out, re.IGNORECASE)
    cuda = re.search(r"CUDA (?:UMD )?Version\s*:\s*([\d.]+)", output.out)
    if version is None:
        raise UnknownFact(_complaint(output))
    return {"driver": version[1], "cuda": cuda[1] if cuda else None}


def parse_kernel_module(text: str) -> str | None:
    """The driver's version in /proc/driver/nvidia/version: `NVRM version: NVIDIA UNIX … Module  580.65.06  Sun …`."""
    found = re.search(r"^NVRM version:.*?\s(\d+\.\d+(?:\.\d+)*)\s", text, re.MULTILINE)
    return found[1] if found else None


def _ask(query: str) -> Output:
    return run([_nvidia_smi(), query, "--format=csv,noheader,nounits"], SECONDS)


def _nvidia_smi() -> str:
    path = search(os.environ.get("PATH", ""), *_NVIDIA_SMI_FOLDERS)
    found = shutil.which("nvidia-smi", path=path)
    if found is None:
        raise UnknownFact(phrase("there is no nvidia-smi"))
    return found


def _complaint(output: Output) -> Message:
    text = " ".join(line.strip() for line in f"{output.out}\n{output.err}".splitlines() if line.strip())
    if text:
        return phrase("nvidia-smi: {message}", message=text[:300])
    return phrase("nvidia-smi ended with {code} and wrote nothing", code=output.code)


def _number(text: str) -> int | None:
    return int(text) if text.strip().isdigit() else None


def _bytes(mebibytes: str) -> int | None:
    number = _number(mebibytes)
    return number * _MIB if number is not None else None


def _user_of(pid: int) -> str:
    try:
        return user_name(os.stat(f"/proc/{pid}").st_uid)
    except OSError:
        return ""


def libcuda(environ: Mapping[str, str]) -> dict[str, Any]:
    """Where libcuda.so.1 lies, in the order in which a program would find it.

    `places`: the driver's own; `compat`: the toolkit's for forward compatibility with an older driver; `stubs`:
    libraries to link with alone. CUDA fails in a program that finds a stub first.
    """
    arch = platform.machine()
    folders = [folder for folder in environ.get("LD_LIBRARY_PATH", "").split(":") if folder.startswith("/")]
    known = [f"/usr/lib/{arch}-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/nvidia/lib64", "/usr/lib/wsl/lib"]
    toolkit = environ.get("CUDA_HOME") or "/usr/local/cuda"
    cached = parse_ldconfig(_ldconfig(), arch)
    places = [f"{folder}/{_LIBCUDA}" for folder in folders] + cached
    places += [f"{folder}/{_LIBCUDA}" for folder in (*known, f"{toolkit}/compat")]
    there = _distinct(path for path in places if _is_64_bit(path))
    links = (f"{toolkit}/lib64/stubs", f"{toolkit}/targets/{arch}-linux/lib/stubs", *folders)
    stubs = [f"{folder}/libcuda.so" for folder in links if is_stub(folder) and os.path.exists(f"{folder}/libcuda.so")]
    return {
        "places": [path for path in there if not is_stub(path) and "/compat/" not in path],
        "compat": [path for path in there if "/compat/" in path],
        "stubs": list(dict.fromkeys(stubs)) + [path for path in there if is_stub(path)],
    }


def _distinct(paths: Iterable[str]) -> list[str]:
    """One path for each real folder, by the name that comes first: /lib is often a link to /usr/lib."""
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
    """Whether a path is that of a stub: `/usr/local/cuda/lib64/stubs/libcuda.so`."""
    return "stubs" in path.split("/")


def parse_ldconfig(text: str, arch: str) -> list[str]:
    """Paths for programs of this architecture, of lines such as `libcuda.so.1 (libc6,x86-64) => /usr/lib/libcuda.so.1`.

    An architecture that has no word of its own there takes all.
    """
    wanted = {"x86_64": "x86-64", "aarch64": "AArch64"}.get(arch, "")
    lines = re.findall(rf"^\s*{re.escape(_LIBCUDA)} \(([^)]*)\) => (\S.*)$", text, re.MULTILINE)
    return [path for kind, path in lines if wanted in kind]


def _ldconfig() -> str:
    for program in ("/sbin/ldconfig", "/usr/sbin/ldconfig", "ldconfig"):
        try:
            return run([program, "-p"], _LDCONFIG_SECONDS).out
        except UnknownFact:
            continue
    return ""
