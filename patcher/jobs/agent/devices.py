"""The GPUs with what is on each of them."""

from __future__ import annotations

from typing import Any

from patcher.remote.agent import gpus
from patcher.remote.agent.facts import Untold

NOBODY = 2 << 30
"""Bytes in use on a GPU from which on somebody is there though no process is shown: one of another container."""
_SHARED = "nvidia-cuda-mps"


def devices() -> list[dict[str, Any]]:
    """Each GPU, and its processes as `busy`, servers that share GPUs apart; none where nvidia-smi tells of none."""
    try:
        found = gpus.gpus()
        running = gpus.processes()
    except Untold:
        return []
    by_uuid = {gpu["uuid"]: dict(gpu, busy=[]) for gpu in found}
    for process in running:
        if process["uuid"] in by_uuid and not process["name"].rpartition("/")[2].startswith(_SHARED):
            by_uuid[process["uuid"]]["busy"].append(process)
    return list(by_uuid.values())


def visible(found: list[dict[str, Any]], wanted: str | None) -> list[dict[str, Any]]:
    """Those that CUDA_VISIBLE_DEVICES leaves a job; all where it is not set, or is not understood."""
    names = [part.strip() for part in (wanted or "").split(",") if part.strip()]
    chosen = [gpu for gpu in found if any(name == str(gpu["index"]) or gpu["uuid"].startswith(name) for name in names)]
    return chosen or found


def unseen(gpu: dict[str, Any]) -> list[dict[str, Any]]:
    """Somebody whose process is not shown here, where the GPU's memory says that there is one."""
    return [{"pid": None, "memory": gpu["used"]}] if (gpu["used"] or 0) > NOBODY else []
