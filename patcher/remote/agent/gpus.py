"""The GPUs and what runs on them, as nvidia-smi tells it; parsers of its output, and the commands that give it."""

from __future__ import annotations

import os
import pwd
import re
import shutil
from typing import Any

from patcher.messages import Message, phrase
from patcher.remote.agent.environs import search
from patcher.remote.agent.facts import Output, Untold, run

SECONDS = 6.0
"""nvidia-smi wakes up GPUs that nobody uses, one after another: seconds where the driver does not stay loaded."""
_PLACES = ("/usr/bin", "/usr/local/nvidia/bin", "/usr/local/bin", "/usr/lib/wsl/lib", "/opt/nvidia/bin")
_GPU_FIELDS = "index,uuid,name,memory.total,memory.used,utilization.gpu,mig.mode.current,driver_version"
_APP_FIELDS = "gpu_uuid,pid,process_name,used_gpu_memory"
_MIB = 1 << 20


def gpus() -> list[dict[str, Any]]:
    """Each GPU. Raises Untold with nvidia-smi's own sentence where it has none to give."""
    return parse_gpus(_ask(f"--query-gpu={_GPU_FIELDS}"))


def processes() -> list[dict[str, Any]]:
    """Each process on a GPU, with its user where this machine knows the process."""
    found = parse_processes(_ask(f"--query-compute-apps={_APP_FIELDS}"))
    for process in found:
        process["user"] = _user(process["pid"]) if process["name"] else ""
    return found


def driver() -> dict[str, str | None]:
    """The driver's version and the newest CUDA that it supports."""
    try:
        return parse_driver(run([_nvidia_smi()], SECONDS))
    except Untold:
        try:
            with open("/proc/driver/nvidia/version", encoding="utf-8", errors="replace") as file:
                return {"driver": parse_kernel_module(file.read()), "cuda": None}
        except OSError:
            pass
        raise


def parse_gpus(output: Output) -> list[dict[str, Any]]:
    """Memory in bytes; None for what it does not tell (`[N/A]`, `[Insufficient Permissions]`)."""
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
        raise Untold(_complaint(output))
    return found


def parse_processes(output: Output) -> list[dict[str, Any]]:
    """Process names may hold commas. A process of another container has no name here."""
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
        raise Untold(_complaint(output))
    return found


def parse_driver(output: Output) -> dict[str, str | None]:
    """From the head of the table that nvidia-smi prints."""
    version = re.search(r"Driver Version\s*:\s*([\d.]+)", output.out, re.IGNORECASE)
    cuda = re.search(r"CUDA (?:UMD )?Version\s*:\s*([\d.]+)", output.out)
    if version is None:
        raise Untold(_complaint(output))
    return {"driver": version[1], "cuda": cuda[1] if cuda else None}


def parse_kernel_module(text: str) -> str | None:
    """The driver's version by /proc/driver/nvidia/version."""
    found = re.search(r"^NVRM version:.*?\s(\d+\.\d+(?:\.\d+)*)\s", text, re.MULTILINE)
    return found[1] if found else None


def _ask(query: str) -> Output:
    return run([_nvidia_smi(), query, "--format=csv,noheader,nounits"], SECONDS)


def _nvidia_smi() -> str:
    places = search(os.environ.get("PATH", ""), *_PLACES)
    found = shutil.which("nvidia-smi", path=places)
    if found is None:
        raise Untold(phrase("there is no nvidia-smi"))
    return found


def _complaint(output: Output) -> Message:
    said = " ".join(line.strip() for line in f"{output.out}\n{output.err}".splitlines() if line.strip())
    if said:
        return phrase("nvidia-smi: {said}", said=said[:300])
    return phrase("nvidia-smi ended with {code} and said nothing", code=output.code)


def _number(text: str) -> int | None:
    return int(text) if text.strip().isdigit() else None


def _bytes(mebibytes: str) -> int | None:
    number = _number(mebibytes)
    return number * _MIB if number is not None else None


def _user(pid: int) -> str:
    try:
        uid = os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return ""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
